"""Checks of the numbers that update rules take."""

from __future__ import annotations

import math
from typing import Any

from deep500.core.errors import TrainingError

__all__ = ["finite", "flag", "fraction", "non_negative", "positive"]


def finite(name: str, value: Any) -> float:
    """Return a finite number as a Python ``float``; see :func:`non_negative`."""
    number = _number(value)
    if not -math.inf < number < math.inf:
        raise TrainingError(f"{name} was given as {_shown(value)}; accepted are finite numbers.")
    return number


def flag(name: str, value: Any) -> bool:
    """Return a truth value.

    Raises:
        TrainingError: It is none.
    """
    if not isinstance(value, bool):
        raise TrainingError(f"{name} was given as {_shown(value)}; accepted are True and False.")
    return value


def non_negative(name: str, value: Any) -> float:
    """Return a finite number from 0 as a Python ``float``.

    NumPy's own float64 would make float32 tensors float64.

    Raises:
        TrainingError: It is none.
    """
    number = _number(value)
    if not 0.0 <= number < math.inf:
        raise TrainingError(f"{name} was given as {_shown(value)}; accepted are finite numbers from 0.")
    return number


def positive(name: str, value: Any) -> float:
    """Return a finite number above 0 as a Python ``float``; see :func:`non_negative`."""
    number = _number(value)
    if not 0.0 < number < math.inf:
        raise TrainingError(f"{name} was given as {_shown(value)}; accepted are finite numbers above 0.")
    return number


def fraction(name: str, value: Any) -> float:
    """Return a number from 0 to below 1 as a Python ``float``; see :func:`non_negative`."""
    number = _number(value)
    if not 0.0 <= number < 1.0:
        raise TrainingError(f"{name} was given as {_shown(value)}; accepted are numbers from 0 to below 1.")
    return number


def _number(value: Any) -> float:
    """Return NaN, which every check refuses, for what is not a number."""
    if isinstance(value, (bool, str, bytes)):
        return math.nan
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan


def _shown(value: Any) -> str:
    try:
        return repr(value)
    except ValueError:  # a number of more digits than Python writes
        return f"a {type(value).__name__} of very many digits"
