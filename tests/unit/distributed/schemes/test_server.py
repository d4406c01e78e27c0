"""A log that cannot be replayed is refused in words."""

from __future__ import annotations

from typing import Any

import pytest

from deep500.core.errors import TrainingError
from deep500.distributed.communicators.local import run_threads
from deep500.distributed.distributed_optimizer import DistributedOptimizer
from deep500.distributed.schemes.asynchronous_parameter_server import AsynchronousParameterServer
from deep500.training.optimizers.gradient_descent import GradientDescent
from tests.unit.distributed.support import RankExecutor, batch


@pytest.mark.parametrize("replay", [0, 1.5, "x", [1], [(1, 2, 3)]])
def test_what_is_no_log_is_refused(replay: Any) -> None:
    with pytest.raises(TrainingError, match="accepted is the log of another run"):
        AsynchronousParameterServer(replay)


def test_rank_of_the_log_that_is_not_here_is_named() -> None:
    def train(communicator):
        scheme = AsynchronousParameterServer([[7, 0]])
        DistributedOptimizer(GradientDescent(RankExecutor()), communicator, scheme).step(batch())

    with pytest.raises(TrainingError, match="has rank 7 as number 0, whose gradient cannot come here"):
        run_threads(2, train, timeout_s=30)
