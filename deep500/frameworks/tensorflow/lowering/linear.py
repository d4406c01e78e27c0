"""Matrix products."""

from __future__ import annotations

import tensorflow as tf

from deep500.frameworks.tensorflow.lowering import lowerings
from deep500.networks.operator_node import OperatorNode

__all__ = ["gemm", "mat_mul"]


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
    y = tf.linalg.matmul(
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
    if beta != 1:
        c = c * tf.cast(beta, c.dtype)
    # One kernel with the product, and a gradient without broadcasting.
    if c.shape.rank == 1 and c.shape[0] is not None and c.shape[0] == y.shape[1]:
        return tf.nn.bias_add(y, c)
    return y + c


@lowerings.register("MatMul", since=1)
def mat_mul(node: OperatorNode, a: tf.Tensor, b: tf.Tensor) -> tf.Tensor:
    """Return the matrix product as ``numpy.matmul`` does: leading dimensions broadcast, vectors are extended.

    Source: ONNX MatMul-13.
    """
    left, right = a.shape.rank == 1, b.shape.rank == 1
    y = tf.linalg.matmul(tf.expand_dims(a, 0) if left else a, tf.expand_dims(b, 1) if right else b)
    if right:
        y = tf.squeeze(y, -1)
    if left:
        y = tf.squeeze(y, -1 if right else -2)
    return y
