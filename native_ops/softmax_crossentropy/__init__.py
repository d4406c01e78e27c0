"""Cross entropy between a softmax and labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from deep500.core.errors import OperatorError
from deep500.operators import attributes
from deep500.operators.custom.cpp_op import CppOp
from native_ops._checks import check_shape, shape_text

__all__ = ["SoftmaxCrossEntropy"]


class SoftmaxCrossEntropy(CppOp):
    r"""Cross entropy between the softmax of scores and labels.

    .. math::
        \log p_c = s_c - \log \sum_k e^{s_k}, \qquad \ell_i = -w_{y_i} \log p_{i, y_i}

    Inputs: scores s ``[N, C, D1, ...]``, float32, float64, bfloat16 or float16; labels y ``[N, D1, ...]``, int64, from
    0 to C - 1 or equal to ``ignore_index``; weights w ``[C]`` of the scores' dtype, which may be ``None``. Outputs of
    the scores' dtype: the loss, and log_prob ``[N, C, D1, ...]``.

    With the reduction ``"none"`` the loss is every :math:`\ell_i` (``[N, D1, ...]``), with ``"sum"`` their sum, with
    ``"mean"`` their sum divided by that of the weights :math:`w_{y_i}` of labels that are not ignored: NaN where that
    is 0. An ignored label gives the loss 0 and no gradient through it.

    Differentiable by scores, through both outputs, and by weights. 16-bit floats are computed in float32, losses are
    summed in float64, and a loss that is small beside 1 keeps its digits (log1p, expm1). On a GPU a label that is none
    gives NaN; on a processor it is an error.

    Example:
        >>> import numpy as np
        >>> loss, log_prob = SoftmaxCrossEntropy()(np.zeros((1, 4)), np.array([2]), None)
        >>> float(loss)
        1.386...

    Source: ONNX SoftmaxCrossEntropyLoss, version 13.
    """

    name = "softmax_crossentropy"
    source = "softmax_crossentropy.cpp"
    cuda_source = "softmax_crossentropy.cu"
    dtypes = ("float32", "float64", "bfloat16", "float16")

    def __init__(self, *, reduction: str = "mean", ignore_index: int | None = None) -> None:
        """Set the attributes.

        Args:
            reduction: ``"none"``, ``"sum"`` or ``"mean"``.
            ignore_index: Label that does not count; it may lie outside of ``[0, C)``. ``None`` where all count.

        Raises:
            OperatorError: An attribute is not what is accepted.
        """
        given: dict[str, Any] = {
            "reduction": attributes.choice("softmax_crossentropy", "reduction", reduction, ("none", "sum", "mean"))
        }
        if ignore_index is not None:  # the C++ code's default is a number that no label can be
            given["ignore_index"] = attributes.integer("softmax_crossentropy", "ignore_index", ignore_index)
        super().__init__(**given)

    def example_inputs(self, rng: np.random.Generator, dtype: str, large: bool = False) -> list[Any]:
        """Return scores, labels and weights; see :meth:`CustomOp.example_inputs`."""
        shape = (256, 1000) if large else (4, 5)
        labels = rng.integers(0, shape[1], shape[0])
        return [3 * rng.standard_normal(shape), labels, rng.uniform(0.5, 1.5, shape[1])]

    def infer(self, shapes: Sequence[Any], dtypes: Sequence[Any]) -> tuple[Any, Any]:
        """Return shapes and dtypes of the loss and log_prob.

        Raises:
            OperatorError: The shapes of scores, labels and weights do not fit to one another.
        """
        scores, labels, weights = shapes
        if len(scores) < 2 or (isinstance(scores[1], int) and scores[1] < 1):
            raise OperatorError(
                f"softmax_crossentropy: scores has the shape {shape_text(scores)}; accepted is [N, C, D1, ...] with at "
                f"least one class."
            )
        check_shape("softmax_crossentropy", "labels", labels, (scores[0], *scores[2:]), ", that of scores without C")
        if weights is not None:
            check_shape("softmax_crossentropy", "weights", weights, (scores[1],), ", one entry a class")
        loss = tuple(labels) if self._given["reduction"] == "none" else ()
        return [loss, scores], [dtypes[0], dtypes[0]]
