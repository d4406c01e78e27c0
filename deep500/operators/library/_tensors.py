"""What the operators share on tensors: checks of the inputs, dtypes to compute in, axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from ml_dtypes import bfloat16

from deep500.core.errors import OperatorError
from deep500.operators.operator import Array, OptionalArray

__all__ = [
    "as_axes",
    "check_dtypes",
    "compute_dtype",
    "is_float",
    "normalise_axis",
    "present",
    "returned",
    "take_inputs",
]

_HALF = (np.dtype(np.float16), np.dtype(bfloat16))
_FLOAT = (np.dtype(np.float32), np.dtype(np.float64), *_HALF)
_ACCEPTED = {"floats": ("", ""), "signed": ("i", " and signed integers"), "numbers": ("iu", " and integers")}


def is_float(dtype: np.dtype[Any]) -> bool:
    """Whether a dtype is one of float16, bfloat16, float32, float64: those by which one can differentiate."""
    return dtype in _FLOAT


def compute_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype in which to compute: float32 for float16 and bfloat16, else the dtype itself.

    NumPy has no BLAS for 16-bit floats, and sums in them lose most digits after a few hundred terms.
    """
    return np.dtype(np.float32) if dtype in _HALF else dtype


def take_inputs(
    operator: str, inputs: Sequence[OptionalArray], required: Sequence[str], optional: Sequence[str] = ()
) -> list[OptionalArray]:
    """Return the inputs, one for every name, ``None`` for optional ones that are absent.

    Args:
        operator: Name of the operator, for the message.
        inputs: What ``forward`` was given; trailing optional inputs may be left out.
        required: Names of the inputs that must be there.
        optional: Names of the inputs after those.

    Raises:
        OperatorError: A required input is missing, or there are more inputs than names.
    """
    names = [*required, *optional]
    received = [None if x is None else np.asarray(x) for x in inputs]
    if len(received) > len(names):
        raise OperatorError(f"{operator}: received {len(received)} inputs; accepted are {', '.join(names)}.")
    received += [None] * (len(names) - len(received))
    missing = [name for name, x in zip(required, received, strict=False) if x is None]
    if missing:
        raise OperatorError(f"{operator}: the input {missing[0]} is missing; required are {', '.join(required)}.")
    return received


def present(x: OptionalArray) -> Array:
    """Narrow the type of an input that :func:`take_inputs` has found to be there."""
    assert x is not None
    return x


def returned(gradients: Sequence[OptionalArray], inputs: Sequence[OptionalArray]) -> tuple[OptionalArray, ...]:
    """Return one gradient for every input that ``forward`` was given, in that input's shape and dtype.

    Args:
        gradients: One for every input that the operator knows, in any dtype.
        inputs: What ``forward`` was given.
    """
    result: list[OptionalArray] = []
    for gradient, x in zip(gradients, inputs, strict=False):
        if gradient is None or x is None:
            result.append(None)
        else:
            result.append(np.asarray(gradient).astype(np.asarray(x).dtype, copy=False))
    return tuple(result)


def check_dtypes(
    operator: str,
    names: Sequence[str],
    inputs: Sequence[OptionalArray],
    accepted: Literal["floats", "signed", "numbers"],
) -> None:
    """Check that tensors share one dtype.

    Args:
        operator: Name of the operator, for the message.
        names: Names of the tensors, for the message.
        inputs: The tensors; absent ones are skipped.
        accepted: Which dtypes are accepted: floats, also signed integers, or also unsigned ones.

    Raises:
        OperatorError: The dtypes differ, or are not accepted.
    """
    found = {name: x.dtype for name, x in zip(names, inputs, strict=False) if x is not None}
    text = f"{operator}: received " + ", ".join(f"{name} of {dtype}" for name, dtype in found.items())
    dtypes = set(found.values())
    if len(dtypes) > 1:
        raise OperatorError(f"{text}; accepted are inputs of one dtype (Cast converts).")
    kinds, meaning = _ACCEPTED[accepted]
    if not all(is_float(dtype) or dtype.kind in kinds for dtype in dtypes):
        raise OperatorError(f"{text}; accepted are float16, bfloat16, float32, float64{meaning}.")


def normalise_axis(operator: str, axis: int, rank: int, *, name: str = "axis") -> int:
    """Return an axis counted from the front.

    Args:
        operator: Name of the operator, for the message.
        axis: The axis; negative ones count from the back.
        rank: Rank of the tensor that has the axis.
        name: What the axis is called, for the message.

    Raises:
        OperatorError: The axis is not in ``[-rank, rank - 1]``.
    """
    if not -rank <= axis < rank:
        accepted = f"from {-rank} to {rank - 1}" if rank else "none, the tensor is a scalar"
        raise OperatorError(f"{operator}: {name} is {axis} for a tensor of rank {rank}; accepted is {accepted}.")
    return axis % rank


def as_axes(operator: str, axes: Array, rank: int) -> tuple[int, ...]:
    """Return the axes that a tensor holds, counted from the front and sorted.

    Args:
        operator: Name of the operator, for the message.
        axes: Integers, ``[n]`` or a scalar.
        rank: Rank of the tensor that has the axes.

    Raises:
        OperatorError: The tensor does not hold integers in one dimension, an axis is out of range or there twice.
    """
    if axes.dtype.kind not in "iu" or axes.ndim > 1:
        raise OperatorError(
            f"{operator}: the input axes is of {axes.dtype} and shape {axes.shape}; accepted is int64 of one dimension."
        )
    result = tuple(normalise_axis(operator, int(axis), rank, name="an entry of axes") for axis in axes.reshape(-1))
    if len(set(result)) != len(result):
        raise OperatorError(f"{operator}: axes is {axes.tolist()}; accepted are axes that differ from one another.")
    return tuple(sorted(result))
