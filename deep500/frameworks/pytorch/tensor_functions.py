"""The functions of update rules on PyTorch's tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from deep500.networks.tensor_functions import TensorFunctions

__all__ = ["functions"]


class TorchFunctions:
    """What :class:`deep500.networks.tensor_functions.TensorFunctions` describes, on ``torch.Tensor``."""

    def sqrt(self, x: torch.Tensor) -> torch.Tensor:
        """Return the square root of each element."""
        return torch.sqrt(x)

    def absolute(self, x: torch.Tensor) -> torch.Tensor:
        """Return the absolute value of each element."""
        return torch.abs(x)

    def sign(self, x: torch.Tensor) -> torch.Tensor:
        """Return -1, 0 or 1 for each element; NaN for NaN, where PyTorch's own says 0."""
        return torch.where(torch.isnan(x), x, torch.sign(x))

    def maximum(self, x: Any, y: Any) -> torch.Tensor:
        """Return the larger of two elements at each place; NaN where one is."""
        if not isinstance(y, torch.Tensor):
            return torch.clamp_min(x, y)
        return torch.maximum(x, y) if isinstance(x, torch.Tensor) else torch.clamp_min(y, x)

    def minimum(self, x: Any, y: Any) -> torch.Tensor:
        """Return the smaller of two elements at each place; NaN where one is."""
        if not isinstance(y, torch.Tensor):
            return torch.clamp_max(x, y)
        return torch.minimum(x, y) if isinstance(x, torch.Tensor) else torch.clamp_max(y, x)

    def where(self, condition: torch.Tensor, x: Any, y: Any) -> torch.Tensor:
        """Return ``x`` where a condition holds and ``y`` elsewhere."""
        return torch.where(condition, x, y)

    def sum(self, x: torch.Tensor) -> torch.Tensor:
        """Return the sum of all elements, a scalar tensor."""
        return torch.sum(x)

    def norm(self, x: torch.Tensor) -> torch.Tensor:
        """Return the 2-norm of all elements; PyTorch adds up narrow floats in float32."""
        norm: torch.Tensor = torch.linalg.vector_norm(x)
        return norm

    def matmul(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """Return the product of two matrices."""
        return torch.matmul(x, y)

    def transpose(self, x: torch.Tensor, permutation: Sequence[int]) -> torch.Tensor:
        """Return a tensor whose axis ``i`` is axis ``permutation[i]`` of ``x``."""
        return x.permute(*permutation)

    def reshape(self, x: torch.Tensor, shape: Sequence[int]) -> torch.Tensor:
        """Return the elements, in their order, in another shape; one size may be -1."""
        return x.reshape(tuple(shape))

    def zeros_like(self, x: torch.Tensor) -> torch.Tensor:
        """Return zeros of the shape and dtype of a tensor."""
        return torch.zeros_like(x)

    def ones_like(self, x: torch.Tensor) -> torch.Tensor:
        """Return ones of the shape and dtype of a tensor."""
        return torch.ones_like(x)

    def global_norm(self, tensors: Sequence[torch.Tensor]) -> torch.Tensor:
        """Return the 2-norm of all elements of all tensors together, added up in float64."""
        norms = [torch.linalg.vector_norm(x, dtype=torch.float64) for x in tensors]
        norm: torch.Tensor = torch.linalg.vector_norm(torch.stack(norms))
        return norm

    def cast_like(self, x: Any, like: torch.Tensor) -> Any:
        """Return a tensor in the dtype of another one; a number of Python takes it anyway."""
        return x.to(like.dtype) if isinstance(x, torch.Tensor) else x


functions: TensorFunctions = TorchFunctions()
