"""Checks of operator attributes, so that every operator refuses a bad one in the same words."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from deep500.core.errors import OperatorError

__all__ = ["choice", "flag", "integer", "integers", "real"]

_LARGEST = float(np.finfo(np.float32).max)


def _refuse(operator: str, name: str, value: Any, accepted: str) -> NoReturn:
    raise OperatorError(f"{operator}: the attribute {name} is {value!r}; accepted is {accepted}.")


def integer(operator: str, name: str, value: Any, *, minimum: int | None = None) -> int:
    """Return an attribute of the type INT.

    Args:
        operator: Name of the operator, for the message.
        name: Name of the attribute, for the message.
        value: What was given.
        minimum: The smallest value that is accepted.

    Raises:
        OperatorError: It is not an integer, or smaller than the minimum.
    """
    if not isinstance(value, numbers.Integral) or (minimum is not None and value < minimum):
        _refuse(operator, name, value, "an integer" if minimum is None else f"an integer from {minimum} on")
    return int(value)


def integers(operator: str, name: str, value: Any, *, minimum: int | None = None) -> tuple[int, ...] | None:
    """Return an attribute of the type INTS as a tuple; ``None`` where it was left out.

    Args:
        operator: Name of the operator, for the message.
        name: Name of the attribute, for the message.
        value: What was given.
        minimum: The smallest entry that is accepted.

    Raises:
        OperatorError: It is not a sequence of integers, or an entry is smaller than the minimum.
    """
    if value is None:
        return None
    entries = value.tolist() if hasattr(value, "tolist") else value
    if (
        not isinstance(entries, Sequence)
        or isinstance(entries, (str, bytes))
        or not all(isinstance(entry, numbers.Integral) for entry in entries)
        or (minimum is not None and any(entry < minimum for entry in entries))
    ):
        _refuse(operator, name, value, "a list of integers" + ("" if minimum is None else f" from {minimum} on"))
    return tuple(int(entry) for entry in entries)


def flag(operator: str, name: str, value: Any) -> bool:
    """Return an attribute of the type INT that stands for a truth value.

    Args:
        operator: Name of the operator, for the message.
        name: Name of the attribute, for the message.
        value: What was given.

    Raises:
        OperatorError: It is neither 0 nor 1.
    """
    if not isinstance(value, numbers.Integral) or value not in (0, 1):
        _refuse(operator, name, value, "0 or 1")
    return bool(value)


def real(operator: str, name: str, value: Any) -> float:
    """Return an attribute of the type FLOAT, rounded to float32.

    ONNX stores FLOAT attributes, defaults too, in float32, so a number means the same here whether it was read from a
    model or given in Python.

    Args:
        operator: Name of the operator, for the message.
        name: Name of the attribute, for the message.
        value: What was given.

    Raises:
        OperatorError: It is not a number, or not finite.
    """
    if not isinstance(value, numbers.Real) or not abs(float(value)) <= _LARGEST:
        _refuse(operator, name, value, "a finite number in the range of float32")
    return float(np.float32(float(value)))


def choice(operator: str, name: str, value: Any, accepted: Sequence[str]) -> str:
    """Return an attribute of the type STRING that has a few accepted values.

    Args:
        operator: Name of the operator, for the message.
        name: Name of the attribute, for the message.
        value: What was given.
        accepted: The accepted values.

    Raises:
        OperatorError: It is none of them.
    """
    if value not in accepted:
        _refuse(operator, name, value, "one of " + ", ".join(accepted))
    return str(value)
