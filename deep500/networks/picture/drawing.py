"""A network's graph as a file of vector graphics (SVG)."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from os import PathLike
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape

from deep500.core.errors import InvalidInputError
from deep500.core.files import write_atomically
from deep500.core.texts import escaped, shown
from deep500.networks.picture.families import FAMILIES
from deep500.networks.picture.layout import Point
from deep500.networks.picture.scene import BOLD_SIZE, LINE_HEIGHT, PADDING, TEXT_SIZE, Card, Note, Scene, build_scene

if TYPE_CHECKING:
    from deep500.networks.network import Network

__all__ = ["check_picture_path", "draw_network", "network_picture"]

#: Border around all, height of the heading, width of an entry of the legend.
_MARGIN, _HEADING, _ENTRY = 24.0, 74.0, 160.0

_COLOURS = {"input": "#ffffff", "output": "#ffffff", "loss": "#ffffff", "captured": "#ffffff"}

_STYLE = (
    "text{font-family:Helvetica,Arial,sans-serif;fill:#1f2933}.b{font-weight:bold}.s{fill:#52606d}"
    ".n{stroke:#7b8794}.v{stroke:#3e4c59;stroke-width:1.5}.c{stroke-dasharray:4 3}.l{fill:none;stroke:#7b8794}"
    ".f{fill:#ffffff;fill-opacity:.75;stroke:#9aa5b1;stroke-dasharray:3 3}"
)


def draw_network(network: Network, path: str | PathLike[str], notes: Mapping[str, Note] | None = None) -> None:
    """Write :func:`network_picture` to a file, which appears whole or not at all.

    Raises:
        InvalidInputError: The name does not end with ``.svg``.
        FileWriteError: The file cannot be written.
    """
    check_picture_path(path)
    write_atomically(path, network_picture(network, notes), "picture")


def check_picture_path(path: str | PathLike[str]) -> None:
    """Check that a picture's name says what is in it.

    Raises:
        InvalidInputError: The name does not end with ``.svg``.
    """
    text = os.fspath(path) if isinstance(path, (str, PathLike)) else None
    if not isinstance(text, str) or not text.lower().endswith(".svg"):
        raise InvalidInputError(
            f"A picture of a network cannot be written to {shown(text if text is not None else path)}: accepted are "
            f"names that end with .svg."
        )


def network_picture(network: Network, notes: Mapping[str, Note] | None = None) -> str:
    """Return a network's graph as SVG: the inputs at the top, each node below what it reads.

    A node shows operator, name and first output, in the colour of its operator's family; graphs that it holds are drawn
    within it. Attributes, all types and the stored tensors are in tooltips. The same network gives the same text.

    Args:
        network: The network.
        notes: For a heat map, a text for nodes and how hot each is, from 0 to 1, by the nodes' names.
    """
    scene = build_scene(network.model.graph, notes)
    families = [f for f in FAMILIES if any(f in found for found in _families(scene))] if notes is None else []
    title = f"{escaped(network.name)}: {_count(scene)} nodes, {network.parameter_count:,} parameters"
    inner = max(scene.layout.width, BOLD_SIZE * 0.62 * len(title), 2 * _ENTRY)
    columns = max(1, int(inner // _ENTRY))
    heading = _HEADING - LINE_HEIGHT + LINE_HEIGHT * -(-len(families) // columns)
    width, height = inner + 2 * _MARGIN, scene.layout.height + heading + 2 * _MARGIN
    left = _MARGIN + (inner - scene.layout.width) / 2
    size = f'width="{_number(width)}" height="{_number(height)}" viewBox="0 0 {_number(width)} {_number(height)}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size}>',
        f"<title>{escape(title)}</title>",
        f"<style>{_STYLE}</style>",
        '<defs><marker id="a" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0 0L8 4L0 8z" fill="#7b8794"/></marker></defs>',
        '<rect width="100%" height="100%" fill="#ffffff"/>',
        _text(_MARGIN, _MARGIN + BOLD_SIZE, title, BOLD_SIZE + 2, "b", anchor="start"),
        *_legend(families, columns),
        f'<g transform="translate({_number(left)} {_number(_MARGIN + heading)})">',
        *_scene(scene),
        "</g>",
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _families(scene: Scene) -> Iterator[set[str]]:
    yield {card.family for card in scene.cards}
    for card in scene.cards:
        for inner in card.inner.values():
            yield from _families(inner)


def _count(scene: Scene) -> int:
    return sum(
        1 + sum(map(_count, card.inner.values())) for card in scene.cards if card.kind == "node"
    )  # those in branches and bodies too


def _legend(families: list[str], columns: int) -> Iterator[str]:
    for number, family in enumerate(families):
        x = _MARGIN + _ENTRY * (number % columns)
        y = _MARGIN + BOLD_SIZE + 14 + LINE_HEIGHT * (number // columns)
        yield f'<rect x="{_number(x)}" y="{_number(y)}" width="10" height="10" rx="2" fill="{FAMILIES[family]}"/>'
        yield _text(x + 16, y + 9, family, TEXT_SIZE, "s", anchor="start")


def _scene(scene: Scene) -> Iterator[str]:
    for line in scene.layout.lines:
        yield f'<path class="l" d="{_line(line)}" marker-end="url(#a)"/>'
    for card, place in zip(scene.cards, scene.layout.places):
        yield from _card(card, place)


def _card(card: Card, place: Point) -> Iterator[str]:
    width, height = card.size
    is_node = card.kind == "node"
    style = "n" if is_node else "v c" if card.kind == "captured" else "v"
    radius = 5.0 if is_node else card.head_height / 2
    fill = _heat_colour(card.heat) if card.heat is not None else FAMILIES.get(card.family, _COLOURS.get(card.kind, ""))
    yield f'<g class="{card.kind}" transform="translate({_number(place[0])} {_number(place[1])})">'
    yield f"<title>{escape(card.tooltip)}</title>"
    size = f'width="{_number(width)}" height="{_number(height)}" rx="{_number(radius)}"'
    yield f'<rect class="{style}" {size} fill="{fill}"/>'
    yield _text(width / 2, PADDING + LINE_HEIGHT - 3, card.title, BOLD_SIZE, "b")
    for number, line in enumerate(card.lines, 2):
        yield _text(width / 2, PADDING + LINE_HEIGHT * number - 3, line, TEXT_SIZE, "s")
    x = PADDING
    for name, scene in card.inner.items():
        yield from _frame(name, scene, (x, card.head_height))
        x += scene.outer_size[0] + PADDING
    yield "</g>"


def _frame(name: str, scene: Scene, place: Point) -> Iterator[str]:
    """Yield a graph within a node: a frame with its name, and what is in it."""
    width, height = scene.outer_size
    yield f'<g transform="translate({_number(place[0])} {_number(place[1])})">'
    yield f'<rect class="f" width="{_number(width)}" height="{_number(height)}" rx="4"/>'
    yield _text(PADDING, LINE_HEIGHT - 2, escaped(name), TEXT_SIZE, "b", anchor="start")
    yield f'<g transform="translate({_number(PADDING)} {_number(PADDING + LINE_HEIGHT)})">'
    yield from _scene(scene)
    yield "</g></g>"


def _line(points: tuple[Point, ...]) -> str:
    """Return a path: curves between layers, straight down through a layer."""
    (x, y), *rest = points
    parts = [f"M{_number(x)} {_number(y)}"]
    for next_x, next_y in rest:
        if (next_x, next_y) == (x, y):
            continue
        if abs(next_x - x) < 0.05:
            parts.append(f"V{_number(next_y)}")
        else:
            middle = _number((y + next_y) / 2)
            parts.append(f"C{_number(x)} {middle} {_number(next_x)} {middle} {_number(next_x)} {_number(next_y)}")
        x, y = next_x, next_y
    return "".join(parts)


def _text(x: float, y: float, text: str, size: int, style: str, anchor: str = "middle") -> str:
    place = f'x="{_number(x)}" y="{_number(y)}" font-size="{size}"'
    return f'<text class="{style}" {place} text-anchor="{anchor}">{escape(text)}</text>'


def _heat_colour(heat: float) -> str:
    """Return a colour from white, over yellow, to red."""
    share = min(max(heat, 0.0), 1.0)
    warm, hot = min(share / 0.3, 1.0), max(share - 0.3, 0.0) / 0.7
    green, blue = round(255 - 15 * warm - 105 * hot), round(255 - 105 * warm - 30 * hot)
    return f"#ff{green:02x}{blue:02x}"


def _number(value: float) -> str:
    """Return a coordinate with one decimal place, without what says nothing."""
    text = f"{value:.1f}"
    return text[:-2] if text.endswith(".0") else text
