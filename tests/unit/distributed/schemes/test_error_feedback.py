"""1-bit sends means, the bytes of a step are those of the formulas, wrong arguments are refused."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from deep500.core.errors import TrainingError
from deep500.distributed.communicators.local import LocalCommunicator, run_threads
from deep500.distributed.distributed_optimizer import DistributedOptimizer
from deep500.distributed.scheme import Scheme
from deep500.distributed.schemes.allreduce import AllReduce
from deep500.distributed.schemes.dpsgd import DPSGD
from deep500.distributed.schemes.one_bit import OneBit
from deep500.distributed.schemes.power_sgd import PowerSGD
from deep500.distributed.schemes.qsgd import QSGD
from deep500.distributed.schemes.top_k import TopK
from deep500.training.optimizers.gradient_descent import GradientDescent
from tests.unit.distributed.support import RankExecutor, batch


def test_one_bit_sends_the_two_means_of_each_block() -> None:
    scheme, values = OneBit(4), np.array([1.0, 3.0, -2.0, -6.0, 5.0, 7.0])
    found = scheme.decode(6, *scheme.encode(values))
    assert found.tolist() == [2.0, 2.0, -4.0, -4.0, 6.0, 6.0]


def ledger_of(make: Callable[[], Scheme], ranks: int) -> list[Any]:
    """Return what each rank exchanged in one step of 15 float64 parameters."""

    def run(communicator: LocalCommunicator) -> Any:
        optimizer = DistributedOptimizer(GradientDescent(RankExecutor()), communicator, make())
        before = communicator.ledger.snapshot()
        optimizer.step(batch(communicator.rank))
        return communicator.ledger.snapshot() - before

    return run_threads(ranks, run)


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_the_bytes_of_a_step_are_those_of_the_formula(ranks: int) -> None:
    for ledger in ledger_of(AllReduce, ranks):
        assert ledger.payload_bytes == 15 * 8
    assert sum(ledger.sent_bytes for ledger in ledger_of(AllReduce, ranks)) == 2 * (ranks - 1) * 15 * 8
    neighbours = {1: 0, 2: 1, 3: 2, 4: 2}[ranks]
    for ledger in ledger_of(DPSGD, ranks):
        assert ledger.sent_bytes == ledger.received_bytes == neighbours * 15 * 8
    for ledger in ledger_of(functools.partial(TopK, 0.1), ranks):  # 2 of 15 values, with places of 4 bytes
        assert ledger.sent_bytes == (ranks - 1) * 2 * 12
    for ledger in ledger_of(functools.partial(QSGD, 4, 5), ranks):  # 3 norms, 15 levels
        assert ledger.sent_bytes == (ranks - 1) * (3 * 8 + 15)
    for ledger in ledger_of(functools.partial(OneBit, 5), ranks):  # 2 means for each of 3 blocks, 15 bits
        assert ledger.sent_bytes == (ranks - 1) * (6 * 8 + 2)
    # The weight, [3, 4], is sent as 3 and 4 numbers; the bias as it is.
    assert {ledger.payload_bytes for ledger in ledger_of(functools.partial(PowerSGD, 1), ranks)} == {(3 + 4 + 3) * 8}


def test_arguments_that_are_not_accepted_are_refused() -> None:
    for make in (
        lambda: TopK(0.0),
        lambda: TopK(1.5),
        lambda: TopK(True),
        lambda: QSGD(0),
        lambda: QSGD(128),
        lambda: QSGD(4, 0),
        lambda: OneBit(0),
        lambda: PowerSGD(0),
    ):
        with pytest.raises(TrainingError, match=r"was given as .*; accepted are"):
            make()


def test_block_that_is_larger_than_the_gradient_is_one_block() -> None:
    values = np.array([1.0, 3.0, -2.0, -6.0])
    for block in (4, 10**12, 10**30):
        scheme = OneBit(block)
        assert scheme.decode(4, *scheme.encode(values)).tolist() == [2.0, 2.0, -4.0, -4.0]
        norms, levels = QSGD(127, block).encode(values, np.random.default_rng(0))
        assert QSGD(127, block).decode(norms, levels) == pytest.approx(values, abs=norms[0] / 127)


def test_parameter_without_an_element_is_sent_as_it_is() -> None:
    scheme = PowerSGD(1)
    assert not any(scheme.is_thin(np.zeros(shape)) for shape in ((0, 2), (2, 0), (0,), ()))
    assert scheme.is_thin(np.zeros((4, 4)))
