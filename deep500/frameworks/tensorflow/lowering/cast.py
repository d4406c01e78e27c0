"""Operators that change the type of elements, by value or by bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import tensorflow as tf
from numpy.typing import NDArray

from deep500.core.tensor_descriptor import STRING, TensorDescriptor
from deep500.frameworks.tensorflow._dtypes import BIT_FLOATS, SMALL_INTEGERS, held_dtype
from deep500.frameworks.tensorflow.lowering import lowerings
from deep500.frameworks.tensorflow.lowering._host import call_on_host
from deep500.frameworks.tensorflow.lowering._narrow import decode, element_type, encode, wrapped
from deep500.networks.operator_node import OperatorNode

__all__ = ["bit_cast", "cast", "cast_like", "converted", "onnx_type"]


@lowerings.register("Cast", since=6)
def cast(node: OperatorNode, x: tf.Tensor) -> tf.Tensor:
    """Return x in the type that the attribute ``to`` names. Source: ONNX Cast-28."""
    return _cast(node, x, onnx_type(node.attributes["to"]))


@lowerings.register("CastLike", since=15)
def cast_like(node: OperatorNode, x: tf.Tensor, like: tf.Tensor) -> tf.Tensor:
    """Return x in the type of another tensor. Source: ONNX CastLike-25."""
    return _cast(node, x, element_type(node.input_types[1], like))


@lowerings.register("BitCast", since=26)
def bit_cast(node: OperatorNode, x: tf.Tensor) -> tf.Tensor:
    """Return the bits of x as elements of another type of that many bits. Source: ONNX BitCast-26."""
    source, target = element_type(node.input_types[0], x), onnx_type(node.attributes["to"])
    if source == target:
        return tf.identity(x)
    bits = x
    if source in SMALL_INTEGERS:
        # A negative value is held with its sign in the bits that its type does not have.
        mask = 2 ** int(source.removeprefix("u").removeprefix("int")) - 1
        bits = tf.bitwise.bitwise_and(tf.cast(x, tf.uint8), tf.constant(mask, tf.uint8))
    elif x.dtype == tf.bool:
        bits = tf.cast(x, tf.uint8)
    if target in SMALL_INTEGERS:
        return wrapped(bits, target)
    if target == "bool":
        return tf.bitcast(bits, tf.uint8) != 0
    return tf.bitcast(bits, held_dtype(target))


def onnx_type(number: int) -> str:
    """Return NumPy's name of an element type that ONNX gives a number; ``"string"`` for texts."""
    kind = ir.DataType(number)
    return STRING if kind == ir.DataType.STRING else str(kind.numpy().name)


def converted(x: tf.Tensor, source: str, target: str, *, saturate: bool = True, round_mode: str = "up") -> tf.Tensor:
    """Return a tensor with elements of another type.

    Args:
        x: The tensor, as it is held.
        source: NumPy's name of its element type.
        target: NumPy's name of the wanted type.
        saturate: See :func:`encode`.
        round_mode: See :func:`encode`.
    """
    if source == target:
        return tf.identity(x)
    if source == STRING:
        return _from_texts(x, target)
    if target == STRING:
        return _to_texts(decode(x, source) if source in BIT_FLOATS else x)
    if source in BIT_FLOATS:
        x = decode(x, source, tf.float64 if target == "float64" else tf.float32)
    if target in BIT_FLOATS:
        return encode(x if x.dtype.is_floating else tf.cast(x, tf.float64), target, saturate, round_mode)
    if target in SMALL_INTEGERS:
        # Numbers that are far too large have no defined result; those of other types are cut to their lowest bits.
        return wrapped(x if x.dtype.is_integer else tf.cast(x, tf.int32), target)
    return tf.cast(x, held_dtype(target))


def _cast(node: OperatorNode, x: tf.Tensor, target: str) -> tf.Tensor:
    return converted(
        x,
        element_type(node.input_types[0], x),
        target,
        saturate=bool(node.attributes.get("saturate", 1)),
        round_mode=node.attributes.get("round_mode", "up"),
    )


def _to_texts(x: tf.Tensor) -> tf.Tensor:
    """Return numbers as texts. Runs on the host: TensorFlow does not write the shortest text of a float."""

    def write(numbers: NDArray[Any]) -> tuple[NDArray[Any]]:
        return (numbers.astype(np.str_).astype(object),)

    return call_on_host(write, [x], [TensorDescriptor(STRING, x.shape.as_list())])[0]


def _from_texts(x: tf.Tensor, target: str) -> tf.Tensor:
    """Return the numbers that texts stand for."""
    if target in ("int64", "uint64"):
        return _long_integers(x, target)
    numbers = tf.strings.to_number(x, tf.float32 if target == "float32" else tf.float64)
    return converted(numbers, numbers.dtype.name, target)


def _long_integers(x: tf.Tensor, target: str) -> tf.Tensor:
    """Return texts as integers of 64 bits. Runs on the host: TensorFlow reads whole numbers only, not ``"100.5"``."""

    def read(texts: NDArray[Any]) -> tuple[NDArray[Any]]:
        values = [int(text) if text.strip().lstrip("+-").isdigit() else int(float(text)) for text in texts.ravel()]
        return (np.array(values, target).reshape(texts.shape),)

    return call_on_host(read, [x], [TensorDescriptor(target, x.shape.as_list())])[0]
