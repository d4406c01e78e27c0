"""What the tests of distributed training share: a linear network whose gradients may be replaced, and its data."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.unit.training.support import LinearExecutor

__all__ = ["RankExecutor", "batch"]


class RankExecutor(LinearExecutor):
    """A linear network, float64, 15 parameters."""

    def _set_gradient(self, name: str, gradient: Any) -> None:
        if gradient is None:
            del self.gradients[name]
        else:
            self.gradients[name] = gradient


def batch(number: int = 0, size: int = 5) -> dict[str, Any]:
    """Return a minibatch."""
    random = np.random.default_rng(number)
    return {"input": random.normal(size=(size, 4)), "label": random.integers(0, 3, size)}
