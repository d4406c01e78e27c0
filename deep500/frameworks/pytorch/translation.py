"""From a program to a ``torch.fx.GraphModule``.

Lowerings are ordinary functions over tensors. They run once, on fx proxies, and what they do is recorded; after that
only PyTorch's own calls run. ``torch.compile``, ``torch.export``, hooks and profilers work on the result.
"""

from __future__ import annotations

import builtins
import keyword
import operator
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import fx

from deep500.core.errors import InvalidNetworkError
from deep500.frameworks.pytorch._arrays import to_tensor
from deep500.frameworks.pytorch._fusion import fuse_linear
from deep500.frameworks.pytorch._recording import ProgramTracer, recorded, returns_view
from deep500.frameworks.pytorch._sizes import constant_inputs, follow, known_integers, with_constants
from deep500.frameworks.pytorch.lowering import lowerings
from deep500.frameworks.pytorch.lowering._statistics import drop_unused_gradients
from deep500.networks.operator_node import OperatorNode, Subprogram
from deep500.networks.program import Program

__all__ = ["StoredTensors", "python_name", "translate", "translate_subprogram"]


class StoredTensors(torch.nn.Module):
    """Parameters, states and constants of a network, shared by all programs translated from it.

    ONNX names are any text; PyTorch wants attribute names. :attr:`attributes` maps the first to the second.
    """

    def __init__(self) -> None:
        """Start empty."""
        super().__init__()
        self.attributes: dict[str, str] = {}
        self._taken = {"_taken", *dir(self)}

    def add(self, name: str, tensor: Any, *, trained: bool) -> None:
        """Keep a tensor, or an array of texts, under its ONNX name."""
        attribute = python_name(name, self._taken)
        self.attributes[name] = attribute
        self._taken.add(attribute)
        if trained:
            self.register_parameter(attribute, torch.nn.Parameter(tensor))
        elif isinstance(tensor, torch.Tensor):
            self.register_buffer(attribute, tensor)
        else:
            setattr(self, attribute, tensor)

    def value(self, name: str) -> Any:
        """Return what is kept under an ONNX name; ``KeyError`` when there is nothing."""
        return getattr(self, self.attributes[name])

    def tensor(self, name: str) -> torch.Tensor:
        """Return the tensor of an ONNX name; ``KeyError`` when there is none."""
        found = self.value(name)
        assert isinstance(found, torch.Tensor)
        return found


#: What the lowerings call that may return its first argument in another arrangement instead of a copy.
_VIEWS: frozenset[Any] = frozenset(
    {
        torch.reshape,
        torch.flatten,
        torch.permute,
        torch.squeeze,
        torch.unsqueeze,
        torch.select,
        torch.narrow,
        torch.split,
        operator.getitem,
        "to",
        "t",
        "expand",
    }
)

#: Names that a module has already, and those that generated code uses.
_RESERVED = frozenset(
    {*dir(fx.GraphModule(torch.nn.Module(), fx.Graph())), "attributes", "self", "torch", "device", "inf", "nan"}
    | {"fx_pytree", "pytree", "NoneType"}
)


def python_name(name: str, taken: set[str]) -> str:
    """Return an attribute name that resembles an ONNX name and is none of ``taken``."""
    base = "".join(c if c.isalnum() and c.isascii() else "_" for c in name)
    reserved = base in _RESERVED or keyword.iskeyword(base) or hasattr(builtins, base)
    base = f"t_{base}" if not base or base[0].isdigit() or base.startswith("__") or reserved else base
    candidate, count = base, 1
    while candidate in taken:
        count += 1
        candidate = f"{base}_{count}"
    return candidate


def translate(program: Program, stored: StoredTensors) -> fx.GraphModule:
    """Translate a program.

    Args:
        program: What is to run.
        stored: The tensors that it reads. They become attributes of the module itself, not copies.

    Returns:
        A module whose arguments are ``program.inputs`` and whose result is the tuple of ``program.outputs`` followed by
        the next values of the states, in the order of ``program.state_updates``.

    Raises:
        UnsupportedOperatorError: A node has no lowering.
    """
    graph = fx.Graph()
    tracer = ProgramTracer(graph)
    values = _placeholders(program.inputs, graph, tracer)
    used: dict[str, Any] = {}
    for name in (*program.parameters, *program.states, *program.constants):
        attribute = stored.attributes[name]
        used[attribute] = stored.value(name)
        values[name] = fx.Proxy(graph.create_node("get_attr", attribute), tracer)
    _lower(program.nodes, values, tracer)
    returned = [values[name] for name in (*program.outputs, *program.state_updates.values())]
    graph.output(tuple(_own(value) for value in returned))
    _drop_unused(graph)
    drop_unused_gradients(graph, len(program.outputs))
    fuse_linear(graph, used)
    return fx.GraphModule(
        _attribute_holder({**used, **tracer.tensors}, tracer.modules), graph, class_name="Deep500Program"
    )


def translate_subprogram(program: Subprogram) -> fx.GraphModule:
    """Translate a graph that a node holds.

    Returns:
        A module whose arguments are the graph's inputs followed by the tensors that it captures, and whose result is
        the tuple of its outputs.

    Raises:
        UnsupportedOperatorError: A node has no lowering.
    """
    graph = fx.Graph()
    tracer = ProgramTracer(graph)
    values = _placeholders((*program.inputs, *program.captured), graph, tracer)
    used: dict[str, Any] = {}
    for name, value in program.stored.items():
        attribute = python_name(name, set(used))
        used[attribute] = value if value.dtype.kind == "O" else to_tensor(value)
        values[name] = fx.Proxy(graph.create_node("get_attr", attribute), tracer)
    _lower(program.nodes, values, tracer)
    graph.output(tuple(getattr(values[name], "node", values[name]) for name in program.outputs))
    _drop_unused(graph)
    return fx.GraphModule(
        _attribute_holder({**used, **tracer.tensors}, tracer.modules), graph, class_name="Deep500Subprogram"
    )


def _placeholders(names: Iterable[str], graph: fx.Graph, tracer: ProgramTracer) -> dict[str, Any]:
    values: dict[str, Any] = {}
    taken: set[str] = set()
    for name in names:
        argument = python_name(name, taken)
        taken.add(argument)
        values[name] = fx.Proxy(graph.placeholder(argument), tracer)
    return values


def _lower(nodes: Sequence[OperatorNode], values: dict[str, Any], tracer: ProgramTracer) -> None:
    """Record nodes, and add what they compute to the values."""
    for node in nodes:
        lowering = lowerings.find(node)
        inputs = [values[name] if name else None for name in (*node.inputs, *node.captured)]
        integers = known_integers(node, inputs)
        completed = with_constants(node, inputs, integers)
        with tracer.recording():
            results = lowering(completed, *(constant_inputs(completed) or inputs))
        results = results if isinstance(results, tuple) else (results,)
        wanted = [name for name in node.outputs if name]
        if len(results) < len(wanted):
            raise InvalidNetworkError(f"{node.label} has {len(wanted)} outputs; its lowering gives {len(results)}.")
        for name, value in zip(node.outputs, results):
            if name:
                values[name] = tracer.hold(value) if isinstance(value, torch.Tensor) else value
        followed = follow(node, inputs, integers)
        if followed is not None and node.outputs[0] and isinstance(values[node.outputs[0]], fx.Proxy):
            tracer.integers[values[node.outputs[0]].node] = followed


def _own(value: Any) -> Any:
    """Return the node of a value that shares no memory with what is stored or was fed; an empty list, None as such."""
    if not isinstance(value, fx.Proxy):
        return value
    node = value.node
    assert isinstance(node, fx.Node)
    if _is_held(node) or (_is_view(node) and (returns_view(node.target) or node.op in ("placeholder", "get_attr"))):
        copied: fx.Node = _copied(value).node
        return copied
    return node.graph.call_method("clone", (node,)) if _is_view(node) else node


@recorded
def _copied(value: Any) -> Any:
    """Return a copy of a value of any kind."""
    if isinstance(value, (list, tuple)):
        return [_copied(entry) for entry in value]
    return value.clone() if isinstance(value, torch.Tensor) else value


def _is_held(node: fx.Node) -> bool:
    """Whether a value comes out of a module or a list, and could be anything that went in."""
    while node.op == "call_function" and node.target is operator.getitem:
        source = node.args[0]
        if not isinstance(source, fx.Node):
            return False
        node = source
    return node.op == "call_module"


def _is_view(node: fx.Node) -> bool:
    """Whether a value may share memory with a stored tensor, or with one that was fed, and would change with it."""
    if node.op in ("call_function", "call_method") and (node.target in _VIEWS or returns_view(node.target)):
        return any(_is_view(source) for source in node.all_input_nodes)
    return node.op in ("get_attr", "placeholder")


def _drop_unused(graph: fx.Graph) -> None:
    """Remove calls whose results nobody uses; in-place calls on fresh tensors are kept by their users."""
    for node in reversed(graph.nodes):
        # Of methods only those are recorded without need that tell sizes.
        if not node.users and (node.op in ("get_attr", "call_function") or node.target in ("size", "numel")):
            graph.erase_node(node)


def _attribute_holder(tensors: Mapping[str, Any], modules: Mapping[str, torch.nn.Module]) -> torch.nn.Module:
    holder = torch.nn.Module()
    for name, module in modules.items():
        holder.add_module(name, module)
    for attribute, tensor in tensors.items():
        if isinstance(tensor, torch.nn.Parameter):
            holder.register_parameter(attribute, tensor)
        elif isinstance(tensor, torch.Tensor):
            holder.register_buffer(attribute, tensor)
        else:
            setattr(holder, attribute, tensor)
    return holder
