"""Disturbances are the same for the same seed, and have the shares that were asked for."""

from __future__ import annotations

import numpy as np
import pytest

from deep500.core.errors import CommunicationError
from deep500.distributed.communicators.simulated import SimulatedCommunicator, run_simulated
from deep500.distributed.distributed_optimizer import DistributedOptimizer
from deep500.distributed.simulation.cost_model import LogGP
from deep500.distributed.simulation.delays import Disturbance
from deep500.training.optimizers.gradient_descent import GradientDescent
from tests.unit.distributed.support import RankExecutor, batch

ALL = np.arange(400)


def test_nothing_by_default() -> None:
    assert (Disturbance().compute_factors(5, 0) == 1).all()
    assert Disturbance().late_messages(5) is None


def test_slow_rank() -> None:
    assert Disturbance({2: 3.0}).compute_factors(4, 7).tolist() == [1, 1, 3, 1]


def test_stragglers_have_their_share_and_change_by_step() -> None:
    disturbance = Disturbance(straggler_share=0.25, straggler_slowdown=2.0, seed=5)
    factors = np.stack([disturbance.compute_factors(400, step) for step in range(50)])

    assert set(np.unique(factors)) == {1.0, 2.0}
    assert (factors == 2).mean() == pytest.approx(0.25, abs=0.02)
    assert not np.array_equal(factors[0], factors[1])
    assert np.array_equal(factors[3], disturbance.compute_factors(400, 3))
    other = Disturbance(straggler_share=0.25, straggler_slowdown=2.0, seed=6)
    assert not np.array_equal(factors[0], other.compute_factors(400, 0))


def test_noise_is_log_normal() -> None:
    logarithms = np.log(Disturbance(noise=0.3).compute_factors(20_000, 0))

    assert logarithms.mean() == pytest.approx(0, abs=0.01)
    assert logarithms.std() == pytest.approx(0.3, rel=0.03)


def test_late_messages_have_share_and_mean() -> None:
    late = Disturbance(late_share=0.1, late_s=2.0).late_messages(400)
    assert late is not None
    delays = np.stack([late(ALL) for _ in range(300)])  # over the border of a block

    assert (delays > 0).mean() == pytest.approx(0.1, abs=0.005)
    assert delays[delays > 0].mean() == pytest.approx(2.0, rel=0.03)
    assert len(np.unique(delays[delays > 0])) == (delays > 0).sum()  # none is drawn twice


def test_order_of_senders_does_not_matter() -> None:
    disturbance = Disturbance(late_share=0.5, late_s=1.0, seed=9)
    together, apart = disturbance.late_messages(3), disturbance.late_messages(3)
    assert together is not None
    assert apart is not None

    rows = np.stack([together(np.arange(3)) for _ in range(4)])
    columns = [[apart(np.array([rank]))[0] for _ in range(4)] for rank in (2, 0, 1)]

    assert np.array_equal(rows[:, [2, 0, 1]].T, columns)


@pytest.mark.parametrize(
    "arguments",
    [
        {"late_share": 1.5},
        {"straggler_share": -0.1},
        {"slowdowns": {0: 0.0}},
        {"noise": -1.0},
        {"late_s": float("nan")},
    ],
)
def test_wrong_numbers(arguments: dict) -> None:
    with pytest.raises(CommunicationError, match="Accepted are shares"):
        Disturbance(**arguments)


def test_rank_that_is_not_there() -> None:
    with pytest.raises(CommunicationError, match="0 to 3"):
        Disturbance({4: 2.0}).compute_factors(4, 0)


class TimedExecutor(RankExecutor):
    """Computes for a second of the simulated clock."""

    def attach(self, communicator: SimulatedCommunicator) -> None:
        self.communicator = communicator

    def _run_and_differentiate(self, *arguments):
        self.communicator.advance(1.0)
        return super()._run_and_differentiate(*arguments)


@pytest.mark.parametrize("scheme", ["allreduce", "dpsgd", "local_sgd", "parameter_server"])
def test_straggler_makes_the_ranks_of_a_training_wait(scheme: str) -> None:
    def train(communicator: SimulatedCommunicator) -> tuple[float, np.ndarray]:
        executor = TimedExecutor()
        executor.attach(communicator)
        optimizer = DistributedOptimizer(GradientDescent(executor), communicator, scheme)
        for step in range(8):
            optimizer.step(batch(10 * step + communicator.rank))
        steps_end = communicator.clock_s
        optimizer.finish()
        return steps_end, np.concatenate([executor.fetch(name).ravel() for name in executor.network.get_params()])

    model = LogGP(latency_s=25e-6, gap_s_per_byte=1e-9)
    plain = run_simulated(3, train, model)
    slowed = run_simulated(3, train, model, disturbance=Disturbance({2: 3.0}))
    late = run_simulated(3, train, model, disturbance=Disturbance(late_share=1.0, late_s=0.5, seed=1))

    assert all(8 <= end < 9 for end, _ in plain)
    assert slowed[2][0] >= 24
    assert all(end > 20 for end, _ in slowed)  # the ranks that are not slow pay for the one that is
    for undisturbed, disturbed in zip(plain, slowed, strict=True):
        assert np.array_equal(undisturbed[1], disturbed[1])  # trouble takes time, and changes no number
    assert max(end for end, _ in late) > 9
