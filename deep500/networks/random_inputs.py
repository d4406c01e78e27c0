"""Inputs for a network of which nothing is known but its types: to run it, to compare it, to measure it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray

from deep500.core.errors import InvalidInputError, UnknownNameError, near_miss
from deep500.core.random import random_stream
from deep500.core.tensor_descriptor import TensorDescriptor
from deep500.networks.network import Network

__all__ = ["DEFAULT_SIZE", "random_inputs"]

#: What a symbolic size is taken for unless it is said.
DEFAULT_SIZE = 2

#: Inputs that are positions, by operator: which input, and which input they are positions in.
_POSITIONS = {"Gather": (1, 0), "GatherElements": (1, 0), "GatherND": (1, 0), "Scatter": (1, 0)}

#: Losses: their label is the number of a class.
_LOSSES = ("SoftmaxCrossEntropyLoss", "NegativeLogLikelihoodLoss")


def random_inputs(network: Network, sizes: Mapping[str, int] | None = None, seed: int = 0) -> dict[str, NDArray[Any]]:
    """Return a tensor for every input: normally distributed numbers, truth values, and integers that are in range.

    An integer is taken to be in range where it is below the size of what it is a position or a class in, as far as the
    network says that; other integers are 0 or 1.

    Args:
        network: The network.
        sizes: Sizes by the name of the symbol, such as ``{"batch": 16}``; :data:`DEFAULT_SIZE` for others.
        seed: Seed of the values.

    Raises:
        InvalidInputError: An input is no tensor of numbers, or has an unknown rank.
        UnknownNameError: No input has a size of that name.
    """
    given = dict(sizes or {})
    known = [size for descriptor in network.inputs.values() for size in getattr(descriptor, "shape", None) or ()]
    for name in given:
        if name not in known:
            symbols = sorted({size for size in known if isinstance(size, str)})
            raise UnknownNameError(
                f"No input has a size named {name!r}.{near_miss(name, symbols)} "
                f"Symbolic sizes: {', '.join(symbols) or 'none'}."
            )
    return {
        name: _random(network, name, descriptor, given, random_stream(seed, "input", name))
        for name, descriptor in network.inputs.items()
    }


def _random(
    network: Network, name: str, descriptor: Any, sizes: Mapping[str, int], stream: np.random.Generator
) -> NDArray[Any]:
    if not isinstance(descriptor, TensorDescriptor) or descriptor.dtype == "string" or descriptor.shape is None:
        raise InvalidInputError(f"No values can be made for input {name!r} ({descriptor}); give them.")
    shape = tuple(d if isinstance(d, int) else sizes.get(str(d), DEFAULT_SIZE) for d in descriptor.shape)
    dtype = descriptor.numpy_dtype
    if dtype.kind == "b":
        return stream.random(shape) < 0.5
    if dtype.kind in "iu":
        return stream.integers(0, _limit(network, name), shape).astype(dtype)
    values = stream.standard_normal(shape)
    return np.asarray(values + 1j * stream.standard_normal(shape) if dtype.kind == "c" else values).astype(dtype)


def _limit(network: Network, name: str) -> int:
    """Return the number below which an integer input has to be."""
    (value,) = (value for value in network.model.graph.inputs if value.name == name)
    return min([limit for node, index in value.uses() for limit in _limits(node, index)], default=2)


def _limits(node: ir.Node, index: int) -> list[int]:
    data = None
    axis = 0
    if node.op_type in _POSITIONS and index == _POSITIONS[node.op_type][0]:
        data = node.inputs[_POSITIONS[node.op_type][1]]
        axis = node.attributes["axis"].as_int() if "axis" in node.attributes else 0
    elif node.op_type in _LOSSES and index == 1:
        data, axis = node.inputs[0], 1
    if data is None or data.shape is None:
        return []
    size = data.shape[axis]
    return [size] if isinstance(size, int) and size > 0 else []
