"""Inputs for a network of which nothing is known but its types: to run it, to compare it, to measure it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray

from deep500.core.errors import InvalidInputError
from deep500.core.random import random_stream
from deep500.core.tensor_descriptor import STRING, TensorDescriptor
from deep500.networks.network import Network
from deep500.networks.symbolic_sizes import checked_sizes

__all__ = ["DEFAULT_SIZE", "index_limit", "random_inputs", "random_tensor", "random_values"]

#: What a symbolic size is taken for unless it is said.
DEFAULT_SIZE = 2

#: What integer tensors hold at most where nothing says it, plus one: valid as truth values, and as rows of any table.
_SMALLEST_RANGE = 2

#: Inputs that are positions along the node's axis of input 0, by operator.
_POSITIONS = {"Gather": 1, "GatherElements": 1, "Scatter": 1, "ScatterElements": 1}

#: Inputs that are positions in several axes of input 0 at once, by operator.
_PLACES = {"GatherND": 1, "ScatterND": 1}

#: Losses that compare class numbers, their input 1, with scores, their input 0.
_CLASS_LOSSES = ("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss")

#: Operators that hand on the values of their input 0.
_HANDING_ON = frozenset(
    (
        *("Cast", "Concat", "Expand", "Flatten", "Identity", "Reshape", "Slice", "Split", "Squeeze", "Tile"),
        *("Transpose", "Unsqueeze"),
    )
)

#: A shape as far as it is known; ``None`` where nothing is.
_Shape = Sequence[Any] | None


def random_inputs(
    network: Network, sizes: Mapping[str, int] | None = None, seed: int = 0, *, without: Collection[str] = ()
) -> dict[str, NDArray[Any]]:
    """Return a tensor for every input: normally distributed numbers, truth values, and integers that are in range.

    An integer is taken to be in range where it is below the size of what it is a position or a class in, as far as the
    network says that; other integers are 0 or 1.

    Args:
        network: The network.
        sizes: Sizes by the name of the symbol, such as ``{"batch": 16}``; :data:`DEFAULT_SIZE` for others.
        seed: Seed of the values.
        without: Names of inputs for which none are made.

    Raises:
        InvalidInputError: An input is no tensor of numbers, or has an unknown rank; or a size is not accepted.
        UnknownNameError: No input has a size of that name.
    """
    given = checked_sizes(network, sizes, least=0)
    wanted = {name: descriptor for name, descriptor in network.inputs.items() if name not in without}
    shapes = {name: _bound_shape(name, descriptor, given) for name, descriptor in wanted.items()}
    return random_values(network, shapes, lambda name: random_stream(seed, "input", name))


def random_values(
    network: Network, shapes: Mapping[str, Sequence[int]], stream_of: Callable[[str], np.random.Generator]
) -> dict[str, NDArray[Any]]:
    """Return a tensor for some inputs of a network; see :func:`random_inputs`.

    Args:
        network: The network.
        shapes: The shape of each of them, by name.
        stream_of: Makes the stream that the numbers of an input come from.

    Raises:
        InvalidInputError: An input is no tensor of numbers.
    """
    values = {value.name: value for value in network.model.graph.inputs}
    drawn = {}
    for name, shape in shapes.items():
        descriptor = _numbers(name, network.inputs[name])
        below = min(_limits(values[name], set()), default=None)
        drawn[name] = random_tensor(TensorDescriptor(descriptor.dtype, tuple(shape)), stream_of(name), below=below)
    return drawn


def random_tensor(
    descriptor: TensorDescriptor, stream: np.random.Generator, *, below: int | None = None, positive: bool = False
) -> NDArray[Any]:
    """Draw a tensor: floats from the standard normal distribution, whole numbers and truth values uniformly.

    Args:
        descriptor: Dtype and shape; every size is known.
        stream: Where the numbers come from.
        below: Whole numbers are from 0 to below this, as far as the dtype holds them; by default 0 and 1.
        positive: Draw floats uniformly from [0.5, 1.5) instead, where every elementary function is finite.

    Raises:
        InvalidInputError: The values are texts, or do not fit into memory.
    """
    sizes = [size for size in descriptor.shape or () if isinstance(size, int)]
    if descriptor.dtype == STRING:
        raise InvalidInputError(f"Values of {descriptor} cannot be made up: they are texts. Give them.")
    try:
        return _drawn(descriptor.numpy_dtype, sizes, stream, below or _SMALLEST_RANGE, positive)
    except (MemoryError, OverflowError, ValueError) as error:
        raise InvalidInputError(f"Values of {descriptor} do not fit into memory: {error}") from error


def index_limit(op_type: str, index: int, shape: _Shape, axis: int | None = None) -> int | None:
    """Return the number below which an operator's integer input is: positions in a tensor, or classes of a loss.

    Args:
        op_type: The operator, of ONNX' own domain.
        index: The number of the input.
        shape: Shape of the operator's input 0, in which the positions are.
        axis: The operator's axis, where it was given.

    Returns:
        The number; ``None`` where the input is neither, or the size is not known.
    """
    if shape is None:
        return None
    if op_type in _CLASS_LOSSES and index == 1:
        sizes = list(shape[1:2])
    elif _POSITIONS.get(op_type) == index:
        sizes = [shape[axis or 0]] if -len(shape) <= (axis or 0) < len(shape) else []
    elif _PLACES.get(op_type) == index:
        sizes = [size for size in shape if isinstance(size, int)]  # whichever axes the places are in
    else:
        sizes = []
    known = [size for size in sizes if isinstance(size, int) and size > 0]
    return min(known) if known else None


def _drawn(
    dtype: np.dtype[Any], sizes: list[int], stream: np.random.Generator, below: int, positive: bool
) -> NDArray[Any]:
    kind = dtype.kind
    if dtype.name in ("int2", "uint2", "int4", "uint4"):  # of kind V: they are not NumPy's own
        return stream.integers(0, min(below, _SMALLEST_RANGE), sizes).astype(dtype)
    if kind in "iu":
        return stream.integers(0, min(below, np.iinfo(dtype).max + 1), sizes).astype(dtype)
    if kind == "b":
        return stream.integers(0, 2, sizes).astype(bool)
    wide = np.float64 if dtype.itemsize > (8 if kind == "c" else 4) else np.float32

    def floats() -> NDArray[Any]:
        made: Any = stream.random(sizes, wide) + wide(0.5) if positive else stream.standard_normal(sizes, wide)
        return np.asarray(made)

    values = floats()
    return np.asarray(values + 1j * floats() if kind == "c" else values).astype(dtype)


def _numbers(name: str, descriptor: Any) -> TensorDescriptor:
    """Check that values can be made for an input.

    Raises:
        InvalidInputError: They cannot.
    """
    if not isinstance(descriptor, TensorDescriptor) or descriptor.dtype == STRING:
        what = "texts" if isinstance(descriptor, TensorDescriptor) else "no tensor"
        raise InvalidInputError(f"No values can be made for input {name!r} ({descriptor}), which is {what}; give them.")
    return descriptor


def _bound_shape(name: str, descriptor: Any, sizes: Mapping[str, int]) -> tuple[int, ...]:
    shape = _numbers(name, descriptor).shape
    if shape is None:
        raise InvalidInputError(f"No values can be made for input {name!r} ({descriptor}), whose rank is not known.")
    return tuple(size if isinstance(size, int) else sizes.get(str(size), DEFAULT_SIZE) for size in shape)


def _limits(value: ir.Value, seen: set[ir.Value]) -> Iterator[int]:
    """Yield the numbers below which a value has to be, wherever it is handed on to."""
    if value in seen:
        return
    seen.add(value)
    for node, index in value.uses():
        if node.domain:
            continue
        data = node.inputs[0] if node.inputs else None
        axis = node.attributes["axis"].as_int() if "axis" in node.attributes else None
        shape = None if data is None or data.shape is None else list(data.shape)
        limit = index_limit(node.op_type, index, shape, axis)
        if limit is not None:
            yield limit
        if node.op_type in _HANDING_ON and (index == 0 or node.op_type == "Concat"):
            for output in node.outputs:
                yield from _limits(output, seen)
