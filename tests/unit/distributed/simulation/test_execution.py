"""Schedules on data: each algorithm does what its operation says."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deep500.core.errors import CommunicationError
from deep500.distributed.simulation.catalogue import ALGORITHMS
from deep500.distributed.simulation.execution import execute

ALLREDUCES = [name for name in ALGORITHMS.names() if name.endswith("allreduce")] + ["central_parameter_server"]


def whole_numbers(size: int, count: int) -> list[np.ndarray]:
    stream = np.random.default_rng(size * 1000 + count)
    return [stream.integers(-1000, 1000, count) for _ in range(size)]


@pytest.mark.parametrize("name", ALLREDUCES)
@given(size=st.integers(1, 20), count=st.integers(0, 50))
@settings(max_examples=60, deadline=None)
def test_allreduce_sums(name: str, size: int, count: int) -> None:
    buffers = whole_numbers(size, count)
    expected = sum(buffers)

    execute(ALGORITHMS.get(name)(size, count, 8), buffers)

    assert all(np.array_equal(buffer, expected) for buffer in buffers)


@pytest.mark.parametrize("name", ALLREDUCES)
def test_allreduce_takes_the_maximum(name: str) -> None:
    buffers = whole_numbers(6, 10)
    expected = np.max(buffers, axis=0)

    execute(ALGORITHMS.get(name)(6, 10, 8), buffers, np.maximum)

    assert all(np.array_equal(buffer, expected) for buffer in buffers)


@pytest.mark.parametrize("size", [1, 2, 3, 5, 8, 13])
def test_broadcast_and_reduce(size: int) -> None:
    for root in range(size):
        sent, reduced = whole_numbers(size, 5), whole_numbers(size, 5)
        expected, total = sent[root].copy(), sum(reduced)

        execute(ALGORITHMS.get("binomial_tree_broadcast")(size, 5, 8, root), sent)
        execute(ALGORITHMS.get("binomial_tree_reduce")(size, 5, 8, root), reduced)

        assert all(np.array_equal(buffer, expected) for buffer in sent)
        assert np.array_equal(reduced[root], total)


@pytest.mark.parametrize("size", [1, 2, 3, 5, 8])
@pytest.mark.parametrize("name", ["pairwise_allgather", "ring_allgather"])
def test_allgather(name: str, size: int) -> None:
    blocks = whole_numbers(size, 3)
    buffers = [np.zeros(3 * size, np.int64) for _ in range(size)]
    for rank, block in enumerate(blocks):
        buffers[rank][3 * rank : 3 * rank + 3] = block

    execute(ALGORITHMS.get(name)(size, 3 * size, 8), buffers)

    assert all(np.array_equal(buffer, np.concatenate(blocks)) for buffer in buffers)


@pytest.mark.parametrize("size", [1, 2, 3, 5, 8])
@pytest.mark.parametrize("name", ["pairwise_reduce_scatter", "ring_reduce_scatter"])
def test_reduce_scatter(name: str, size: int) -> None:
    buffers = whole_numbers(size, 3 * size)
    expected = sum(buffers)

    execute(ALGORITHMS.get(name)(size, 3 * size, 8), buffers)

    for rank, buffer in enumerate(buffers):
        block = slice(3 * rank, 3 * rank + 3)
        assert np.array_equal(buffer[block], expected[block])


def test_neighbours_deliver_beside_the_buffer() -> None:
    buffers = whole_numbers(5, 4)
    before = [buffer.copy() for buffer in buffers]

    delivered = execute(ALGORITHMS.get("neighbour_exchange")(5, 4, 8), buffers)

    for rank in range(5):
        assert np.array_equal(buffers[rank], before[rank])
        assert np.array_equal(delivered[rank], [before[(rank - 1) % 5], before[(rank + 1) % 5]])


def test_barrier_reaches_everyone() -> None:
    """Whoever was heard of, directly or not, grows to all ranks: nobody leaves before the last has come."""
    for size in range(1, 20):
        heard = [{rank} for rank in range(size)]
        for round_ in ALGORITHMS.get("dissemination_barrier")(size).rounds():
            before = [set(known) for known in heard]
            for source, destination in zip(round_.sources, round_.destinations):
                heard[destination] |= before[source]
        assert all(len(known) == size for known in heard)


def test_wrong_buffers() -> None:
    with pytest.raises(CommunicationError, match="one buffer a rank"):
        execute(ALGORITHMS.get("ring_allreduce")(3, 4, 8), whole_numbers(2, 4))
