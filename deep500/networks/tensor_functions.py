"""What arithmetic alone cannot say of tensors, under one name in every framework: update rules are written with it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

__all__ = ["TensorFunctions"]


class TensorFunctions(Protocol):
    """Functions of a framework's tensors; ``executor.tensor_functions`` has those of an executor.

    They return new tensors of the dtype that they were given, change none, and can be traced and compiled. Where two
    operands are taken, one may be a number of Python.
    """

    def sqrt(self, x: Any) -> Any:
        """Return the square root of each element."""

    def absolute(self, x: Any) -> Any:
        """Return the absolute value of each element."""

    def sign(self, x: Any) -> Any:
        """Return -1, 0 or 1 for each element."""

    def maximum(self, x: Any, y: Any) -> Any:
        """Return the larger of two elements at each place; NaN where one is."""

    def minimum(self, x: Any, y: Any) -> Any:
        """Return the smaller of two elements at each place; NaN where one is."""

    def where(self, condition: Any, x: Any, y: Any) -> Any:
        """Return ``x`` where a condition holds and ``y`` elsewhere."""

    def sum(self, x: Any) -> Any:
        """Return the sum of all elements, a scalar tensor."""

    def norm(self, x: Any) -> Any:
        """Return the 2-norm of all elements, a scalar tensor; it is added up at least in float32."""

    def matmul(self, x: Any, y: Any) -> Any:
        """Return the product of two matrices."""

    def transpose(self, x: Any, permutation: Sequence[int]) -> Any:
        """Return a tensor whose axis ``i`` is axis ``permutation[i]`` of ``x``."""

    def reshape(self, x: Any, shape: Sequence[int]) -> Any:
        """Return the elements, in their order, in another shape; one size may be -1."""

    def zeros_like(self, x: Any) -> Any:
        """Return zeros of the shape and dtype of a tensor."""

    def ones_like(self, x: Any) -> Any:
        """Return ones of the shape and dtype of a tensor."""

    def global_norm(self, tensors: Sequence[Any]) -> Any:
        """Return the 2-norm of all elements of all tensors together, a float64 scalar added up in float64."""

    def cast_like(self, x: Any, like: Any) -> Any:
        """Return a tensor in the dtype of another one."""
