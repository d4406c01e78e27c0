"""Byte counts of schedules against formulas: in total, by rank and by peer."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deep500.core.errors import CommunicationError
from deep500.distributed.simulation.catalogue import ALGORITHMS
from deep500.distributed.simulation.volumes import sparse_allgather_bytes, total_sent_bytes
from deep500.distributed.volume import traffic

EQUAL_BLOCKS = {"pairwise_allgather", "pairwise_reduce_scatter", "ring_allgather", "ring_reduce_scatter"}

# Schedules that the ledger counts by peer: the operation and the algorithm there.
OF_THE_LEDGER = {
    "ring_allreduce": ("allreduce", "ring"),
    "recursive_doubling_allreduce": ("allreduce", "recursive_doubling"),
    "binomial_tree_broadcast": ("broadcast", "binomial_tree"),
    "binomial_tree_reduce": ("reduce", "binomial_tree"),
    "ring_allgather": ("allgather", "ring"),
    "ring_reduce_scatter": ("reduce_scatter", "ring"),
}


@pytest.mark.parametrize("name", ALGORITHMS.names())
@given(size=st.integers(1, 40), count=st.integers(0, 300), item_bytes=st.sampled_from([1, 2, 4, 8]))
@settings(max_examples=80, deadline=None)
def test_all_ranks_send_and_receive_the_formula(name: str, size: int, count: int, item_bytes: int) -> None:
    count *= size if name in EQUAL_BLOCKS else 1
    schedule = ALGORITHMS.get(name)(size, count, item_bytes)

    expected = total_sent_bytes(name, size, count, item_bytes)

    assert schedule.sent_bytes().sum() == expected
    assert schedule.received_bytes().sum() == expected


@pytest.mark.parametrize("name", ALGORITHMS.names())
@pytest.mark.parametrize("size", [1000, 1024])
def test_formula_of_a_thousand_ranks(name: str, size: int) -> None:
    assert ALGORITHMS.get(name)(size, 7 * size, 4).sent_bytes().sum() == total_sent_bytes(name, size, 7 * size, 4)


@pytest.mark.parametrize("name", OF_THE_LEDGER)
@given(size=st.integers(1, 20), count=st.integers(0, 100), root=st.integers(0, 19))
@settings(max_examples=60, deadline=None)
def test_every_peer_gets_what_the_ledger_counts(name: str, size: int, count: int, root: int) -> None:
    operation, algorithm = OF_THE_LEDGER[name]
    count *= size if name in EQUAL_BLOCKS else 1
    options = {"root": root % size} if "binomial" in name else {}
    schedule = ALGORITHMS.get(name)(size, count, 4, **options)
    elements = count // size if operation == "allgather" else count

    counted = [traffic(operation, algorithm, rank, size, elements, 4, **options) for rank in range(size)]

    assert [schedule.peer_bytes(rank) for rank in range(size)] == [dict(moves.sent) for moves in counted]
    assert schedule.received_bytes().tolist() == [sum(moves.received.values()) for moves in counted]


@pytest.mark.parametrize("name", ALGORITHMS.names())
@pytest.mark.parametrize("size", [2, 7, 16])
def test_ranks_send_and_receive_once_in_a_round(name: str, size: int) -> None:
    for round_ in ALGORITHMS.get(name)(size, 16 * size, 4).rounds():
        assert len(set(round_.sources.tolist())) == len(round_.sources)
        assert len(set(round_.destinations.tolist())) == len(round_.destinations)
        assert (round_.sources != round_.destinations).all()


def test_parameter_server_loads_its_root() -> None:
    schedule = ALGORITHMS.get("central_parameter_server")(9, 100, 4, root=3)

    assert schedule.sent_bytes().tolist() == [400, 400, 400, 3200, 400, 400, 400, 400, 400]
    assert np.array_equal(schedule.sent_bytes(), schedule.received_bytes())


def test_two_neighbours_that_are_one_rank_count_once() -> None:
    assert ALGORITHMS.get("neighbour_exchange")(2, 10, 4).sent_bytes().tolist() == [40, 40]
    assert ALGORITHMS.get("neighbour_exchange")(5, 10, 4).sent_bytes().tolist() == [80] * 5
    assert ALGORITHMS.get("neighbour_exchange")(1, 10, 4).sent_bytes().tolist() == [0]


def test_sparse_allgather_is_the_schedule_of_values_and_places() -> None:
    schedule = ALGORITHMS.get("pairwise_allgather")(8, 8 * 10, 4 + 4)

    assert schedule.sent_bytes().sum() == sparse_allgather_bytes(8, 10)


def test_messages_of_the_ring() -> None:
    assert ALGORITHMS.get("ring_allreduce")(6, 60, 4).messages().tolist() == [10] * 6


def test_blocks_that_do_not_divide() -> None:
    with pytest.raises(CommunicationError, match="multiple"):
        ALGORITHMS.get("pairwise_allgather")(3, 10, 4)


@pytest.mark.parametrize(("size", "count", "item_bytes"), [(0, 1, 1), (1, -1, 1), (1, 1, 0)])
def test_numbers_that_make_no_exchange(size: int, count: int, item_bytes: int) -> None:
    with pytest.raises(CommunicationError, match="1 rank or more"):
        ALGORITHMS.get("ring_allreduce")(size, count, item_bytes)
