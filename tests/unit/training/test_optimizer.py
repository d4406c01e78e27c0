from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from deep500.core.errors import TrainingError
from deep500.training.optimizers.momentum import MomentumOptimizer
from tests.unit.training.support import LinearExecutor, batch_of, clusters


@pytest.mark.parametrize(
    ("modifier", "received"),
    [
        (lambda g: None, "a NoneType"),
        (lambda g: "abc", "a str"),
        (lambda g: 0.0, "a float"),
        (lambda g: [g], "a list"),
        (lambda g: g[:1], r"float64\[1(, 4)?\]"),
        (lambda g: g.astype(np.float32), r"float32\[3(, 4)?\]"),
    ],
    ids=["None", "text", "number", "list", "shape", "dtype"],
)
def test_modifier_that_returns_no_gradient_is_refused(modifier: Any, received: str) -> None:
    optimizer = MomentumOptimizer(LinearExecutor(), gradient_modifier=modifier)

    with pytest.raises(TrainingError, match=rf"gradient_modifier returned {received} for the parameter '.*float64\[3"):
        optimizer.step(batch_of(clusters()))


def test_modifier_that_returns_a_gradient_is_taken() -> None:
    executor = LinearExecutor()
    before = executor.tensors[executor.weight].copy()
    MomentumOptimizer(executor, gradient_modifier=lambda g: g * 0.0).step(batch_of(clusters()))

    np.testing.assert_array_equal(executor.tensors[executor.weight], before)
