"""The same operator in wider floats, and how exact an operator's results can be expected to be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from deep500.core.tensor_descriptor import numpy_dtype
from deep500.core.texts import message_of
from deep500.measure.tolerance import tolerance, unit_roundoff
from deep500.operators.operator import Array, Operator, OptionalArray
from deep500.operators.validation.contract import REFUSALS, call_forward, is_float

__all__ = ["Variant", "backward_error", "coarsest", "converted", "default_length", "float_names", "widest"]

#: No computation is taken to have fewer roundings on its longest path.
_LEAST_LENGTH = 16

#: How often a value of a backward in 16 bits may have been rounded to them: an output that it reads, a product with it,
#: one stored on the way, and the gradient that is handed over.
_NARROW_ROUNDINGS = 4


@dataclass(frozen=True)
class Variant:
    """An operator's call in other floats than the given ones.

    Attributes:
        inputs: The inputs, floats as ``dtype``.
        outputs: The outputs.
        dtype: The dtype of the inputs that are floats; several are joined by ``/``.
        is_wider: Whether it is wider than what was given.
        refusal: Why a wider one was not taken; empty where it was.
    """

    inputs: list[OptionalArray]
    outputs: tuple[Array, ...]
    dtype: str
    is_wider: bool
    refusal: str = ""


def widest(op: Operator, inputs: Sequence[OptionalArray]) -> Variant:
    """Return the operator's call in float64, else in float32 if that is wider than given, else as it was given.

    A conversion to wider floats is exact, so that the variants compute the same function at the same place. All floats
    are converted; where the operator refuses that, those of the narrowest dtype alone.

    Raises:
        OperatorError: The operator refuses even what was given.
    """
    refusal = ""
    for target in ("float64", "float32"):
        narrow = {x.dtype for x in inputs if x is not None and is_float(x) and _is_narrower(x.dtype, target)}
        if not narrow:
            break
        narrowest = max(narrow, key=unit_roundoff)
        for chosen in dict.fromkeys([frozenset(narrow), frozenset([narrowest])]):
            wide = [x.astype(target) if x is not None and x.dtype in chosen else x for x in inputs]
            try:
                outputs = call_forward(op, wide)
            except REFUSALS as error:
                refusal = refusal or f"{target} is refused: {message_of(error)}"
            else:
                return Variant(wide, outputs, float_names(wide), True, refusal)
    given = list(inputs)
    return Variant(given, call_forward(op, given), float_names(given), False, refusal)


def converted(inputs: Sequence[OptionalArray], dtype: Any) -> list[OptionalArray]:
    """Return the inputs with all floats in another dtype."""
    return [x.astype(numpy_dtype(dtype)) if x is not None and is_float(x) else x for x in inputs]


def float_names(arrays: Sequence[OptionalArray]) -> str:
    """Return the names of the float dtypes that occur, such as ``"float32"``, or ``"no floats"``."""
    names = dict.fromkeys(x.dtype.name for x in arrays if x is not None and is_float(x))
    return "/".join(names) or "no floats"


def coarsest(arrays: Sequence[OptionalArray]) -> str:
    """Return the name of the float dtype with the fewest digits among arrays, float64 where there is none."""
    names = [x.dtype.name for x in arrays if x is not None and is_float(x)]
    return max(names, key=unit_roundoff, default="float64")


def default_length(arrays: Sequence[OptionalArray]) -> int:
    """Return a reduction length that no operator on these tensors exceeds: the elements of the largest one."""
    return max([_LEAST_LENGTH, *(x.size for x in arrays if x is not None)])


def backward_error(dtype: str, length: int) -> float:
    """Return how far a gradient may be from the exact one, relative to the size of the terms it is made of.

    It is :func:`~deep500.measure.tolerance.tolerance` for the length of the reductions; 16-bit (and narrower) floats
    are summed in float32, and four roundings of the tensors themselves are added: of an output that the backward reads,
    a product with it, a value that is stored, and the gradient.
    """
    summed = tolerance(dtype, length).relative
    if unit_roundoff(dtype) > unit_roundoff("float32"):
        summed += _NARROW_ROUNDINGS * unit_roundoff(dtype)
    return summed


def _is_narrower(dtype: np.dtype[Any], target: str) -> bool:
    return unit_roundoff(dtype) > unit_roundoff(target)
