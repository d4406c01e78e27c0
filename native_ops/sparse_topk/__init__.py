"""The elements of largest magnitude of a tensor."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from deep500.core.errors import OperatorError
from deep500.operators import attributes
from deep500.operators.custom.cpp_op import CppOp
from native_ops._checks import shape_text

__all__ = ["SparseTopK"]


class SparseTopK(CppOp):
    r"""The k elements of largest magnitude of a tensor, and where they are: what a sparse exchange sends.

    .. math::
        \text{values}_j = x_{\text{indices}_j}, \qquad
        \{\text{indices}_j\} = \text{the } k \text{ largest } |x_i|

    Input x of any shape, float32, float64, bfloat16 or float16; outputs values ``[k]`` in x's dtype, and indices
    ``[k]``, int64: places in the flattened x, in ascending order. Of equal magnitudes those at lower places are taken;
    0 and -0 are equal. A NaN counts as larger than every number, infinity among them, and all NaN as equal: what went
    wrong is sent, not left out.

    Differentiable by x through values: the gradient of each goes to its element. Which elements are taken is constant
    almost everywhere; where magnitudes are equal there is no derivative, and this is one of the one-sided ones.

    Example:
        >>> import numpy as np
        >>> SparseTopK(k=2)(np.array([[1.0, -3.0], [2.0, 3.0]]))
        (array([-3.,  3.]), array([1, 3]))

    Source: radix selection, a digit of eight bits at a time: T. Alabi, J. Blanchard, B. Gordon, R. Steinbach, "Fast
    k-Selection Algorithms for Graphics Processing Units", ACM JEA 17, 2012.
    """

    name = "sparse_topk"
    source = "sparse_topk.cpp"
    cuda_source = "sparse_topk.cu"
    dtypes = ("float32", "float64", "bfloat16", "float16")

    def __init__(self, *, k: int) -> None:
        """Set the number of elements.

        Args:
            k: How many to take, from 0 to the number of x's elements.

        Raises:
            OperatorError: It is not a whole number from 0.
        """
        super().__init__(k=attributes.integer("sparse_topk", "k", k, minimum=0))

    def example_inputs(self, rng: np.random.Generator, dtype: str, large: bool = False) -> list[Any]:
        """Return x without equal magnitudes; see :meth:`CustomOp.example_inputs`."""
        size = max(self._given["k"], 1 << 20 if large else 12)
        return [rng.permutation(np.linspace(0.1, 4.0, size)) * rng.choice([-1.0, 1.0], size)]

    def infer(self, shapes: Sequence[Any], dtypes: Sequence[Any]) -> tuple[Any, Any]:
        """Return shapes and dtypes of values and indices.

        Raises:
            OperatorError: x has fewer than k elements.
        """
        k = self._given["k"]
        if all(isinstance(size, int) for size in shapes[0]) and math.prod(shapes[0]) < k:
            raise OperatorError(
                f"sparse_topk: x has the shape {shape_text(shapes[0])}, {math.prod(shapes[0])} elements, and k is {k}; "
                f"accepted are tensors of at least k elements."
            )
        return [(k,), (k,)], [dtypes[0], "int64"]
