"""Operators that make tensors from a shape, a range or chance.

A random operator with a ``seed`` draws the same numbers in each run; one without draws new ones.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from deep500.frameworks.tensorflow._dtypes import held_array, held_dtype
from deep500.frameworks.tensorflow._generator import drawn_seed
from deep500.frameworks.tensorflow.lowering import lowerings
from deep500.frameworks.tensorflow.lowering._narrow import element_type
from deep500.frameworks.tensorflow.lowering.cast import converted, onnx_type
from deep500.networks.operator_node import OperatorNode

__all__ = [
    "bernoulli",
    "constant",
    "constant_of_shape",
    "eye_like",
    "multinomial",
    "number_range",
    "random_normal",
    "random_normal_like",
    "random_uniform",
    "random_uniform_like",
]


@lowerings.register("Constant", since=1)
def constant(node: OperatorNode) -> tf.Tensor:
    """Return the tensor that an attribute holds. Source: ONNX Constant-25."""
    attributes = node.attributes
    if "value" in attributes:
        return tf.constant(held_array(attributes["value"]))
    if "sparse_value" in attributes:
        return tf.constant(_dense(attributes["sparse_value"]))
    for name, dtype in (("int", tf.int64), ("float", tf.float32), ("string", tf.string)):
        for key in (f"value_{name}", f"value_{name}s"):
            if key in attributes:
                value = attributes[key]
                return tf.constant(value, dtype, [len(value)] if key.endswith("s") else [])
    raise ValueError("it has no value")


@lowerings.register("ConstantOfShape", since=9)
def constant_of_shape(node: OperatorNode, shape: tf.Tensor) -> tf.Tensor:
    """Return a tensor of one value, 0 by default. Source: ONNX ConstantOfShape-25."""
    value = node.attributes.get("value")
    scalar = np.zeros([], np.float32) if value is None else np.reshape(held_array(value), [])
    return tf.fill(shape, tf.constant(scalar))


@lowerings.register("Range", since=11)
def number_range(node: OperatorNode, start: tf.Tensor, limit: tf.Tensor, delta: tf.Tensor) -> tf.Tensor:
    """Return start, start + delta, ... up to the limit, without it. Source: ONNX Range-27."""
    dtype = start.dtype
    start, limit, delta = (tf.reshape(value, []) for value in (start, limit, delta))
    known = [tf.get_static_value(value) for value in (start, limit, delta)]
    if dtype.is_integer and all(value is not None for value in known):
        return tf.constant(np.arange(*(int(value) for value in known)), dtype)
    # TensorFlow adds up the steps, and the sum its errors.
    wide = tf.int64 if dtype.is_integer else tf.float64
    first, last, step = (tf.cast(value, wide) for value in (start, limit, delta))
    count = tf.cast(-tf.math.floordiv(first - last, step), tf.int64)  # of the steps, rounded up
    number = tf.range(tf.maximum(count, 0))
    precise = tf.float64 if dtype == tf.float64 else wide if dtype.is_integer else tf.float32
    numbers = tf.cast(start, precise) + tf.cast(number, precise) * tf.cast(delta, precise)
    return tf.cast(numbers, dtype)


@lowerings.register("EyeLike", since=9)
def eye_like(node: OperatorNode, x: tf.Tensor) -> tf.Tensor:
    """Return a matrix of the shape of x with ones on the diagonal ``k``, zeros elsewhere. Source: ONNX EyeLike-22."""
    dtype = onnx_type(node.attributes["dtype"]) if "dtype" in node.attributes else element_type(node.input_types[0], x)
    shape = tf.shape(x)
    rows, columns = tf.range(shape[0])[:, None], tf.range(shape[1])[None, :]
    diagonal = tf.ensure_shape(tf.equal(rows + int(node.attributes.get("k", 0)), columns), x.shape)
    return converted(diagonal, "bool", dtype)


@lowerings.register("RandomNormal", since=1)
def random_normal(node: OperatorNode) -> tf.Tensor:
    """Return normally distributed numbers. Source: ONNX RandomNormal-22."""
    return _normal(node, tf.constant(node.attributes["shape"], tf.int32, [len(node.attributes["shape"])]))


@lowerings.register("RandomNormalLike", since=1)
def random_normal_like(node: OperatorNode, x: tf.Tensor) -> tf.Tensor:
    """Return normally distributed numbers in the shape of x. Source: ONNX RandomNormalLike-22."""
    return tf.ensure_shape(_normal(node, tf.shape(x), x.dtype), x.shape)


@lowerings.register("RandomUniform", since=1)
def random_uniform(node: OperatorNode) -> tf.Tensor:
    """Return numbers distributed evenly between ``low`` and ``high``. Source: ONNX RandomUniform-22."""
    return _uniform(node, tf.constant(node.attributes["shape"], tf.int32, [len(node.attributes["shape"])]))


@lowerings.register("RandomUniformLike", since=1)
def random_uniform_like(node: OperatorNode, x: tf.Tensor) -> tf.Tensor:
    """Return numbers distributed evenly, in the shape of x. Source: ONNX RandomUniformLike-22."""
    return tf.ensure_shape(_uniform(node, tf.shape(x), x.dtype), x.shape)


@lowerings.register("Bernoulli", since=15)
def bernoulli(node: OperatorNode, x: tf.Tensor) -> tf.Tensor:
    """Return 1 with the probability that x says, else 0. Source: ONNX Bernoulli-22."""
    wide = x.dtype if x.dtype.size >= 4 else tf.float32
    drawn = tf.ensure_shape(_drawn("uniform", node, tf.shape(x), wide), x.shape) < tf.cast(x, wide)
    dtype = onnx_type(node.attributes["dtype"]) if "dtype" in node.attributes else x.dtype.name
    return converted(drawn, "bool", dtype)


@lowerings.register("Multinomial", since=7)
def multinomial(node: OperatorNode, logits: tf.Tensor) -> tf.Tensor:
    """Return class numbers, ``[N, sample_size]``, drawn by the unnormalised logarithms of their probabilities.

    Source: ONNX Multinomial-22.
    """
    wide = logits if logits.dtype.size >= 4 else tf.cast(logits, tf.float32)
    count = int(node.attributes.get("sample_size", 1))
    dtype = held_dtype(onnx_type(node.attributes.get("dtype", 6)))
    seed = _seed(node)
    if seed is None:
        return tf.random.categorical(wide, count, dtype)
    return tf.random.stateless_categorical(wide, count, seed, dtype)


def _normal(node: OperatorNode, shape: tf.Tensor, default: tf.DType = tf.float32) -> tf.Tensor:
    dtype = _float_type(node, default)
    wide = _drawing_type(dtype)
    numbers = _drawn("normal", node, shape, wide)
    scale, mean = (
        tf.constant(node.attributes.get(name, value), wide) for name, value in (("scale", 1.0), ("mean", 0.0))
    )
    return tf.cast(numbers * scale + mean, dtype)


def _uniform(node: OperatorNode, shape: tf.Tensor, default: tf.DType = tf.float32) -> tf.Tensor:
    dtype = _float_type(node, default)
    wide = _drawing_type(dtype)
    numbers = _drawn("uniform", node, shape, wide)
    low, high = (tf.constant(node.attributes.get(name, value), wide) for name, value in (("low", 0.0), ("high", 1.0)))
    return tf.cast(numbers * (high - low) + low, dtype)


def _drawing_type(dtype: tf.DType) -> tf.DType:
    """Return the type to draw in: uniform numbers of 16 bits are rounded down, so that their mean is too low."""
    return tf.float32 if dtype.size < tf.float32.size else dtype


def _drawn(law: str, node: OperatorNode, shape: tf.Tensor, dtype: tf.DType) -> tf.Tensor:
    """Return standard normal numbers, or numbers between 0 and 1."""
    seed = _seed(node)
    if seed is None:
        return getattr(tf.random, law)(shape, dtype=dtype)
    return getattr(tf.random, f"stateless_{law}")(shape, seed, dtype=dtype)


def _seed(node: OperatorNode) -> list[int] | tf.Tensor | None:
    """Return the seed as TensorFlow takes it: the bits of ONNX' float, or another one each time that the node runs."""
    if "seed" not in node.attributes:
        return drawn_seed()
    return [int(np.float32(node.attributes["seed"]).view(np.int32)), 0]


def _float_type(node: OperatorNode, default: tf.DType) -> tf.DType:
    return held_dtype(onnx_type(node.attributes["dtype"])) if "dtype" in node.attributes else default


def _dense(sparse: Any) -> Any:
    """Return a sparse tensor of ONNX with its zeros."""
    values, indices = sparse.values.numpy(), sparse.indices.numpy()
    dense = np.zeros(tuple(sparse.dims), values.dtype)
    if indices.ndim == 1:
        dense.ravel()[indices] = values
    else:
        dense[tuple(indices.T)] = values
    return held_array(dense)
