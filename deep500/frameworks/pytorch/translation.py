"""From a program to a ``torch.fx.GraphModule``.

Lowerings are ordinary functions over tensors. They run once, on fx proxies, and what they do is recorded; after that
only PyTorch's own calls run. ``torch.compile``, ``torch.export``, hooks and profilers work on the result.
"""

from __future__ import annotations

import builtins
import keyword
from collections.abc import Mapping

import torch
from torch import fx

from deep500.core.errors import InvalidNetworkError
from deep500.frameworks.pytorch.lowering import lowerings
from deep500.networks.program import Program

__all__ = ["StoredTensors", "python_name", "translate"]


class StoredTensors(torch.nn.Module):
    """Parameters, states and constants of a network, shared by all programs translated from it.

    ONNX names are any text; PyTorch wants attribute names. :attr:`attributes` maps the first to the second.
    """

    def __init__(self) -> None:
        """Start empty."""
        super().__init__()
        self.attributes: dict[str, str] = {}

    def add(self, name: str, tensor: torch.Tensor, *, trained: bool) -> None:
        """Keep a tensor under its ONNX name."""
        attribute = python_name(name, set(self.attributes.values()))
        self.attributes[name] = attribute
        if trained:
            self.register_parameter(attribute, torch.nn.Parameter(tensor))
        else:
            self.register_buffer(attribute, tensor)

    def tensor(self, name: str) -> torch.Tensor:
        """Return the tensor of an ONNX name; ``KeyError`` when there is none."""
        found = getattr(self, self.attributes[name])
        assert isinstance(found, torch.Tensor)
        return found


#: What the lowerings call that may return its first argument in another arrangement instead of a copy.
_VIEWS = {torch.reshape, torch.flatten, torch.permute, torch.squeeze, torch.unsqueeze, "to", "t"}

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
    tracer = fx.proxy.GraphAppendingTracer(graph)
    values: dict[str, fx.Proxy] = {}
    taken: set[str] = set()
    for name in program.inputs:
        argument = python_name(name, taken)
        taken.add(argument)
        values[name] = fx.Proxy(graph.placeholder(argument), tracer)
    used: dict[str, torch.Tensor] = {}
    for name in (*program.parameters, *program.states, *program.constants):
        attribute = stored.attributes[name]
        used[attribute] = stored.tensor(name)
        values[name] = fx.Proxy(graph.create_node("get_attr", attribute), tracer)
    for node in program.nodes:
        lowering = lowerings.find(node)
        results = lowering(node, *(values[name] if name else None for name in node.inputs))
        results = results if isinstance(results, tuple) else (results,)
        wanted = [name for name in node.outputs if name]
        if len(results) < len(wanted):
            raise InvalidNetworkError(f"{node.label} has {len(wanted)} outputs; its lowering gives {len(results)}.")
        values.update((name, value) for name, value in zip(node.outputs, results) if name)
    returned = [values[name].node for name in (*program.outputs, *program.state_updates.values())]
    nodes = [graph.call_method("clone", (node,)) if _is_view(node) else node for node in returned]
    graph.output(tuple(nodes))
    _drop_unused(graph)
    root = _attribute_holder(used)
    return fx.GraphModule(root, graph, class_name="Deep500Program")


def _is_view(node: fx.Node) -> bool:
    """Whether a value may share memory with a stored tensor, or with one that was fed, and would change with it."""
    while node.op in ("call_function", "call_method") and node.target in _VIEWS:
        node = node.all_input_nodes[0]
    return node.op in ("get_attr", "placeholder")


def _drop_unused(graph: fx.Graph) -> None:
    """Remove calls whose results nobody uses; in-place calls on fresh tensors are kept by their users."""
    for node in reversed(graph.nodes):
        if node.op in ("get_attr", "call_function") and not node.users:
            graph.erase_node(node)


def _attribute_holder(tensors: Mapping[str, torch.Tensor]) -> torch.nn.Module:
    holder = torch.nn.Module()
    for attribute, tensor in tensors.items():
        if isinstance(tensor, torch.nn.Parameter):
            holder.register_parameter(attribute, tensor)
        else:
            holder.register_buffer(attribute, tensor)
    return holder
