"""The simulated communicator keeps the communicator's contract, and its bytes and times are those of the formulas."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deep500.core.errors import CommunicationError
from deep500.distributed.communicator import ANY_SOURCE
from deep500.distributed.communicators.local import run_threads
from deep500.distributed.communicators.simulated import SimulatedCommunicator, run_simulated
from deep500.distributed.simulation.catalogue import ALGORITHMS
from deep500.distributed.simulation.clocks import Clocks
from deep500.distributed.simulation.closed_forms import closed_form
from deep500.distributed.simulation.cost_model import LogGP
from deep500.distributed.simulation.delays import Disturbance
from deep500.distributed.simulation.volumes import total_sent_bytes
from deep500.distributed.volume import known_algorithms

MODEL = LogGP(latency_s=25e-6, overhead_s=1e-6, gap_s=2e-6, gap_s_per_byte=1 / 1.1e9)


def everything(communicator) -> list:
    """Call every operation, with data that differ by rank."""
    rank, size = communicator.rank, communicator.size
    results = []
    for operation in ("sum", "mean", "product", "minimum", "maximum"):
        buffer = np.arange(6, dtype=np.float64) + rank + 1
        communicator.allreduce(buffer, operation)
        results.append(buffer)
    buffer = np.full(5, float(rank))
    communicator.broadcast(buffer, root=size - 1)
    results.append(buffer.copy())
    communicator.reduce(buffer, root=0)
    results.append(buffer if rank == 0 else None)
    gathered = np.empty(2 * size)
    communicator.allgather(np.array([rank, -rank], np.float64), gathered)
    part = np.empty(2)
    communicator.reduce_scatter(gathered, part)
    incoming = np.empty(3)
    communicator.isendrecv(np.full(3, float(rank)), (rank + 1) % size, incoming, (rank - 1) % size, tag=4).wait()
    communicator.barrier()
    work = communicator.iallreduce(part)
    work.wait()
    return [*results, gathered, part, incoming]


@pytest.mark.parametrize("size", [1, 2, 3, 4, 7])
def test_thread_ranks_exchange_what_local_ones_do(size: int) -> None:
    simulated, local = run_simulated(size, everything, MODEL), run_threads(size, everything)

    for ours, theirs in zip(simulated, local):
        assert all((a is None and b is None) or np.array_equal(a, b) for a, b in zip(ours, theirs))


def test_thread_ranks_count_what_local_ones_do() -> None:
    def volume(communicator):
        everything(communicator)
        return communicator.ledger.snapshot()

    assert run_simulated(5, volume) == run_threads(5, volume)


@given(size=st.integers(1, 6), count=st.integers(1, 2000), algorithm=st.sampled_from(["ring", "recursive_doubling"]))
@settings(max_examples=25, deadline=None)
def test_threads_and_the_one_for_all_take_the_closed_form(size: int, count: int, algorithm: str) -> None:
    def exchange(communicator: SimulatedCommunicator) -> float:
        communicator.algorithms["allreduce"] = algorithm
        communicator.allreduce(np.ones(count, np.float32))
        return communicator.clock_s

    expected = closed_form(f"{algorithm}_allreduce")(MODEL, size, count, 4)
    alone = SimulatedCommunicator(size, MODEL)
    exchange(alone)

    assert max(run_simulated(size, exchange, MODEL)) == pytest.approx(expected, rel=1e-9)
    assert max(alone.network.computed_s) == pytest.approx(expected, rel=1e-9)


@given(size=st.integers(1, 1500), count=st.integers(1, 3000), algorithm=st.sampled_from(["ring", "recursive_doubling"]))
@settings(max_examples=15, deadline=None)
def test_ledgers_of_any_number_of_ranks_sum_to_the_formula(size: int, count: int, algorithm: str) -> None:
    total = 0
    for rank in range(size) if size < 40 else (0, size // 2, size - 1):
        communicator = SimulatedCommunicator(size, MODEL, rank=rank)
        communicator.algorithms["allreduce"] = algorithm
        communicator._record("allreduce", np.empty(count, np.float32), np.empty(count, np.float32))
        sent = communicator.ledger.snapshot().sent_bytes
        total += sent
        assert sent == ALGORITHMS.get(f"{algorithm}_allreduce")(size, count, 4).sent_bytes()[rank] or size >= 40
    if size < 40:
        assert total == total_sent_bytes(f"{algorithm}_allreduce", size, count, 4)


@pytest.mark.parametrize("size", [1000, 1024])
@pytest.mark.parametrize("algorithm", ["ring", "recursive_doubling"])
def test_a_thousand_ranks(size: int, algorithm: str) -> None:
    communicator = SimulatedCommunicator(size, MODEL)
    communicator.algorithms["allreduce"] = algorithm
    count = 1 << 16
    buffer = np.ones(count, np.float32)

    communicator.allreduce(buffer)

    assert (buffer == size).all()
    ends = communicator.network.computed_s
    assert ends.max() == pytest.approx(closed_form(f"{algorithm}_allreduce")(MODEL, size, count, 4), rel=1e-3)
    name = f"{algorithm}_allreduce"
    assert communicator.ledger.snapshot().sent_bytes == ALGORITHMS.get(name)(size, count, 4).sent_bytes()[0]


def test_every_algorithm_of_the_ledger_has_a_schedule() -> None:
    operations = ("allreduce", "broadcast", "reduce", "allgather", "reduce_scatter", "barrier")
    counted = {f"{algorithm}_{name}" for name in operations for algorithm in known_algorithms(name)}

    assert counted <= set(ALGORITHMS.names())


def test_the_one_for_all_holds_what_equal_ranks_would() -> None:
    def equal(communicator) -> list:
        results = []
        for operation in ("sum", "mean", "product", "minimum", "maximum"):
            buffer = np.array([1.5, -2.0])
            communicator.allreduce(buffer, operation)
            results.append(buffer)
        gathered, part = np.empty(6), np.empty(2)
        communicator.allgather(np.array([3.0, 4.0]), gathered)
        communicator.reduce_scatter(np.array([5.0, 6.0] * 3), part)
        incoming, received = np.empty(2), np.empty(1)
        communicator.isendrecv(np.array([7.0, 8.0]), (communicator.rank + 1) % 3, incoming, 1).wait()
        work = communicator.isend(np.array([9.0]), (communicator.rank + 2) % 3, tag=2)
        source = communicator.recv(received, ANY_SOURCE, tag=2)
        work.wait()
        communicator.barrier()
        return [*results, gathered, part, incoming, received, np.array([source])]

    alone = equal(SimulatedCommunicator(3, MODEL, rank=2))

    for ours, theirs in zip(alone, run_threads(3, lambda c: equal(c) if c.rank == 2 else equal_peer(c))[2]):
        assert np.allclose(ours, theirs)


def equal_peer(communicator) -> list:
    """What the other ranks do in the test above: the same, from their own places."""
    for operation in ("sum", "mean", "product", "minimum", "maximum"):
        communicator.allreduce(np.array([1.5, -2.0]), operation)
    communicator.allgather(np.array([3.0, 4.0]), np.empty(6))
    communicator.reduce_scatter(np.array([5.0, 6.0] * 3), np.empty(2))
    rank = communicator.rank
    communicator.isendrecv(np.array([7.0, 8.0]), (rank + 1) % 3, np.empty(2), (rank - 1) % 3).wait()
    work = communicator.isend(np.array([9.0]), (rank + 2) % 3, tag=2)
    communicator.recv(np.empty(1), ANY_SOURCE, tag=2)
    work.wait()
    communicator.barrier()
    return []


def test_exchange_goes_on_beside_computation() -> None:
    def step(communicator: SimulatedCommunicator) -> tuple[float, float]:
        work = communicator.iallreduce(np.ones(100_000, np.float32))
        communicator.advance(1.0)
        computed = communicator.clock_s
        work.wait()
        return computed, communicator.clock_s

    assert run_simulated(3, step, MODEL) == [(1.0, 1.0)] * 3
    assert step(SimulatedCommunicator(512, MODEL)) == (1.0, 1.0)


def test_a_straggler_makes_all_wait() -> None:
    def step(communicator: SimulatedCommunicator) -> float:
        communicator.advance(1.0)
        communicator.allreduce(np.ones(4))
        return communicator.clock_s

    slow = Disturbance({1: 3.0})

    assert all(3.0 < end < 3.01 for end in run_simulated(3, step, MODEL, disturbance=slow))
    assert 3.0 < step(SimulatedCommunicator(1024, MODEL, disturbance=slow)) < 3.2


def test_late_messages_repeat_with_threads() -> None:
    def steps(communicator: SimulatedCommunicator) -> float:
        rank, size = communicator.rank, communicator.size
        for _ in range(10):
            communicator.allreduce(np.ones(40))
            communicator.isendrecv(np.ones(4), (rank + 1) % size, np.empty(4), (rank - 1) % size).wait()
        return communicator.clock_s

    late = Disturbance(late_share=0.2, late_s=1e-3, seed=2)
    first, again, without = (run_simulated(4, steps, MODEL, disturbance=trouble) for trouble in (late, late, None))

    assert first == again
    assert min(first) > max(without)


def test_message_takes_the_time_of_the_model() -> None:
    def message(communicator: SimulatedCommunicator) -> float:
        if communicator.rank == 0:
            communicator.advance(0.5)
            communicator.send(np.ones(1001, np.uint8), 1)
        else:
            communicator.recv(np.empty(1001, np.uint8), 0)
        return communicator.clock_s

    ends = run_simulated(2, message, MODEL)

    assert ends == pytest.approx([0.5 + MODEL.overhead_s, 0.5 + MODEL.message_s(1001)], rel=1e-12)


def test_groups_have_their_own_exchanges_on_the_same_clocks() -> None:
    def exchange(communicator: SimulatedCommunicator) -> tuple[float, float]:
        group = communicator.split(communicator.rank % 2, -communicator.rank)
        assert isinstance(group, SimulatedCommunicator)
        buffer = np.full(10, float(communicator.rank))
        group.allreduce(buffer)
        return buffer[0], group.clock_s

    results = run_simulated(5, exchange, MODEL)

    assert [value for value, _ in results] == [6, 4, 6, 4, 6]
    three, two = Clocks(MODEL, 3), Clocks(MODEL, 2)
    ring = ALGORITHMS.get("ring_allreduce")
    assert max(end for _, end in results[::2]) == pytest.approx(three.run(ring(3, 10, 8)))
    assert max(end for _, end in results[1::2]) == pytest.approx(two.run(ring(2, 10, 8)))


def test_what_the_one_for_all_cannot_do() -> None:
    communicator = SimulatedCommunicator(4, MODEL)

    with pytest.raises(CommunicationError, match="run_simulated"):
        communicator.split(0)
    with pytest.raises(CommunicationError, match="run_simulated"):
        communicator.recv(np.empty(3), 1)
    with pytest.raises(CommunicationError, match="exactly the size"):
        communicator.isendrecv(np.empty(3), 1, np.empty(2), 3)
    with pytest.raises(CommunicationError, match="called abort: enough"):
        communicator.abort("enough")


@pytest.mark.parametrize(("size", "rank"), [(0, 0), (2, 2), (2, -1), (True, 0), (2.0, 0)])
def test_ranks_that_are_not_there(size, rank) -> None:
    with pytest.raises(CommunicationError, match="whole numbers of ranks"):
        SimulatedCommunicator(size, MODEL, rank=rank)


def test_failing_rank_ends_the_run() -> None:
    def fail(communicator: SimulatedCommunicator) -> None:
        if communicator.rank == 1:
            raise ValueError("a fault of its own")
        communicator.barrier()

    with pytest.raises(ValueError, match="a fault of its own"):
        run_simulated(3, fail, MODEL)
