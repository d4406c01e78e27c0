"""The geometry of convolution and pooling: where windows lie, also where only run time tells the sizes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from deep500.networks.differentiation.builder import Value
from deep500.networks.differentiation.reverse_pass import ReversedNode

__all__ = ["Windows", "fitted", "spatial_sizes"]


@dataclass(frozen=True)
class Windows:
    """Where the windows of a node lie.

    Attributes:
        rank: Number of spatial axes.
        strides: Distance of the windows.
        dilations: Distance of the elements of a window.
        before: Padding before the first element of each axis, as a vector.
        after: Padding after the last one.
        pads: The padding, where the node says it.
    """

    rank: int
    strides: list[int]
    dilations: list[int]
    before: Value
    after: Value
    pads: list[int] | None

    @classmethod
    def of(cls, node: ReversedNode, rank: int, kernel: Value, x_sizes: Value, y_sizes: Value) -> Windows:
        """Read the attributes of a node that slides windows of a size over x."""
        write = node.builder
        strides, dilations = (list(node.get(name, None) or [1] * rank) for name in ("strides", "dilations"))
        auto = node.get("auto_pad", "NOTSET")
        if auto in ("NOTSET", "VALID", ""):
            pads = [0] * (2 * rank) if auto == "VALID" else list(node.get("pads", None) or [0] * (2 * rank))
            return cls(rank, strides, dilations, write.ints(*pads[:rank]), write.ints(*pads[rank:]), pads)
        extent = (kernel - 1) * write.ints(*dilations) + 1
        total = write.op("Max", (y_sizes - 1) * write.ints(*strides) + extent - x_sizes, 0)
        half = total / 2
        ends = (half, total - half) if auto == "SAME_UPPER" else (total - half, half)
        return cls(rank, strides, dilations, *ends, None)


def spatial_sizes(x: Value) -> Value:
    """Return the sizes of a tensor after batch and channels."""
    shape = x.shape
    if shape is not None and all(isinstance(size, int) for size in shape[2:]):
        return x.builder.constant(np.array(shape[2:], np.int64))
    return x.builder.op("Shape", x, start=2)


def fitted(x: Value, before: Value, sizes: Value, rank: int) -> Value:
    """Return x with something added to (or, where negative, cut from) its begin, and cut or filled up to sizes."""
    write = x.builder
    after = sizes - before - spatial_sizes(x)
    pads = _folded(write.op("Concat", before, after, axis=0), before, sizes, x)
    known = pads.constant
    if known is not None and not known.any():
        return x
    axes = write.ints(*range(2, 2 + rank))
    return write.op("Pad", x, pads, None, axes)


def _folded(pads: Value, before: Value, sizes: Value, x: Value) -> Value:
    """Return the padding as a constant where everything is known."""
    own = spatial_sizes(x).constant
    if before.constant is None or sizes.constant is None or own is None:
        return pads
    after = sizes.constant - before.constant - own
    return pads.builder.constant(np.concatenate([before.constant, after]))
