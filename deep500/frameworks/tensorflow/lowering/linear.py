"""Matrix products."""

from __future__ import annotations

import functools
from typing import Any

import tensorflow as tf

from deep500.core.errors import OperatorError
from deep500.frameworks.tensorflow.lowering import lowerings
from deep500.frameworks.tensorflow.lowering._sums import summed_in_float32
from deep500.frameworks.tensorflow.lowering._tensors import is_empty, unfused
from deep500.networks.operator_node import OperatorNode

__all__ = ["det", "einsum", "gemm", "mat_mul"]


@lowerings.register("Gemm", since=7)
def gemm(node: OperatorNode, a: tf.Tensor, b: tf.Tensor, c: tf.Tensor | None = None) -> tf.Tensor:
    r"""Return :math:`\alpha A' B' + \beta C`, ``[M, N]``; A' and B' are A and B, or their transposes.

    Args:
        node: The node.
        a: ``[M, K]``, or ``[K, M]`` with ``transA``.
        b: ``[K, N]``, or ``[N, K]`` with ``transB``.
        c: Broadcast to ``[M, N]``.

    Source: ONNX Gemm-13.
    """
    if a.dtype in NARROW_INTEGERS:
        wide = NARROW_INTEGERS[a.dtype]
        return tf.cast(gemm(node, *(None if x is None else tf.cast(x, wide) for x in (a, b, c))), a.dtype)
    y = _product(
        a,
        b,
        transpose_a=bool(node.attributes.get("transA", 0)),
        transpose_b=bool(node.attributes.get("transB", 0)),
    )
    alpha, beta = node.attributes.get("alpha", 1.0), node.attributes.get("beta", 1.0)
    if alpha != 1:
        y = y * tf.cast(alpha, y.dtype)
    if c is None:
        return y
    _check_addend(node, c, y)
    if beta == 0:
        return y
    if beta != 1:
        c = c * tf.cast(beta, c.dtype)
    # One kernel with the product, and a gradient without broadcasting.
    if c.shape.rank and c.shape[-1] is not None and c.shape.num_elements() == c.shape[-1] == y.shape[1]:
        return tf.nn.bias_add(y, tf.reshape(c, [-1]) if c.shape.rank > 1 else c)
    return unfused(y) + c


@lowerings.register("MatMul", since=1)
def mat_mul(node: OperatorNode, a: tf.Tensor, b: tf.Tensor) -> tf.Tensor:
    """Return the matrix product as ``numpy.matmul`` does: leading dimensions broadcast, vectors are extended.

    Source: ONNX MatMul-13.
    """
    if a.dtype in NARROW_INTEGERS:
        # Whatever is beyond the type's range is dropped in the end, as it would be on the way.
        wide = NARROW_INTEGERS[a.dtype]
        return tf.cast(mat_mul(node, tf.cast(a, wide), tf.cast(b, wide)), a.dtype)
    left, right = a.shape.rank == 1, b.shape.rank == 1
    y = _product(tf.expand_dims(a, 0) if left else a, tf.expand_dims(b, 1) if right else b)
    if right:
        y = tf.squeeze(y, -1)
    if left:
        y = tf.squeeze(y, -1 if right else -2)
    return y


@lowerings.register("Einsum", since=12)
def einsum(node: OperatorNode, *tensors: tf.Tensor) -> tf.Tensor:
    """Return the sum of products that an equation in Einstein's notation names. Source: ONNX Einsum-28."""
    dtype = tensors[0].dtype
    wide = NARROW_INTEGERS.get(dtype, dtype)
    equation = node.attributes["equation"].replace(" ", "")
    product = functools.partial(tf.einsum, equation)
    return tf.cast(summed_in_float32(product, *(tf.cast(tensor, wide) for tensor in tensors)), dtype)


@lowerings.register("Det", since=11)
def det(node: OperatorNode, x: tf.Tensor) -> tf.Tensor:
    """Return the determinants of (stacks of) matrices. Source: ONNX Det-22."""
    return tf.cast(_determinant(x if x.dtype.size >= 4 else tf.cast(x, tf.float32)), x.dtype)


@tf.custom_gradient  # type: ignore[untyped-decorator]
def _determinant(x: tf.Tensor) -> Any:
    """Return determinants with a gradient at singular matrices, too, where TensorFlow's fails: the cofactors."""
    y = tf.linalg.det(x)

    def of_regular() -> tf.Tensor:
        return y[..., None, None] * tf.linalg.inv(x, adjoint=True)

    def of_any() -> tf.Tensor:
        values, left, right = tf.linalg.svd(x)
        others = tf.math.cumprod(values, -1, exclusive=True) * tf.math.cumprod(values, -1, exclusive=True, reverse=True)
        sign = tf.linalg.det(left) * tf.linalg.det(right)
        return sign[..., None, None] * tf.matmul(left * others[..., None, :], right, transpose_b=True)

    def gradient(upstream: tf.Tensor) -> tf.Tensor:
        cofactors = tf.cond(tf.reduce_all(y != 0), of_regular, of_any)
        return upstream[..., None, None] * tf.ensure_shape(cofactors, x.shape)

    return y, gradient


#: Types that TensorFlow has no product of matrices of, and the one in which it is computed.
NARROW_INTEGERS = {
    **dict.fromkeys((tf.int8, tf.uint8, tf.int16, tf.uint16), tf.int32),
    **dict.fromkeys((tf.uint32, tf.uint64), tf.int64),
}


def _product(a: tf.Tensor, b: tf.Tensor, transpose_a: bool = False, transpose_b: bool = False) -> tf.Tensor:
    """Return the product of (stacks of) matrices."""
    if not transpose_a and not transpose_b and _is_one_product(a, b):
        flat = tf.linalg.matmul(tf.reshape(a, [-1, a.shape[-1]]), b)
        return tf.reshape(flat, [-1 if size is None else size for size in (*a.shape[:-1], b.shape[-1])])
    y = tf.linalg.matmul(a, b, transpose_a=transpose_a, transpose_b=transpose_b)
    inner = a.shape[-2 if transpose_a else -1] or b.shape[-1 if transpose_b else -2]
    # Fused with a bias, TensorFlow's product of matrices without elements aborts the process.
    return unfused(y) if is_empty(y) or not inner else y


def _is_one_product(a: tf.Tensor, b: tf.Tensor) -> bool:
    """Return whether a stack times one matrix can be computed, in less time, as one product of its rows."""
    if not a.dtype.is_floating or not (a.shape.rank or 0) > 2 or b.shape.rank != 2 or is_empty(a) or is_empty(b):
        return False
    return a.shape[-1] is not None and b.shape[-1] is not None and a.shape.as_list().count(None) <= 1


def _check_addend(node: OperatorNode, c: tf.Tensor, y: tf.Tensor) -> None:
    """Check, as far as sizes are known, that what is added to a product broadcasts to the product's shape.

    Raises:
        OperatorError: It does not.
    """
    if c.shape.rank is None:
        return
    sizes = zip(reversed(c.shape.as_list()), reversed(y.shape.as_list()), strict=False)
    wrong = any(None not in pair and pair[0] not in (1, pair[1]) for pair in sizes)
    if c.shape.rank > 2 or wrong:
        raise OperatorError(f"{node.label} was given C of shape {c.shape}, which does not broadcast to {y.shape}.")
