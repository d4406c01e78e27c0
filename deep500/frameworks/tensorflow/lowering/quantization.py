"""Quantisation: floats as small integers, or floats of eight bits and fewer, with a scale and a zero point.

Products of quantised numbers are computed exactly, in float64: TensorFlow has kernels for it, and not for integers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from deep500.core.errors import OperatorError
from deep500.frameworks.tensorflow._dtypes import BIT_FLOATS, held_dtype
from deep500.frameworks.tensorflow._layout import channels_first_order, channels_last_order, kernel_order
from deep500.frameworks.tensorflow.lowering import lowerings
from deep500.frameworks.tensorflow.lowering._narrow import decode, element_type, encode
from deep500.frameworks.tensorflow.lowering.cast import converted, onnx_type
from deep500.frameworks.tensorflow.lowering.convolution import conv
from deep500.frameworks.tensorflow.lowering.linear import mat_mul
from deep500.networks.operator_node import OperatorNode

__all__ = [
    "conv_integer",
    "dequantize_linear",
    "dynamic_quantize_linear",
    "mat_mul_integer",
    "q_linear_conv",
    "q_linear_mat_mul",
    "quantize_linear",
]

#: Least and greatest value of the integers that are quantised to.
_RANGES = {
    "uint8": (0, 255),
    "int8": (-128, 127),
    "uint16": (0, 65535),
    "int16": (-32768, 32767),
    "uint4": (0, 15),
    "int4": (-8, 7),
    "uint2": (0, 3),
    "int2": (-2, 1),
}


@lowerings.register("QuantizeLinear", since=10)
def quantize_linear(node: OperatorNode, x: tf.Tensor, scale: tf.Tensor, zero: tf.Tensor | None = None) -> tf.Tensor:
    """Return round(x / scale) + zero point, as far as the type reaches.

    Args:
        node: The node.
        x: Numbers.
        scale: A scalar, ``[C]`` for each entry of the axis, or one for each block of ``block_size`` along the axis.
        zero: Shaped as the scale; its type is that of the result.

    Source: ONNX QuantizeLinear-28.
    """
    target = "uint8"
    if zero is not None:
        target = element_type(node.input_types[2], zero)
    elif node.attributes.get("output_dtype", 0):
        target = onnx_type(node.attributes["output_dtype"])
    if target not in _RANGES and target not in BIT_FLOATS:
        raise OperatorError(f"{node.label} is to give {target}; accepted are integers and floats of 16 bits and fewer.")
    scale = _numbers(scale, element_type(node.input_types[1], scale))
    precision = scale.dtype if scale.dtype.is_floating else tf.float64
    if node.attributes.get("precision", 0):
        precision = held_dtype(onnx_type(node.attributes["precision"]))
    quotient = tf.cast(x, precision) / tf.cast(_spread(node, scale, x), precision)
    offset = None if zero is None else _spread(node, zero, x)
    return _quantized(quotient, offset, target, saturate=bool(node.attributes.get("saturate", 1)))


@lowerings.register("DequantizeLinear", since=10)
def dequantize_linear(node: OperatorNode, x: tf.Tensor, scale: tf.Tensor, zero: tf.Tensor | None = None) -> tf.Tensor:
    """Return (x - zero point) scale.

    Args:
        node: The node.
        x: Quantised numbers.
        scale: As for :func:`quantize_linear`.
        zero: Shaped as the scale.

    Source: ONNX DequantizeLinear-28.
    """
    scale_type = element_type(node.input_types[1], scale)
    target = onnx_type(node.attributes["output_dtype"]) if node.attributes.get("output_dtype", 0) else scale_type
    wide = tf.float64 if target == "float64" else tf.float32
    source = element_type(node.input_types[0], x)
    y = tf.cast(_numbers(x, source), wide)
    if zero is not None:
        y = y - tf.cast(_numbers(_spread(node, zero, x), element_type(node.input_types[2], zero)), wide)
    y = y * tf.cast(_numbers(_spread(node, scale, x), scale_type), wide)
    return tf.ensure_shape(converted(y, wide.name, target), x.shape)


@lowerings.register("DynamicQuantizeLinear", since=11)
def dynamic_quantize_linear(node: OperatorNode, x: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Return x as uint8, with the scale and the zero point that reach from its minimum, and 0, to its maximum.

    Source: ONNX DynamicQuantizeLinear-11.
    """
    least, most = tf.minimum(tf.reduce_min(x), 0), tf.maximum(tf.reduce_max(x), 0)
    scale = tf.where(least == most, tf.ones_like(most), most - least) / 255
    zero = tf.cast(tf.round(tf.clip_by_value(-least / scale, 0, 255)), tf.uint8)
    return _quantized(x / scale, zero, "uint8"), scale, zero


@lowerings.register("MatMulInteger", since=10)
def mat_mul_integer(
    node: OperatorNode, a: tf.Tensor, b: tf.Tensor, a_zero: tf.Tensor | None = None, b_zero: tf.Tensor | None = None
) -> tf.Tensor:
    """Return the product of integer matrices, int32.

    Args:
        node: The node.
        a: ``[..., M, K]``.
        b: ``[..., K, N]``.
        a_zero: What is subtracted from ``a``: a scalar, or one a row.
        b_zero: What is subtracted from ``b``: a scalar, or one a column.

    Source: ONNX MatMulInteger-10.
    """
    product = mat_mul(node, _centred(a, _of_rows(a_zero, a)), _centred(b, b_zero))
    return tf.cast(product, tf.int32)


@lowerings.register("QLinearMatMul", since=10)
def q_linear_mat_mul(
    node: OperatorNode,
    a: tf.Tensor,
    a_scale: tf.Tensor,
    a_zero: tf.Tensor,
    b: tf.Tensor,
    b_scale: tf.Tensor,
    b_zero: tf.Tensor,
    y_scale: tf.Tensor,
    y_zero: tf.Tensor,
) -> tf.Tensor:
    """Return the quantised product of quantised matrices.

    Args:
        node: The node.
        a: ``[..., M, K]``.
        a_scale: A scalar, or one a row.
        a_zero: Shaped as ``a_scale``.
        b: ``[..., K, N]``.
        b_scale: A scalar, or one a column.
        b_zero: Shaped as ``b_scale``.
        y_scale: Scale of the product: a scalar, or one a row.
        y_zero: Shaped as ``y_scale``.

    Source: ONNX QLinearMatMul-21.
    """
    types = [element_type(node.input_types[index], value) for index, value in ((0, a), (3, b), (7, y_zero))]
    product = mat_mul(
        node,
        _centred(_numbers(a, types[0]), _of_rows(_numbers(a_zero, types[0]), a)),
        _centred(_numbers(b, types[1]), _numbers(b_zero, types[1])),
    )
    scale = _wide(_of_rows(a_scale, a)) * _wide(b_scale) / _wide(_of_rows(y_scale, a))
    return _quantized(product * scale, _of_rows(y_zero, a), types[2])


@lowerings.register("ConvInteger", since=10)
def conv_integer(
    node: OperatorNode, x: tf.Tensor, w: tf.Tensor, x_zero: tf.Tensor | None = None, w_zero: tf.Tensor | None = None
) -> tf.Tensor:
    """Return the convolution of integers, int32; see :func:`conv` for the attributes.

    Args:
        node: The node.
        x: Image, ``[N, C, spatial...]``.
        w: Kernel, ``[O, C / group, spatial...]``.
        x_zero: What is subtracted from ``x``, a scalar.
        w_zero: What is subtracted from ``w``: a scalar, or ``[O]``.

    Source: ONNX ConvInteger-10.
    """
    return tf.cast(_convolved(node, x, x_zero, w, w_zero), tf.int32)


@lowerings.register("QLinearConv", since=10)
def q_linear_conv(
    node: OperatorNode,
    x: tf.Tensor,
    x_scale: tf.Tensor,
    x_zero: tf.Tensor,
    w: tf.Tensor,
    w_scale: tf.Tensor,
    w_zero: tf.Tensor,
    y_scale: tf.Tensor,
    y_zero: tf.Tensor,
    bias: tf.Tensor | None = None,
) -> tf.Tensor:
    """Return the quantised convolution of quantised numbers; see :func:`conv` for the attributes.

    Args:
        node: The node.
        x: Image, ``[N, C, spatial...]``.
        x_scale: A scalar.
        x_zero: A scalar.
        w: Kernel, ``[O, C / group, spatial...]``.
        w_scale: A scalar, or ``[O]``.
        w_zero: A scalar, or ``[O]``.
        y_scale: A scalar.
        y_zero: A scalar.
        bias: int32 of the scale ``x_scale w_scale``, ``[O]``.

    Source: ONNX QLinearConv-10.
    """
    y = _convolved(node, x, x_zero, w, w_zero)
    if bias is not None:
        y = y + _of_channels(_wide(bias), w)
    scale = _wide(tf.reshape(x_scale, [])) * _of_channels(_wide(w_scale), w) / _wide(tf.reshape(y_scale, []))
    return _quantized(y * scale, tf.reshape(y_zero, []), y_zero.dtype.name)


def _convolved(
    node: OperatorNode, x: tf.Tensor, x_zero: tf.Tensor | None, w: tf.Tensor, w_zero: tf.Tensor | None
) -> tf.Tensor:
    """Return a convolution in float64, ``[N, O, spatial...]``."""
    rank = x.shape.rank
    image = _centred(x, None if x_zero is None else tf.reshape(x_zero, []))
    kernel = _centred(w, None if w_zero is None else _of_kernels(w_zero, w))
    y = conv(node, tf.transpose(image, channels_last_order(rank)), tf.transpose(kernel, kernel_order(rank)))
    return tf.transpose(y, channels_first_order(rank))


def _quantized(quotient: tf.Tensor, zero: tf.Tensor | None, target: str, saturate: bool = True) -> tf.Tensor:
    """Return floats rounded and moved, as elements of a small type."""
    if target in BIT_FLOATS:
        if zero is not None:
            quotient = quotient + decode(zero, target, quotient.dtype)
        return encode(quotient, target, saturate)
    wide = quotient if quotient.dtype.size >= 4 else tf.cast(quotient, tf.float32)
    rounded = tf.round(wide)
    if zero is not None:
        rounded = rounded + tf.cast(zero, rounded.dtype)
    return tf.cast(tf.clip_by_value(rounded, *_RANGES[target]), held_dtype(target))


def _numbers(x: tf.Tensor, dtype: str) -> tf.Tensor:
    """Return a tensor as numbers of TensorFlow's."""
    return decode(x, dtype) if dtype in BIT_FLOATS else x


def _wide(x: tf.Tensor) -> tf.Tensor:
    return tf.cast(x, tf.float64)


def _centred(x: tf.Tensor, zero: tf.Tensor | None) -> tf.Tensor:
    return _wide(x) if zero is None else _wide(x) - _wide(zero)


def _of_rows(parameter: tf.Tensor | None, a: tf.Tensor) -> tf.Tensor | None:
    """Return a scalar, or one number a row of a matrix, in a shape that broadcasts with products of the matrix."""
    if parameter is None or parameter.shape.rank != 1 or a.shape.rank < 2 or parameter.shape[0] == 1:
        return parameter
    return parameter[:, None]


def _of_channels(parameter: tf.Tensor, w: tf.Tensor) -> tf.Tensor:
    """Return a scalar, or one number a channel, in a shape that broadcasts with images, ``[N, O, spatial...]``."""
    return tf.reshape(parameter, [-1, *[1] * (w.shape.rank - 2)])


def _of_kernels(parameter: tf.Tensor, w: tf.Tensor) -> tf.Tensor:
    """Return a scalar, or one number a channel, in a shape that broadcasts with kernels, ``[O, I, spatial...]``."""
    return tf.reshape(parameter, [-1, *[1] * (w.shape.rank - 1)])


def _spread(node: OperatorNode, parameter: tf.Tensor, x: tf.Tensor) -> tf.Tensor:
    """Return scales or zero points in a shape that broadcasts with the tensor that they are for."""
    if parameter.shape.rank == 0 or parameter.shape.num_elements() == 1:
        return tf.reshape(parameter, [])
    axis = int(node.attributes.get("axis", 1))
    axis += x.shape.rank if axis < 0 else 0
    block = int(node.attributes.get("block_size", 0))
    if not block:
        shape: list[Any] = [1] * x.shape.rank
        shape[axis] = -1
        return tf.reshape(parameter, shape)
    size = tf.shape(x)[axis] if x.shape[axis] is None else x.shape[axis]
    place = np.arange(size) // block if isinstance(size, int) else tf.range(size) // block
    return tf.gather(parameter, place, axis=axis)
