from __future__ import annotations

import numpy as np
import pytest

from deep500.core.errors import TrainingError
from deep500.training.optimizers.rmsprop import RMSPropOptimizer
from tests.unit.training.support import LinearExecutor, follow


def test_defaults_are_those_of_the_lecture() -> None:
    optimizer = RMSPropOptimizer(LinearExecutor())

    assert (optimizer.learning_rate, optimizer.decay, optimizer.momentum, optimizer.centered) == (
        0.001,
        0.9,
        0.0,
        False,
    )


@pytest.mark.parametrize("centered", [False, True])
@pytest.mark.parametrize("momentum", [0.0, 0.5])
def test_it_keeps_what_it_needs(centered: bool, momentum: float) -> None:
    optimizer = RMSPropOptimizer(LinearExecutor(), momentum=momentum, centered=centered)

    assert optimizer.slots == ("squares", *["mean"] * centered, *["velocity"] * bool(momentum))


def test_a_constant_gradient_has_no_variance_below_0() -> None:
    gradients = [np.full(3, 0.1)] * 400
    optimizer = RMSPropOptimizer(LinearExecutor(), decay=0.5, centered=True, epsilon=1e-3)

    assert np.isfinite(follow(optimizer, gradients, np.zeros(3))).all()


def test_momentum_cannot_be_added_later() -> None:
    optimizer = RMSPropOptimizer(LinearExecutor())
    optimizer.momentum = 0.9

    with pytest.raises(TrainingError, match="made without momentum"):
        optimizer.update_rule(np.ones(2), np.ones(2), "w")
