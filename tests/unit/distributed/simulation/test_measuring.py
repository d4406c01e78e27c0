"""Messages are measured between two ranks, and every rank gets the times."""

from __future__ import annotations

import numpy as np
import pytest

from deep500.core.errors import CommunicationError
from deep500.distributed.communicators.local import run_threads
from deep500.distributed.simulation.measuring import DEFAULT_SIZES_BYTES, measure_messages, measure_reduction_s_per_byte


@pytest.mark.parametrize("both_ways", [True, False])
@pytest.mark.parametrize("ranks", [2, 3])
def test_times_of_all_sizes_on_all_ranks(ranks: int, both_ways: bool) -> None:
    def measure(communicator):
        return measure_messages(communicator, [1, 64, 4096], repetitions=4, both_ways=both_ways)

    results = run_threads(ranks, measure)

    for sizes, times in results:
        assert sizes.tolist() == [1, 64, 4096] * 4
        assert (times > 0).all()
        assert np.array_equal(times, results[0][1])


def test_messages_are_those_asked_for() -> None:
    """The measurement reads a real clock; what it sends is what it says: counted by the ledger."""

    def sent(communicator):
        measure_messages(communicator, [100], repetitions=2, warm_up=1, both_ways=False)
        return communicator.ledger.snapshot()["send"].sent_bytes

    assert run_threads(2, sent) == [300, 300]


def test_adding_takes_time() -> None:
    assert 0 < measure_reduction_s_per_byte(1 << 16) < 1e-6


def test_default_sizes() -> None:
    assert DEFAULT_SIZES_BYTES[0] == 1
    assert DEFAULT_SIZES_BYTES[-1] == 64 << 20
    assert len(DEFAULT_SIZES_BYTES) > 40


def test_refusals() -> None:
    with pytest.raises(CommunicationError, match="mpiexec -n 2"):
        run_threads(1, measure_messages)
    with pytest.raises(CommunicationError, match="sizes_bytes"):
        run_threads(2, lambda communicator: measure_messages(communicator, [0]))
    with pytest.raises(CommunicationError, match="1 size"):
        run_threads(2, lambda communicator: measure_messages(communicator, []))
