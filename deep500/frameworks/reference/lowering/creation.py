"""Tensors that are made of sizes, ranges or random numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from deep500.core.errors import OperatorError
from deep500.frameworks.reference.lowering import lowerings
from deep500.frameworks.reference.lowering._onnx_reference import take_onnx
from deep500.frameworks.reference.lowering._random import Draw, attribute_dtype
from deep500.networks.operator_node import OperatorNode
from deep500.operators.library._tensors import present
from deep500.operators.operator import Array, OptionalArray

__all__: list[str] = []

take_onnx("Constant", since=1)
take_onnx("ConstantOfShape", since=9)
take_onnx("Range", since=11)
take_onnx("EyeLike", since=9)
take_onnx("Bernoulli", since=15)


@lowerings.register("RandomNormal", since=1)
def random_normal(node: OperatorNode) -> Draw:
    """Normally distributed numbers. Source: ONNX RandomNormal-22."""
    return _of_shape(node, _normal(node))


@lowerings.register("RandomNormalLike", since=1)
def random_normal_like(node: OperatorNode) -> Draw:
    """Normally distributed numbers, as many as another tensor has. Source: ONNX RandomNormalLike-22."""
    return _like(node, _normal(node))


@lowerings.register("RandomUniform", since=1)
def random_uniform(node: OperatorNode) -> Draw:
    """Uniformly distributed numbers. Source: ONNX RandomUniform-22."""
    return _of_shape(node, _uniform(node))


@lowerings.register("RandomUniformLike", since=1)
def random_uniform_like(node: OperatorNode) -> Draw:
    """Uniformly distributed numbers, as many as another tensor has. Source: ONNX RandomUniformLike-22."""
    return _like(node, _uniform(node))


@lowerings.register("Multinomial", since=7)
def multinomial(node: OperatorNode) -> Draw:
    r"""Class numbers, :math:`P(k) = e^{x_k} / \sum_j e^{x_j}` in each row. Source: ONNX Multinomial-22."""
    count, dtype = node.attributes.get("sample_size", 1), attribute_dtype(node, np.int32)

    def law(inputs: Sequence[OptionalArray], state: np.random.RandomState) -> Array:
        x = present(inputs[0]).astype(np.float64)
        if x.ndim != 2 or not x.shape[1]:
            raise OperatorError(f"Multinomial: received the shape {x.shape}; accepted is [batch, classes].")
        largest = x.max(axis=1, keepdims=True)
        if not np.isfinite(largest).all():
            raise OperatorError("Multinomial: received a row without a largest finite number; it is no distribution.")
        bounds = np.exp(x - largest).cumsum(axis=1)
        bounds /= bounds[:, -1:]
        # The last bound is exactly 1, and all that is drawn is below: classes of no probability are not met.
        drawn = state.random_sample((len(x), count))
        rows = [np.searchsorted(row, places, side="right") for row, places in zip(bounds, drawn, strict=True)]
        return np.asarray(rows, np.int64).reshape(len(x), count).astype(dtype)

    return Draw(node, law)


_Law = Callable[[np.random.RandomState, tuple[int, ...]], Array]


def _normal(node: OperatorNode) -> _Law:
    mean, scale = node.attributes.get("mean", 0.0), node.attributes.get("scale", 1.0)
    return lambda state, shape: np.asarray(mean + scale * state.standard_normal(shape))


def _uniform(node: OperatorNode) -> _Law:
    low, high = node.attributes.get("low", 0.0), node.attributes.get("high", 1.0)
    return lambda state, shape: np.asarray(low + (high - low) * state.random_sample(shape))


def _of_shape(node: OperatorNode, law: _Law) -> Draw:
    shape, dtype = tuple(node.attributes["shape"]), attribute_dtype(node, np.float32)
    return Draw(node, lambda inputs, state: law(state, shape).astype(dtype))


def _like(node: OperatorNode, law: _Law) -> Draw:
    def drawn(inputs: Sequence[OptionalArray], state: np.random.RandomState) -> Array:
        like = present(inputs[0])
        return law(state, like.shape).astype(attribute_dtype(node, like.dtype))

    return Draw(node, drawn)
