"""The server is one of the ranks."""

from __future__ import annotations

import pytest

from deep500.core.errors import TrainingError
from deep500.distributed.communicators.local import run_threads
from deep500.distributed.distributed_optimizer import DistributedOptimizer
from deep500.distributed.schemes.parameter_server import ParameterServer
from deep500.training.optimizers.gradient_descent import GradientDescent
from tests.unit.distributed.support import RankExecutor


def test_server_that_is_no_rank_is_found_before_the_first_step() -> None:
    def make(communicator):
        return DistributedOptimizer(GradientDescent(RankExecutor()), communicator, ParameterServer(2))

    with pytest.raises(TrainingError, match="root was given as 2; accepted are the ranks 0 to 1"):
        run_threads(2, make)
    assert len(run_threads(3, make)) == 3
