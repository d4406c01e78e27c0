"""Bounds of clocks hold whatever messages take, and arrivals are known up to them."""

from __future__ import annotations

import numpy as np
import pytest

from deep500.core.errors import CommunicationError, MeasurementError
from deep500.distributed.communicators.local import run_threads
from deep500.distributed.scaling import clock_offsets
from deep500.distributed.scaling.clock_offsets import ClockOffset, arrival_leads_s, measure_clock_offsets


def test_bounds_hold_for_clocks_that_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    import threading

    real, ahead_ns = clock_offsets.now_ns, {0: 0, 1: 5_000_000_000, 2: -7_000_000_000}
    rank = threading.local()
    monkeypatch.setattr(clock_offsets, "now_ns", lambda: real() + ahead_ns[rank.number])

    def measure(communicator):
        rank.number = communicator.rank
        return measure_clock_offsets(communicator, 8)

    results = run_threads(3, measure)

    assert results[0] == results[1] == results[2]
    for offset, expected in zip(results[0], (0.0, 5.0, -7.0), strict=True):
        assert offset.low_s <= expected <= offset.high_s
        assert offset.high_s - offset.low_s < 1.0
    assert results[0][0] == ClockOffset(0, 0.0, 0.0)


def test_leads_are_against_the_last_to_come() -> None:
    exact = [ClockOffset(0, 0.0, 0.0), ClockOffset(1, 10.0, 10.0), ClockOffset(2, 0.0, 0.0)]
    least, most = arrival_leads_s(np.array([[1.0, 14.0, 2.0], [5.0, 12.0, 3.0]]), exact)

    assert least == pytest.approx(np.array([[3.0, 0.0, 2.0], [0.0, 3.0, 2.0]]))
    assert most == pytest.approx(least)


def test_leads_are_as_unsure_as_the_clocks() -> None:
    offsets = [ClockOffset(0, 0.0, 0.0), ClockOffset(1, -0.25, 0.5)]
    least, most = arrival_leads_s(np.array([[1.0, 3.0]]), offsets)

    assert least.tolist() == [[1.5, 0.0]]
    assert most.tolist() == [[2.25, 0.0]]


def test_one_rank_leads_nobody() -> None:
    least, most = arrival_leads_s(np.array([[1.0], [2.0]]), [ClockOffset(0, 0.0, 0.0)])

    assert not least.any()
    assert not most.any()


def test_refusals() -> None:
    with pytest.raises(MeasurementError, match="one row of all ranks"):
        arrival_leads_s(np.zeros((3, 2)), [ClockOffset(0, 0.0, 0.0)])
    with pytest.raises(CommunicationError, match="round_trips"):
        run_threads(1, lambda communicator: measure_clock_offsets(communicator, 0))
