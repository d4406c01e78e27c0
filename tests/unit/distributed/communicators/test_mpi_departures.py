"""When a rank that waits must be ended, and when not; the ranks themselves are in tests/conformance."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from deep500.distributed.communicators import _mpi_departures
from deep500.distributed.communicators._mpi_departures import Departures, Wait


class Ended(Exception):  # noqa: N818 - stands for the end of the process
    pass


class Elapsed:
    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def elapsed_s(self) -> float:
        return self.seconds


def departures(**departed: tuple[dict[str, int], float]) -> Departures:
    """Return what has seen ranks leave (``r1=({"0": 3}, 5.0)``: with three operations in group 0, five seconds ago)."""
    found: Any = Departures.__new__(Departures)
    found._counts, found._waits, found._over = {}, {}, threading.Event()
    found._departed = {int(name[1:]): (counts, Elapsed(ago)) for name, (counts, ago) in departed.items()}
    return found


@pytest.fixture(autouse=True)
def no_end(monkeypatch: pytest.MonkeyPatch) -> None:
    def end(message: str) -> None:
        raise Ended(message)

    monkeypatch.setattr(_mpi_departures, "abort_all", end)


@pytest.mark.parametrize(
    ("wait", "gone"),
    [
        (Wait("allreduce", [1, 2], "0", 4), "rank 1"),  # rank 1 left after the third
        (Wait("recv", [1], "0", 0), "rank 1"),
        (Wait("allreduce", [1], "0/1:0", 1), "rank 1"),  # never took part in this group
    ],
)
def test_wait_that_cannot_end(wait: Wait, gone: str) -> None:
    with pytest.raises(Ended, match=rf"waits in {wait.operation} for {gone}, which has ended"):
        departures(r1=({"0": 3}, 5.0))._check(wait)


@pytest.mark.parametrize(
    "wait",
    [
        Wait("reduce", [1, 2], "0", 3),  # rank 1 has done its part; rank 2 is slow
        Wait("allreduce", [2], "0/1:0", 9),  # a group without rank 1
        Wait("recv", [2], "0", 0),
        Wait("recv", [1, 2], "0", 0),  # from any rank, and rank 2 is there
    ],
)
def test_wait_that_may_end(wait: Wait) -> None:
    departures(r1=({"0": 3}, 5.0))._check(wait)


def test_message_under_way_is_waited_for() -> None:
    departures(r1=({}, 0.5))._check(Wait("recv", [1], "0", 0))


def test_operations_are_numbered_by_group() -> None:
    counted = departures()

    assert [counted.next_number("0"), counted.next_number("0"), counted.next_number("0/1:2")] == [1, 2, 1]


def test_late_message_names_the_operation_and_the_ranks() -> None:
    message = Wait("allreduce", [0, 2], "0", 1).late(1.5)

    assert message.startswith("allreduce was not done within 1.5 s: of the ranks 0, 2 at least one does not answer")
