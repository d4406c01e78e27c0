"""Putting elements around a tensor, and taking some away."""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow as tf

from deep500.core.errors import OperatorError
from deep500.frameworks.tensorflow.lowering._parameters import (
    Size,
    length,
    maximum,
    minimum,
    size,
    sizes,
    static,
    vector,
)

__all__ = ["crop_and_pad", "pad_by"]


def pad_by(
    x: tf.Tensor, begin: Sequence[Size], end: Sequence[Size], mode: str, value: tf.Tensor | None = None
) -> tf.Tensor:
    """Return x with elements put before and behind each axis.

    Args:
        x: The tensor.
        begin: Number before each axis; a negative one takes away.
        end: Number behind each axis.
        mode: ``"constant"``, ``"reflect"``, ``"edge"`` or ``"wrap"``.
        value: What is put there in mode ``"constant"``, zero by default.

    Raises:
        OperatorError: The mode is none of these.

    Source: ONNX Pad-25.
    """
    cut = [[minimum(n, 0) for n in numbers] for numbers in (begin, end)]
    put = [[maximum(n, 0) for n in numbers] for numbers in (begin, end)]
    first = [-n for n in cut[0]]
    count = [
        None if _is_zero(a) and _is_zero(b) else maximum(n + a + b, 0) for n, a, b in zip(sizes(x), *cut, strict=True)
    ]
    if mode == "constant":
        return crop_and_pad(x, first, count, put[0], put[1], value)
    if mode not in _SOURCES:
        raise OperatorError(f"Padding has the mode {mode!r}; accepted are constant, {', '.join(_SOURCES)}.")
    x = crop_and_pad(x, first, count, [0] * len(count), [0] * len(count))
    if mode == "reflect" and _is_mirrored(x, put):
        return tf.pad(x, tf.constant(list(zip(*put, strict=True)), tf.int32), "REFLECT")
    for axis, (before, behind) in enumerate(zip(*put, strict=True)):
        if not (_is_zero(before) and _is_zero(behind)):
            own = size(x, axis)
            places = length(own + before + behind) - tf.cast(before, tf.int64)
            x = tf.gather(x, _SOURCES[mode](places, tf.cast(own, tf.int64)), axis=axis)
    return x


def crop_and_pad(
    x: tf.Tensor,
    first: Sequence[Size],
    count: Sequence[Size | None],
    before: Sequence[Size],
    behind: Sequence[Size],
    value: tf.Tensor | None = None,
) -> tf.Tensor:
    """Return a part of x with one value around it.

    Args:
        x: The tensor.
        first: First element of the part, an entry an axis.
        count: Size of the part; ``None`` for all that there is.
        before: Number of values that are put before it.
        behind: Number of values that are put behind it.
        value: The value, zero by default.
    """
    own = x.shape.as_list()
    whole = all(_is_zero(f) and (c is None or (isinstance(c, int) and c == n)) for f, c, n in zip(first, count, own))
    if not whole and x.shape.rank:
        x = tf.slice(x, vector(first), vector([-1 if c is None else c for c in count]))
    if all(_is_zero(n) for n in (*before, *behind)):
        return tf.identity(x)
    if all(isinstance(n, int) for n in (*before, *behind)):
        pairs = tf.constant(list(zip(before, behind, strict=True)), tf.int32)
    else:
        pairs = tf.transpose([vector(before), vector(behind)])
    known = static(value)
    if value is None or (known is not None and not known.any()):
        # TensorFlow fuses padding with zeros, where it sees that it is that, with the convolution behind it.
        return tf.pad(x, pairs)
    filling = tf.reshape(tf.cast(value, x.dtype), [])
    if x.dtype.is_floating and known is None:
        # TensorFlow's padding has no gradient by the value.
        inside = tf.pad(tf.fill(tf.shape(x), True), pairs)
        return tf.where(inside, tf.pad(x, pairs), filling)
    return tf.pad(x, pairs, constant_values=filling)


def _edge(places: tf.Tensor, count: tf.Tensor) -> tf.Tensor:
    return tf.clip_by_value(places, tf.constant(0, tf.int64), count - 1)


def _wrap(places: tf.Tensor, count: tf.Tensor) -> tf.Tensor:
    return tf.math.floormod(places, count)


def _reflect(places: tf.Tensor, count: tf.Tensor) -> tf.Tensor:
    period = tf.maximum(2 * (count - 1), 1)
    places = tf.math.floormod(places, period)
    return tf.minimum(places, period - places) * tf.cast(count > 1, tf.int64)


#: From which element comes what stands at a place, the own elements having the places from 0 on.
_SOURCES = {"reflect": _reflect, "edge": _edge, "wrap": _wrap}


def _is_mirrored(x: tf.Tensor, put: Sequence[Sequence[Size]]) -> bool:
    """Return whether TensorFlow's kernel can reflect: every axis once at most."""
    return all(
        isinstance(n, int) and (n == 0 or (own is not None and n < own))
        for numbers in put
        for n, own in zip(numbers, x.shape.as_list(), strict=True)
    )


def _is_zero(n: Size) -> bool:
    return isinstance(n, int) and n == 0
