"""Resizing: which elements of an axis each new element is made of, and with which weights.

Resizing several axes is resizing one after the other, so everything here is about one axis. Positions are computed in
float64. Where all numbers are known while tracing, they are computed then, and the graph holds the result.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from deep500.core.errors import OperatorError
from deep500.frameworks.tensorflow.lowering._parameters import Size, length
from deep500.networks.operator_node import OperatorNode

__all__ = ["AxisResize", "ResizeRule", "read_rule", "resize_axis"]

#: A number, or a float64 scalar of the graph.
Real = Any


@dataclass(frozen=True)
class ResizeRule:
    """The attributes of a Resize node that are about every axis.

    Attributes:
        mode: ``"nearest"``, ``"linear"`` or ``"cubic"``.
        coordinates: How a new place becomes one in the original.
        nearest: How a place between two elements is rounded, in mode ``"nearest"``.
        antialias: Whether the filter is stretched when the result is smaller.
        exclude_outside: Whether elements outside weigh nothing.
        cubic_coefficient: The coefficient of the cubic filter.
        extrapolation: What stands at places outside, with coordinates ``"tf_crop_and_resize"``.
    """

    mode: str
    coordinates: str
    nearest: str
    antialias: bool
    exclude_outside: bool
    cubic_coefficient: float
    extrapolation: float


@dataclass(frozen=True)
class AxisResize:
    """How one axis is resized.

    Attributes:
        size: Number of elements.
        new_size: Number of new elements.
        scale: How many new elements there are for each.
        width: Number of new elements before it was rounded.
        start: Where the region begins, 0 being the first element and 1 the last.
        end: Where it ends.
    """

    size: Size
    new_size: Size
    scale: Real
    width: Real
    start: Real = 0.0
    end: Real = 1.0

    @property
    def is_known(self) -> bool:
        """Whether everything is known while tracing."""
        return not any(isinstance(v, tf.Tensor) for v in vars(self).values())


def read_rule(node: OperatorNode) -> ResizeRule:
    """Read the attributes of a Resize node.

    Raises:
        OperatorError: An attribute is not what the specification accepts.

    Source: ONNX Resize-19.
    """
    attributes = node.attributes
    rule = ResizeRule(
        mode=attributes.get("mode", "nearest"),
        coordinates=attributes.get("coordinate_transformation_mode", "half_pixel"),
        nearest=attributes.get("nearest_mode", "round_prefer_floor"),
        antialias=bool(attributes.get("antialias", 0)),
        exclude_outside=bool(attributes.get("exclude_outside", 0)),
        cubic_coefficient=attributes.get("cubic_coeff_a", -0.75),
        extrapolation=attributes.get("extrapolation_value", 0.0),
    )
    accepted = {"mode": (*_SUPPORT, "nearest"), "coordinates": _COORDINATES, "nearest": _ROUNDINGS}
    for name, values in accepted.items():
        if getattr(rule, name) not in values:
            raise OperatorError(f"{node.label} has {getattr(rule, name)!r}; accepted are {', '.join(sorted(values))}.")
    return rule


def resize_axis(x: tf.Tensor, axis: int, resize: AxisResize, rule: ResizeRule) -> tf.Tensor:
    """Return x with one axis resized; of a float dtype, unless the mode is ``"nearest"``.

    Source: ONNX Resize-19.
    """
    places, weights, outside = _known_plan(resize, rule) if resize.is_known else _plan(resize, rule)
    if weights is None:
        y = tf.gather(x, places, axis=axis)
    else:
        behind = [1] * (x.shape.rank - axis - 1)
        shaped = tf.reshape(tf.cast(weights, x.dtype), tf.concat([tf.shape(weights), behind], 0))
        y = tf.reduce_sum(tf.gather(x, places, axis=axis) * shaped, axis + 1)
    if outside is not None:
        mask = tf.reshape(outside, [-1, *[1] * (x.shape.rank - axis - 1)])
        y = tf.where(mask, tf.cast(rule.extrapolation, y.dtype), y)
    return y


def _known_plan(resize: AxisResize, rule: ResizeRule) -> tuple[Any, Any, Any]:
    """Return what :func:`_plan` does, as constants."""
    with tf.init_scope():
        arrays = [None if value is None else value.numpy() for value in _plan(resize, rule)]
    if arrays[2] is not None and not arrays[2].any():
        arrays[2] = None
    return arrays[0], arrays[1], arrays[2]


def _plan(resize: AxisResize, rule: ResizeRule) -> tuple[tf.Tensor, tf.Tensor | None, tf.Tensor | None]:
    """Return the elements that each new one is made of, their weights, and which new ones lie outside.

    Returns:
        ``[new]``, ``None`` for the nearest elements, ``[new, taps]`` and weights of that shape for others; ``[new]`` or
        ``None``.
    """
    place = _COORDINATES[rule.coordinates](tf.cast(length(resize.new_size), tf.float64), resize)
    last = tf.cast(resize.size, tf.int64) - 1
    outside = None
    if rule.coordinates == "tf_crop_and_resize":
        outside = (place < 0) | (place > tf.cast(last, tf.float64))
    if rule.mode == "nearest":
        nearest = tf.cast(_ROUNDINGS[rule.nearest](place), tf.int64)
        return tf.clip_by_value(nearest, 0, last), None, outside
    below = tf.math.floor(place)
    stretch = tf.minimum(_float64(resize.scale), 1) if rule.antialias else tf.constant(1, tf.float64)
    reach = tf.cast(tf.math.ceil(_SUPPORT[rule.mode] / stretch), tf.int64)
    taps = tf.range(1 - reach, reach + 1, dtype=tf.int64)
    distance = (tf.cast(taps, tf.float64) - (place - below)[:, None]) * stretch
    weights = _FILTERS[rule.mode](tf.abs(distance), rule.cubic_coefficient)
    positions = tf.cast(below, tf.int64)[:, None] + taps
    if rule.exclude_outside:
        weights = tf.where((positions >= 0) & (positions <= last), weights, 0)
    if rule.exclude_outside or rule.antialias:
        weights = tf.math.divide_no_nan(weights, tf.reduce_sum(weights, 1, keepdims=True))
    return tf.clip_by_value(positions, 0, last), weights, outside


def _float64(value: Real) -> tf.Tensor:
    """Return a number as it is: TensorFlow's cast would round one of Python to 32 bits first."""
    return tf.cast(value, tf.float64) if isinstance(value, tf.Tensor) else tf.constant(value, tf.float64)


def _half_pixel(y: tf.Tensor, resize: AxisResize) -> tf.Tensor:
    return (y + 0.5) / resize.scale - 0.5


def _half_pixel_symmetric(y: tf.Tensor, resize: AxisResize) -> tf.Tensor:
    adjustment = _float64(resize.new_size) / resize.width
    # From left to right as ONNX writes it: rounded in another order, the centre may fall short of the element it is on.
    return _float64(resize.size) / 2 * (1 - adjustment) + (y + 0.5) / resize.scale - 0.5


def _pytorch_half_pixel(y: tf.Tensor, resize: AxisResize) -> tf.Tensor:
    return tf.where(_float64(resize.width) <= 1, tf.constant(0, y.dtype), _half_pixel(y, resize))


def _asymmetric(y: tf.Tensor, resize: AxisResize) -> tf.Tensor:
    return y / resize.scale


def _align_corners(y: tf.Tensor, resize: AxisResize) -> tf.Tensor:
    last = _float64(resize.size) - 1
    return tf.math.divide_no_nan(y * last, _float64(resize.width) - 1)


def _crop_and_resize(y: tf.Tensor, resize: AxisResize) -> tf.Tensor:
    last, width = _float64(resize.size) - 1, _float64(resize.width)
    start, end = _float64(resize.start), _float64(resize.end)
    step = tf.math.divide_no_nan((end - start) * last, width - 1)
    return start * last + tf.where(tf.equal(width, 1), (end - start) * last / 2, y * step)


#: The place in the original of new elements.
_COORDINATES: dict[str, Callable[[tf.Tensor, AxisResize], tf.Tensor]] = {
    "half_pixel": _half_pixel,
    "half_pixel_symmetric": _half_pixel_symmetric,
    "pytorch_half_pixel": _pytorch_half_pixel,
    "asymmetric": _asymmetric,
    "align_corners": _align_corners,
    "tf_crop_and_resize": _crop_and_resize,
}

_ROUNDINGS: dict[str, Callable[[tf.Tensor], tf.Tensor]] = {
    "round_prefer_floor": lambda place: tf.math.ceil(place - 0.5),
    "round_prefer_ceil": lambda place: tf.math.floor(place + 0.5),
    "floor": tf.math.floor,
    "ceil": tf.math.ceil,
}

#: How far a filter reaches.
_SUPPORT = {"linear": 1.0, "cubic": 2.0}


def _linear(distance: tf.Tensor, _: float) -> tf.Tensor:
    return tf.maximum(1 - distance, 0)


def _cubic(distance: tf.Tensor, a: float) -> tf.Tensor:
    """Return the weights of Keys' cubic filter."""
    near = ((a + 2) * distance - (a + 3)) * distance * distance + 1
    far = ((a * distance - 5 * a) * distance + 8 * a) * distance - 4 * a
    return tf.where(distance <= 1, near, tf.where(distance < 2, far, tf.zeros_like(far)))


_FILTERS: dict[str, Callable[[tf.Tensor, float], tf.Tensor]] = {"linear": _linear, "cubic": _cubic}
