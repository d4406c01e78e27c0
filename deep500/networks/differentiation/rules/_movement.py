"""What is backward of operators that only move elements: moving the elements' numbers tells where each came from."""

from __future__ import annotations

from collections.abc import Callable

from deep500.networks.differentiation.builder import Value

__all__ = ["numbered", "scattered_back"]


def numbered(x: Value, first: Value | None = None) -> Value:
    """Return the numbers of the elements of a tensor, from 0 or another number on, in its shape."""
    write = x.builder
    start = write.constant(0) if first is None else first
    size = write.op("Size", x)
    end = size if first is None else start + size
    return write.reshape(write.op("Range", start, end, write.constant(1)), write.shape(x))


def scattered_back(x: Value, g: Value, moved: Callable[[Value], Value]) -> Value:
    """Return the gradient by x: each element gets the sum over the places where it went.

    Args:
        x: What is moved.
        g: Gradient by the result.
        moved: Applies the operator to another tensor of the shape of x.
    """
    write = x.builder
    places = write.flat(moved(numbered(x)))
    zeros = write.zeros(write.reshape(write.op("Size", x), write.ints(1)), g)
    summed = write.op("ScatterElements", zeros, places, write.flat(g), axis=0, reduction="add")
    return write.reshape_like(summed, x)
