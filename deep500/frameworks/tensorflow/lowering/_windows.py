"""What convolution and pooling share: sizes of windows and of what is put around the image.

Images are channels last here, ``[N, spatial..., C]``. Sizes are Python numbers where they are known while tracing, and
scalar tensors where they are not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import tensorflow as tf

from deep500.core.errors import OperatorError
from deep500.frameworks.tensorflow.lowering._parameters import size
from deep500.networks.operator_node import OperatorNode

__all__ = ["Windows", "fitting", "pad", "read_windows", "spread"]


@dataclass(frozen=True)
class Windows:
    """The windows of one convolution or pooling; one entry a spatial dimension.

    Attributes:
        sizes: Size of the image.
        kernel: Size of a window, in elements.
        strides: Distance between windows.
        dilations: Distance between a window's elements.
        begin: What is put before the image.
        end: What is put behind it.
        overhang: How far the last window reaches beyond that (``ceil_mode``); negative, where elements are left over.
        outputs: Number of windows.
    """

    sizes: tuple[Any, ...]
    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    begin: tuple[Any, ...]
    end: tuple[Any, ...]
    overhang: tuple[Any, ...]
    outputs: tuple[Any, ...]

    @property
    def padded_end(self) -> tuple[Any, ...]:
        """What is put behind the image, with what the last window reaches over."""
        return tuple(end + _maximum(over, 0) for end, over in zip(self.end, self.overhang, strict=True))

    @property
    def is_unpadded(self) -> bool:
        """Whether nothing is put around the image."""
        return all(_is_number(p, 0) for p in (*self.begin, *self.padded_end))

    @property
    def may_miss_image(self) -> bool:
        """Whether a window can lie in the padding as a whole."""
        spans = [(k - 1) * d + 1 for k, d in zip(self.kernel, self.dilations, strict=True)]
        pads = zip((*self.begin, *self.padded_end), (*spans, *spans), strict=True)
        return any(isinstance(pad, int) and pad >= span for pad, span in pads)

    @property
    def is_same(self) -> bool:
        """Whether the image is padded as TensorFlow's ``"SAME"`` does."""
        if self.is_unpadded:
            return all(s == 1 and k == 1 for s, k in zip(self.strides, self.kernel, strict=True))
        return all(
            _is_number(begin, before) and _is_number(end, behind)
            for begin, end, (before, behind) in zip(self.begin, self.padded_end, self._same_padding(), strict=True)
        )

    def _same_padding(self) -> Iterator[tuple[int | None, int | None]]:
        for length, kernel, stride, dilation in zip(self.sizes, self.kernel, self.strides, self.dilations, strict=True):
            if stride == 1:
                total = (kernel - 1) * dilation
            elif isinstance(length, int):
                total = (-(-length // stride) - 1) * stride + (kernel - 1) * dilation + 1 - length
            else:
                total = -1
            # With elements left over, Conv3D's "SAME" starts at the wrong one (TensorFlow 2.21).
            yield (None, None) if total < 0 else (total // 2, total - total // 2)

    @property
    def padding(self) -> str | list[list[int]]:
        """The padding as TensorFlow's two-dimensional operators take it; ``""`` where they cannot express it."""
        if self.is_unpadded:
            return "VALID"
        if self.is_same:
            return "SAME"
        pairs = list(zip(self.begin, self.padded_end, strict=True))
        if len(pairs) == 2 and all(isinstance(p, int) for pair in pairs for p in pair):
            return [[0, 0], *(list(pair) for pair in pairs), [0, 0]]
        return ""

    def slices(self, padded: tf.Tensor) -> Iterator[tf.Tensor]:
        """Yield, for every element of a window, its values in all windows: ``[N, outputs..., C]``."""
        for offset in product(*(range(k) for k in self.kernel)):
            begin = [o * d for o, d in zip(offset, self.dilations, strict=True)]
            end = [b + (n - 1) * s + 1 for b, n, s in zip(begin, self.outputs, self.strides, strict=True)]
            cuts = tuple(slice(b, e, s) for b, e, s in zip(begin, end, self.strides, strict=True))
            yield padded[(slice(None), *cuts, slice(None))]


def read_windows(node: OperatorNode, x: tf.Tensor, kernel: Sequence[int]) -> Windows:
    """Read a node's attributes ``strides``, ``dilations``, ``pads``, ``auto_pad`` and ``ceil_mode``.

    Args:
        node: A Conv, MaxPool, AveragePool or LpPool.
        x: Its image, ``[N, spatial..., C]``.
        kernel: Size of a window.
    """
    spatial = len(kernel)
    lengths = (size(x, axis + 1) for axis in range(spatial))
    sizes = tuple(n if isinstance(n, int) else tf.cast(n, tf.int32) for n in lengths)
    strides = tuple(node.attributes.get("strides") or [1] * spatial)
    dilations = tuple(node.attributes.get("dilations") or [1] * spatial)
    spans = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    begin, end = _padding(node, sizes, strides, spans)
    outputs, overhangs = [], []
    for length, before, behind, stride, span in zip(sizes, begin, end, strides, spans, strict=True):
        room = length + before + behind - span
        count = room // stride + 1
        if node.attributes.get("ceil_mode", 0):
            count = -(-room // stride) + 1
            # A window that starts behind the image is not counted (ONNX since opset 22, and every runtime before).
            starts_behind = (count - 1) * stride >= length + before
            count = count - (
                int(starts_behind) if isinstance(starts_behind, bool) else tf.cast(starts_behind, tf.int32)
            )
        outputs.append(count)
        overhangs.append((count - 1) * stride - room)
    return Windows(sizes, tuple(kernel), strides, dilations, begin, end, tuple(overhangs), tuple(outputs))


def fitting(node: OperatorNode, x: tf.Tensor, windows: Windows) -> tf.Tensor:
    """Return the image after a check, at run time where its sizes are unknown, that a window fits into it.

    TensorFlow's kernels abort the process, or return nothing, when none does.

    Raises:
        OperatorError: No window fits.
    """
    message = (
        f"{node.label}: a window of {list(windows.kernel)} elements, {list(windows.dilations)} apart, does not fit "
        f"into the padded image"
    )
    if any(isinstance(count, int) and count < 1 for count in windows.outputs):
        raise OperatorError(f"{message} of sizes {list(windows.sizes)}.")
    spans = [(k - 1) * d + 1 for k, d in zip(windows.kernel, windows.dilations, strict=True)]
    axes = zip(windows.outputs, spans, windows.begin, windows.end, strict=True)
    # An image has elements, and automatic padding lets a window fit into any.
    unsure = [
        count
        for count, span, begin, end in axes
        if not isinstance(count, int) and isinstance(begin, int) and span > 1 + begin + end
    ]
    if not unsure:
        return x
    checks = [tf.debugging.Assert(count >= 1, [f"{message} of shape (channels last)", tf.shape(x)]) for count in unsure]
    with tf.control_dependencies(checks):
        return tf.identity(x)


def pad(x: tf.Tensor, windows: Windows, value: Any = 0) -> tf.Tensor:
    """Return the image with ``value`` around it, as far as the windows reach."""
    if windows.is_unpadded:
        return x
    pairs = [[0, 0], *([b, e] for b, e in zip(windows.begin, windows.padded_end, strict=True)), [0, 0]]
    # TensorFlow fuses padding with zeros, where it sees that it is that, with the convolution behind it.
    return tf.pad(x, pairs, constant_values=value if isinstance(value, int) and value == 0 else tf.cast(value, x.dtype))


def spread(w: tf.Tensor, dilations: Sequence[int]) -> tf.Tensor:
    """Return a kernel ``[spatial..., I, O]`` with zeros between its elements, which does what dilations do."""
    for axis, dilation in enumerate(dilations):
        shape = w.shape.as_list()
        if dilation == 1 or shape[axis] == 1:
            continue
        pairs = [[0, dilation - 1 if place == axis + 1 else 0] for place in range(len(shape) + 1)]
        apart = tf.pad(tf.expand_dims(w, axis + 1), pairs)
        merged = tf.reshape(apart, [*shape[:axis], shape[axis] * dilation, *shape[axis + 1 :]])
        w = tf.gather(merged, tf.range((shape[axis] - 1) * dilation + 1), axis=axis)
    return w


def _padding(
    node: OperatorNode, sizes: Sequence[Any], strides: Sequence[int], spans: Sequence[int]
) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    spatial = len(sizes)
    automatic = node.attributes.get("auto_pad", "NOTSET")
    if automatic == "VALID":
        return (0,) * spatial, (0,) * spatial
    if automatic == "NOTSET":
        pads = node.attributes.get("pads") or [0] * 2 * spatial
        return tuple(pads[:spatial]), tuple(pads[spatial:])
    totals = [_maximum((-(-n // s) - 1) * s + span - n, 0) for n, s, span in zip(sizes, strides, spans, strict=True)]
    smaller = tuple(total // 2 for total in totals)
    larger = tuple(total - total // 2 for total in totals)
    return (larger, smaller) if automatic == "SAME_LOWER" else (smaller, larger)


def _maximum(a: Any, b: int) -> Any:
    return max(a, b) if isinstance(a, int) else tf.maximum(a, b)


def _is_number(value: Any, expected: int | None) -> bool:
    return isinstance(value, int) and value == expected
