"""How many floating-point operations one run does, from whatever knows it."""

from __future__ import annotations

import math
from typing import Any

from deep500.core.errors import InvalidInputError
from deep500.core.texts import shown

__all__ = ["count_flops"]

_ACCEPTED = (
    "accepted are the operations of one run as a number that is not negative, an object that counts them, such as a "
    "Network, with .flops(), and a Work that knows its flops"
)


def count_flops(work: Any) -> float:
    """Return the floating-point operations of one run.

    Args:
        work: Their number, an object with a method ``flops()`` (a ``Network``) or an attribute ``flops`` (a ``Work``).

    Raises:
        InvalidInputError: It is none of these, or the work does not know them.
    """
    flops = getattr(work, "flops", work)
    flops = flops() if callable(flops) else flops
    number = _number(flops)
    if number is None or not 0 <= number < math.inf:
        raise InvalidInputError(f"The floating-point operations were given as {shown(work)}; {_ACCEPTED}.")
    return number


def _number(value: Any) -> float | None:
    """Return a whole or real number, NumPy's included, as a float; ``None`` for anything else."""
    if isinstance(value, bool) or not hasattr(value, "__float__") or isinstance(value, str):
        return None
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return None
