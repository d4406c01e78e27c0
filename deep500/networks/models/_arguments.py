"""Checks of the arguments that several models have."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from deep500.core.counts import check_count
from deep500.core.errors import InvalidInputError
from deep500.core.texts import shown

__all__ = ["check_divides", "check_flag", "check_image", "check_rate", "check_sizes", "check_text"]


def check_image(model: str, shape: Sequence[Any], *, least: int = 1) -> tuple[int, int, int]:
    """Return channels, height and width of a sample that is an image of at least ``least`` pixels a side.

    Raises:
        InvalidInputError: It is none.
    """
    if len(shape) != 3:
        raise InvalidInputError(f"The model {model} needs samples of shape (C, H, W); received {tuple(shape)}.")
    channels, height, width = shape
    if min(height, width) < least:
        raise InvalidInputError(
            f"Of a {height}x{width} image nothing is left after the convolutions of the model {model}. "
            f"Use images of {least}x{least} pixels or more."
        )
    return channels, height, width


def check_text(model: str, shape: Sequence[Any], context: int | None = None) -> int | str:
    """Return the length of a sample that is a text, a number or a symbol.

    Args:
        model: What messages call the model.
        shape: Shape of a sample: one size.
        context: The most tokens that the model has positions for.

    Raises:
        InvalidInputError: It is none, or longer.
    """
    if len(shape) != 1:
        raise InvalidInputError(f"The model {model} needs samples of shape (sequence,); received {tuple(shape)}.")
    length: int | str = shape[0]
    if context is not None and isinstance(length, int) and length > context:
        raise InvalidInputError(f"Texts of {length} tokens do not fit into context={context}. Increase 'context'.")
    return length


def check_sizes(name: str, value: Any, example: str, *, least: int = 0) -> tuple[int, ...]:
    """Return sizes from 1, at least ``least`` of them.

    Raises:
        InvalidInputError: They are none.
    """
    sizes = (value,) if isinstance(value, int) else value
    good = isinstance(sizes, (tuple, list)) and len(sizes) >= least
    if not good or any(isinstance(s, bool) or not isinstance(s, (int, np.integer)) or s < 1 for s in sizes):
        raise InvalidInputError(f"{name} was given as {shown(value)}; accepted are sizes from 1, such as {example}.")
    return tuple(int(size) for size in sizes)


def check_flag(name: str, value: Any) -> bool:
    """Return a truth value.

    Raises:
        InvalidInputError: It is none.
    """
    if not isinstance(value, (bool, np.bool_)):
        raise InvalidInputError(f"{name} was given as {shown(value)}; accepted are True and False.")
    return bool(value)


def check_rate(name: str, value: Any) -> float:
    """Return a share from 0 to less than 1.

    Raises:
        InvalidInputError: It is none.
    """
    number = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    if not number or not math.isfinite(value) or not 0 <= value < 1:
        raise InvalidInputError(f"{name} was given as {shown(value)}; accepted are numbers from 0 to less than 1.")
    return float(value)


def check_divides(parts_name: str, parts: Any, whole_name: str, whole: int) -> int:
    """Return a whole number from 1 that divides another.

    Raises:
        InvalidInputError: It is none.
    """
    count = check_count(parts_name, parts, least=1)
    if whole % count:
        raise InvalidInputError(f"{parts_name}={count} does not divide {whole_name}={whole}.")
    return count
