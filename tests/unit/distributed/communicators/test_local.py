from __future__ import annotations

import time

import numpy as np
import pytest

from deep500.core.errors import CommunicationError
from deep500.distributed.communicators.local import LocalCommunicator, run_threads


def test_results_come_in_order_of_ranks() -> None:
    assert run_threads(4, lambda c: (c.rank, c.size, c.local_rank)) == [(rank, 4, rank) for rank in range(4)]


@pytest.mark.parametrize("count", [0, -1, True, 2.0, "2"])
def test_number_of_ranks_is_checked(count: object) -> None:
    with pytest.raises(CommunicationError, match="number of ranks"):
        run_threads(count, lambda c: None)  # type: ignore[arg-type]


def test_failure_of_one_rank_is_raised_and_ends_the_others() -> None:
    def fail(communicator: LocalCommunicator) -> None:
        if communicator.rank == 1:
            raise KeyError("lost")
        communicator.allreduce(np.ones(3))

    start = time.monotonic()
    with pytest.raises(KeyError, match="lost"):
        run_threads(3, fail, timeout_s=30)
    assert time.monotonic() - start < 10


def test_abort_ends_all_with_the_message() -> None:
    ended = []

    def stop(communicator: LocalCommunicator) -> None:
        try:
            if communicator.rank == 2:
                communicator.abort("no data")
            communicator.barrier()
        except CommunicationError as error:
            ended.append(str(error))
            raise

    with pytest.raises(CommunicationError, match="rank 2 called abort: no data"):
        run_threads(3, stop, timeout_s=30)
    assert len(ended) == 3
    assert all("rank 2 called abort: no data" in message for message in ended)


def test_rank_that_does_not_come_is_an_error_after_the_limit() -> None:
    def wait(communicator: LocalCommunicator) -> None:
        if communicator.rank == 0:
            communicator.allreduce(np.ones(3))

    with pytest.raises(CommunicationError, match=r"allreduce on rank 0 was not done within 0.2 s"):
        run_threads(2, wait, timeout_s=0.2)


def test_wait_may_name_a_limit_of_its_own() -> None:
    def wait(communicator: LocalCommunicator) -> None:
        if communicator.rank == 0:
            work = communicator.irecv(np.ones(3), 1)
            assert not work.test()
            work.wait(timeout_s=0.1)

    with pytest.raises(CommunicationError, match=r"recv on rank 0 was not done within 0.1 s"):
        run_threads(2, wait, timeout_s=None)


@pytest.mark.parametrize("rank_1", ["length", "dtype", "operation", "root", "call"])
def test_calls_that_do_not_match_are_named(rank_1: str) -> None:
    def call(communicator: LocalCommunicator) -> None:
        odd = rank_1 if communicator.rank == 1 else ""
        buffer = np.ones(5 if odd == "length" else 4, np.float32 if odd == "dtype" else np.float64)
        if odd == "call":
            communicator.barrier()
        else:
            communicator.reduce(buffer, 1 if odd == "root" else 0, "maximum" if odd == "operation" else "sum")

    with pytest.raises(
        CommunicationError, match="calls do not match: rank 0: reduce of 4 float64, sum, root 0; rank 1"
    ):
        run_threads(2, call)


def test_send_returns_when_the_receiver_has_it() -> None:
    def exchange(communicator: LocalCommunicator) -> bool:
        if communicator.rank == 0:
            work = communicator.isend(np.ones(2), 1)
            early = work.test()
            communicator.barrier()
            work.wait()
            return early
        communicator.barrier()
        communicator.recv(np.zeros(2), 0)
        return False

    assert run_threads(2, exchange) == [False, False]


def test_result_is_the_same_in_every_run() -> None:
    def add(communicator: LocalCommunicator) -> bytes:
        buffer = np.random.default_rng(communicator.rank).normal(size=1000).astype(np.float32)
        communicator.allreduce(buffer)
        return buffer.tobytes()

    assert len({result for _ in range(5) for result in run_threads(4, add)}) == 1


@pytest.mark.parametrize(
    ("color", "key"), [("a", 0), (-1, 0), (1.5, 0), (True, 0), (2**31, 0), (0, "k"), (0, None), (0, 2**40)]
)
def test_what_is_no_group_is_refused(color: object, key: object) -> None:
    with pytest.raises(CommunicationError, match=r"Received the (color|key) .* of a group of ranks\. Accepted"):
        LocalCommunicator().split(color, key)  # type: ignore[arg-type]


def test_what_ranks_do_is_a_function() -> None:
    with pytest.raises(CommunicationError, match="Received None as what each rank does"):
        run_threads(2, None)  # type: ignore[arg-type]
