"""What the two networks of a DCGAN share."""

from __future__ import annotations

from typing import Any

from deep500.core.counts import check_count
from deep500.core.errors import InvalidInputError
from deep500.networks.layers import normal

__all__ = ["SCALES", "WEIGHTS", "check_doublings"]

#: First weights and scales of normalisations.
WEIGHTS, SCALES = normal(0.02), normal(0.02, 1.0)


def check_doublings(name: str, size: Any) -> int:
    """Return how many times 4 pixels are doubled to an image's side.

    Raises:
        InvalidInputError: The side is no power of two from 8.
    """
    pixels = check_count(name, size, least=8)
    if pixels & (pixels - 1) or pixels > 4096:
        raise InvalidInputError(f"{name} was given as {pixels}; accepted are powers of two: 8, 16, 32, 64, ..., 4096.")
    return pixels.bit_length() - 3
