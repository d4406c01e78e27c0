from __future__ import annotations

import numpy as np

from deep500.training.optimizers.adam import AdamOptimizer
from deep500.training.optimizers.amsgrad import AMSGradOptimizer
from tests.unit.training.support import LinearExecutor, follow

SPIKE = [np.array([10.0]), *[np.array([0.1])] * 30]


def test_a_large_gradient_is_not_forgotten() -> None:
    """After a spike Adam's steps grow again; these do not."""
    kept = np.abs(np.diff(follow(AMSGradOptimizer(LinearExecutor(), beta2=0.5), SPIKE, np.zeros(1)), axis=0))
    forgotten = np.abs(np.diff(follow(AdamOptimizer(LinearExecutor(), beta2=0.5), SPIKE, np.zeros(1)), axis=0))

    assert kept[-1] < 0.05 * forgotten[-1]


def test_while_moments_grow_it_is_adam_with_the_correction() -> None:
    gradients = [np.array([2.0**i]) for i in range(8)]
    optimizer = AMSGradOptimizer(LinearExecutor(), bias_correction=True)

    np.testing.assert_allclose(
        follow(optimizer, gradients, np.zeros(1)), follow(AdamOptimizer(LinearExecutor()), gradients, np.zeros(1))
    )
