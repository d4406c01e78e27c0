"""PyTorch's own data parallel training as a scheme: two processes, and what is refused."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")

from deep500.core.errors import TrainingError
from deep500.distributed.communicators.local import LocalCommunicator, run_threads
from deep500.distributed.distributed_optimizer import DistributedOptimizer
from deep500.frameworks.pytorch.executor import from_model
from deep500.training.optimizers.gradient_descent import GradientDescent
from tests.conformance.optimizer_networks import network_of_all_ranks
from tests.unit.distributed.support import RankExecutor

PROJECT = Path(__file__).parents[4]

#: Trains twice, and says so where the courses are the same.
TWICE = """
import numpy as np
from deep500.distributed import DistributedOptimizer, create_communicator
from deep500.frameworks.pytorch import MomentumOptimizer
from deep500.training.optimizers.momentum import MomentumOptimizer as Written
from tests.conformance.scheme_oracles import part_of, SHARE
from tests.conformance.optimizer_networks import batches
from tests.conformance.test_optimizers import make_executor, parameters_of

communicator = create_communicator()
for kind in (MomentumOptimizer, Written):
    courses = []
    for scheme in ("allreduce", "native"):
        executor = make_executor("pytorch")
        options = {"accumulation_steps": 2} if kind is Written else {}
        optimizer = DistributedOptimizer(kind(executor, learning_rate=0.1, **options), communicator, scheme)
        for batch in batches(6, size=SHARE * communicator.size):
            optimizer.step(part_of(batch, communicator.rank))
        courses.append(parameters_of(executor))
        assert optimizer.step_count == 6 // optimizer.accumulation_steps
    for name, value in courses[0].items():
        np.testing.assert_allclose(courses[1][name], value, rtol=0, atol=1e-12)
        own = value.reshape(-1).copy()
        communicator.broadcast(own, root=0)
        assert (own == value.reshape(-1)).all()
print("the same" if communicator.rank == 0 else "", flush=True)
"""


@pytest.mark.slow
def test_the_native_scheme_is_allreduce_on_two_processes() -> None:
    pytest.importorskip("mpi4py")
    mpiexec = Path(sys.executable).parent / "mpiexec"
    if not mpiexec.is_file():
        pytest.skip("the environment has no mpiexec")
    command = [str(mpiexec), "-n", "2", sys.executable, "-c", TWICE]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "the same" in done.stdout


def test_ranks_in_one_process_are_refused() -> None:
    def run(communicator: LocalCommunicator) -> None:
        executor = from_model(network_of_all_ranks())
        DistributedOptimizer(GradientDescent(executor), communicator, "native")

    with pytest.raises(TrainingError, match=r"Received 2 ranks of which some are in one process.*mpiexec"):
        run_threads(2, run)


def test_an_executor_without_its_own_is_refused() -> None:
    with pytest.raises(TrainingError, match=r"'native' was asked for with RankExecutor.*'allreduce'"):
        DistributedOptimizer(GradientDescent(RankExecutor()), LocalCommunicator(), "native")
