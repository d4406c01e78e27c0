"""The clocks, message by message."""

from __future__ import annotations

import numpy as np
import pytest

from deep500.core.errors import CommunicationError
from deep500.distributed.simulation.catalogue import ALGORITHMS
from deep500.distributed.simulation.clocks import Clocks
from deep500.distributed.simulation.cost_model import LogGP

MODEL = LogGP(latency_s=10.0, overhead_s=1.0, gap_s=2.0, gap_s_per_byte=0.1, reduction_s_per_byte=0.01)


def test_one_message() -> None:
    clocks = Clocks(MODEL, 2)

    clocks.run(ALGORITHMS.get("binomial_tree_broadcast")(2, 101, 1))

    assert clocks.now_s.tolist() == [1.0, 1 + 10 + 100 * 0.1 + 1]


def test_reduction_takes_time_at_the_receiver() -> None:
    clocks = Clocks(MODEL, 2)

    clocks.run(ALGORITHMS.get("binomial_tree_reduce")(2, 101, 1))

    assert clocks.now_s == pytest.approx([22 + 1.01, 1.0])


def test_incoming_link_takes_one_message_after_the_other() -> None:
    clocks = Clocks(MODEL, 3)
    for source in (1, 2):
        first_byte = clocks.send(np.array([source]), 101)
        clocks.receive(np.array([0]), 101, first_byte)

    # The second streams in 2 after the first: 11 to 21, then 23 to 33, and 1 for the processor.
    assert clocks.now_s[0] == pytest.approx(34)


def test_late_rank_makes_others_wait() -> None:
    clocks = Clocks(MODEL, 4)
    clocks.advance(100.0, rank=2)

    end = clocks.run(ALGORITHMS.get("recursive_doubling_allreduce")(4, 1, 1))

    assert (clocks.now_s[[0, 1, 3]] > 100 + 12).all()
    assert clocks.now_s[2] == pytest.approx(100 + 2 * 2.01)  # the others' messages are there already
    assert end == pytest.approx(100 + 2 * (12 + 0.01))


def test_members_leave_others_alone() -> None:
    clocks = Clocks(MODEL, 5)

    end = clocks.run(ALGORITHMS.get("ring_allreduce")(2, 2, 1), members=[4, 1])

    assert clocks.now_s.tolist() == [0, end, 0, 0, end]


def test_one_exchange_after_the_other() -> None:
    clocks, schedule = Clocks(MODEL, 8), ALGORITHMS.get("ring_allreduce")(8, 800, 4)

    first = clocks.run(schedule)

    assert clocks.run(schedule) == pytest.approx(2 * first)


def test_wait_until_never_turns_back() -> None:
    clocks = Clocks(MODEL, 2)
    clocks.wait_until(np.array([3.0, 1.0]))
    clocks.wait_until(2.0)

    assert clocks.now_s.tolist() == [3.0, 2.0]


def test_other_number_of_ranks() -> None:
    with pytest.raises(CommunicationError, match="both must be the same"):
        Clocks(MODEL, 3).run(ALGORITHMS.get("ring_allreduce")(4, 4, 4))
