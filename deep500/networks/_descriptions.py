"""What a graph says of its own tensors: dtypes and shapes by name, and the part each of them plays."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from typing import Any

import onnx_ir as ir
from numpy.typing import NDArray

from deep500.core.errors import InvalidNetworkError
from deep500.core.tensor_descriptor import TensorDescriptor
from deep500.networks.operator_node import describe_type, describe_value
from deep500.networks.tensor_roles import TensorRole, initializer_role

__all__ = ["described_tensors", "described_values", "hash_tensors", "stored_tensors"]


def stored_tensors(graph: ir.Graph, role: TensorRole) -> dict[str, TensorDescriptor]:
    """Return dtype and shape of the stored tensors of a role, by name.

    They come in the order in which the nodes read them: the order in a file says nothing, tools change it.

    Args:
        graph: The graph.
        role: The role.

    Raises:
        InvalidNetworkError: One of them has no element type.
    """
    initializers = graph.initializers
    read = [v.name for node in graph for v in node.inputs if v is not None and v.name]
    ordered = dict.fromkeys([*(name for name in read if name in initializers), *sorted(initializers)])
    return described_tensors(graph, (initializers[n] for n in ordered if initializer_role(initializers[n]) is role))


def described_tensors(graph: ir.Graph, values: Iterable[ir.Value]) -> dict[str, TensorDescriptor]:
    """Return dtype and shape of values that are tensors, by name.

    Args:
        graph: The graph that has them.
        values: The values.

    Raises:
        InvalidNetworkError: One of them has no element type.
    """
    described: dict[str, TensorDescriptor] = {}
    for value in values:
        descriptor = describe_value(value)
        if descriptor is None:
            raise _without_type(graph, value)
        described[value.name or ""] = descriptor
    return described


def described_values(graph: ir.Graph, values: Iterable[ir.Value], *, known: bool) -> dict[str, Any]:
    """Return what is known of values of any kind, by name; see :mod:`deep500.core.value_descriptor`.

    Args:
        graph: The graph that has them.
        values: The values.
        known: Whether at least the element type has to be known; else it is ``None`` where it is not.

    Raises:
        InvalidNetworkError: It has to, and is not.
    """
    described = {}
    for value in values:
        descriptor = describe_type(value.type, value.shape)
        if descriptor is None and known:
            raise _without_type(graph, value)
        described[value.name or ""] = descriptor
    return described


def hash_tensors(names: Iterable[str], fetch: Callable[[str], NDArray[Any]]) -> str:
    """Return the SHA-256 over name, dtype, shape and bytes of tensors, as a hexadecimal text.

    Args:
        names: Their names; the order does not matter.
        fetch: Returns a tensor by its name.
    """
    digest = hashlib.sha256()
    for name in sorted(names):
        value = fetch(name)
        digest.update(f"{name}:{value.dtype.name}:{value.shape};".encode())
        digest.update(value.tobytes())
    return digest.hexdigest()


def _without_type(graph: ir.Graph, value: ir.Value) -> InvalidNetworkError:
    name = graph.name or "network"
    return InvalidNetworkError(f"Tensor {value.name!r} of network {name!r} has no element type that can be used.")
