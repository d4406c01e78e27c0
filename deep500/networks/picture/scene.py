"""From the graph of a network to boxes and lines: cards of nodes, inputs and outputs, graphs within nodes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import onnx_ir as ir

from deep500.core.texts import escaped
from deep500.networks.operator_node import captured_values, describe_type, held_graphs
from deep500.networks.picture.families import family_of
from deep500.networks.picture.layout import Layout, layered_layout
from deep500.networks.tensor_roles import is_loss

__all__ = ["BOLD_SIZE", "LINE_HEIGHT", "PADDING", "TEXT_SIZE", "Card", "Note", "Scene", "build_scene", "node_name"]

#: Sizes of letters, their mean width as a share of that, the height of a line and the empty border, in pixels.
BOLD_SIZE, TEXT_SIZE = 13, 10
_BOLD_WIDTH, _TEXT_WIDTH = 0.62, 0.58
LINE_HEIGHT, PADDING = 14.0, 8.0

#: Longest texts on a card and in a tooltip, in characters.
_LONGEST, _LONGEST_TOLD = 30, 200

#: Text of a node on a heat map, and its share of the hottest colour, from 0 to 1.
Note = tuple[str, float]


@dataclass(frozen=True)
class Card:
    """A box with what is written on it.

    Attributes:
        kind: ``"node"``, ``"input"``, ``"output"``, ``"loss"`` or ``"captured"``.
        title: First line.
        lines: Further lines.
        tooltip: All that is known.
        family: The operator's family; empty for what is no node.
        heat: How hot the node is, from 0 to 1; ``None`` where there is no heat map.
        inner: The graphs that the node holds, by the name of their attribute.
    """

    kind: str
    title: str
    lines: tuple[str, ...]
    tooltip: str
    family: str = ""
    heat: float | None = None
    inner: Mapping[str, Scene] = field(default_factory=dict)

    @property
    def head_height(self) -> float:
        """Height of the lines with their border."""
        return 2 * PADDING + LINE_HEIGHT * (1 + len(self.lines))

    @property
    def size(self) -> tuple[float, float]:
        """Width and height."""
        width = max(
            [BOLD_SIZE * _BOLD_WIDTH * len(self.title), *(TEXT_SIZE * _TEXT_WIDTH * len(t) for t in self.lines)]
        )
        width += 2 * PADDING
        if not self.inner:
            return width, self.head_height
        inside = sum(scene.outer_size[0] + PADDING for scene in self.inner.values()) + PADDING
        tallest = max(scene.outer_size[1] for scene in self.inner.values())
        return max(width, inside), self.head_height + tallest + PADDING


@dataclass(frozen=True)
class Scene:
    """The boxes of one graph, and where they are.

    Attributes:
        cards: What is drawn.
        edges: Pairs of their numbers.
        layout: Where.
    """

    cards: tuple[Card, ...]
    edges: tuple[tuple[int, int], ...]
    layout: Layout

    @property
    def outer_size(self) -> tuple[float, float]:
        """Width and height of the frame of a graph within a node: with a border, and a line for its name."""
        return self.layout.width + 2 * PADDING, self.layout.height + 2 * PADDING + LINE_HEIGHT


def node_name(node: ir.Node) -> str:
    """Return the name by which a node is called everywhere: its own, or the names of its outputs."""
    return node.name or "/".join(value.name or "" for value in node.outputs)


def build_scene(
    graph: ir.Graph, notes: Mapping[str, Note] | None = None, imports: Mapping[str, int] | None = None
) -> Scene:
    """Return the cards of a graph and their places.

    Args:
        graph: The graph; its stored tensors are told in tooltips, and are no cards.
        notes: What a heat map says of nodes, by their names; ``None`` for a picture in the families' colours.
        imports: The opset versions by domain, of a graph within a node those of the graph around it.
    """
    imports = graph.opset_imports if imports is None else imports
    cards: list[Card] = []
    made_by: dict[ir.Value, int] = {}
    edges: dict[tuple[int, int], None] = {}
    stored = set(graph.initializers.values())
    outside = _values_from_outside(graph)
    for kind, values in (("input", [v for v in graph.inputs if v not in stored]), ("captured", outside)):
        for value in values:
            made_by[value] = len(cards)
            cards.append(_value_card(kind, value))
    entries = range(len(cards))
    for node in graph:
        number = len(cards)
        cards.append(_node_card(node, notes, imports))
        sources = [made_by[v] for v in (*node.inputs, *captured_values(node)) if v is not None and v in made_by]
        edges.update(dict.fromkeys((source, number) for source in sources))
        made_by.update((value, number) for value in node.outputs)
    for value in graph.outputs:
        if value in made_by:
            edges[made_by[value], len(cards)] = None
        cards.append(_value_card("loss" if is_loss(value) else "output", value))
    layout = layered_layout([card.size for card in cards], list(edges), entries)
    return Scene(tuple(cards), tuple(edges), layout)


def _values_from_outside(graph: ir.Graph) -> list[ir.Value]:
    own = {*graph.inputs, *graph.initializers.values(), *(v for node in graph for v in node.outputs)}
    read = [v for node in graph for v in (*node.inputs, *captured_values(node)) if v is not None]
    found = dict.fromkeys(v for v in (*read, *graph.outputs) if v not in own)
    return [value for value in found if value.const_value is None]


def _value_card(kind: str, value: ir.Value) -> Card:
    name, described = escaped(value.name or ""), _described(value)
    return Card(kind, _short(name), (_short(described),), f"{kind}: {name}\n{described}")


def _node_card(node: ir.Node, notes: Mapping[str, Note] | None, imports: Mapping[str, int]) -> Card:
    name = node_name(node)
    outputs = [_described(value) for value in node.outputs if value.name]
    lines = [_short(escaped(name)), *(_short(text) for text in outputs[:1])]
    if len(outputs) > 1:
        lines[-1] = _short(lines[-1], _LONGEST - 10) + f" and {len(outputs) - 1} more"
    note = None if notes is None else notes.get(name, ("", 0.0))
    if note is not None and note[0]:
        lines.append(_short(note[0]))
    inner = {name: build_scene(graph, notes, imports) for name, graph in held_graphs(node)}
    tooltip = _tooltip(node, imports) + (f"\n{note[0]}" if note is not None and note[0] else "")
    family = family_of(node.op_type, node.domain)
    title = _short(escaped(node.op_type))
    return Card("node", title, tuple(lines), tooltip, family, None if note is None else note[1], inner)


def _tooltip(node: ir.Node, imports: Mapping[str, int]) -> str:
    number = node.version or imports.get(node.domain)
    version = f", version {number}" if number else ""
    lines = [escaped(node_name(node)), escaped(f"{node.domain or 'ai.onnx'}::{node.op_type}{version}")]
    for name, attribute in node.attributes.items():
        if attribute.type not in (ir.AttributeType.GRAPH, ir.AttributeType.GRAPHS):
            lines.append(_told(f"{name} = {_attribute_text(attribute)}"))
    for what, values in (("input", node.inputs), ("output", node.outputs)):
        for index, value in enumerate(values):
            if value is not None and value.name:
                is_stored = value.const_value is not None and value.producer() is None
                lines.append(_told(f"{what} {index}: {value.name}: {_described(value)}{', stored' * is_stored}"))
    return "\n".join(lines)


def _attribute_text(attribute: ir.Attr) -> str:
    value: Any = attribute.value
    if attribute.type == ir.AttributeType.TENSOR:
        return f"{value.dtype.name.lower()}{list(value.shape)}"
    values = list(value) if isinstance(value, (tuple, list)) else [value]
    texts = [f"{v:.7g}" if isinstance(v, float) else str(v) for v in values]  # of 32 bits, in a file or not
    return f"[{', '.join(texts)}]" if isinstance(value, (tuple, list)) else texts[0]


def _described(value: ir.Value) -> str:
    descriptor = describe_type(value.type, value.shape)
    return "?" if descriptor is None else escaped(str(descriptor))


def _told(text: str) -> str:
    line = escaped(text)
    return line if len(line) <= _LONGEST_TOLD else f"{line[: _LONGEST_TOLD - 1]}…"


def _short(text: str, longest: int = _LONGEST) -> str:
    """Return a text without its middle where it is too long: names differ at their ends."""
    if len(text) <= longest:
        return text
    head = longest // 3
    return f"{text[:head]}…{text[head + 1 - longest :]}"
