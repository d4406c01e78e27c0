"""Whole numbers that a user gives."""

from __future__ import annotations

from typing import Any

import numpy as np

from deep500.core.errors import Deep500Error, InvalidInputError
from deep500.core.texts import shown

__all__ = ["check_count"]


def check_count(name: str, value: Any, *, least: int, error: type[Deep500Error] = InvalidInputError) -> int:
    """Return a whole number that is large enough, as Python's ``int``.

    Args:
        name: What messages call it.
        value: What was given.
        least: The smallest number that is accepted.
        error: What is raised otherwise.

    Raises:
        Deep500Error: Of the kind ``error``: it is no whole number, or too small.
    """
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)) or value < least:
        raise error(f"{name} was given as {shown(value)}; accepted are whole numbers from {least}.")
    return int(value)
