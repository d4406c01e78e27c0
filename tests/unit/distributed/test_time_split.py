"""Times of steps by rank."""

from __future__ import annotations

import numpy as np
import pytest

from deep500.core.errors import MeasurementError
from deep500.distributed.communicators.local import run_threads
from deep500.distributed.time_split import StepTimes, TimeSplit


def test_medians_with_intervals_by_rank() -> None:
    split = TimeSplit()
    for step in range(9):
        split.record([StepTimes(1.0 + step, 0.5, 0.25), StepTimes(3.0 + step, 0.5, 0.1 * step)])
    first, second = split.by_rank()

    assert (first.rank, second.rank) == (0, 1)
    assert first.compute_s.estimate == 5.0
    assert first.compute_s.low < 5.0 < first.compute_s.high
    assert first.compute_s.coverage >= 0.95
    assert (first.imbalance_s.estimate, second.imbalance_s.estimate) == (2.0, 0.0)
    assert second.exposed_s.estimate == pytest.approx(0.4)
    assert split.medians_s() == pytest.approx(np.array([[5, 0.5, 0.25], [7, 0.5, 0.4]]))
    assert split.steps == 9


def test_ranks_give_their_own() -> None:
    def steps(communicator):
        split = TimeSplit()
        for _ in range(6):
            split.record_own(StepTimes(1.0 + communicator.rank, 0.5, 0.2), communicator)
        return split.by_rank()

    every = run_threads(3, steps)

    assert every[0] == every[1] == every[2]
    assert [rank.imbalance_s.estimate for rank in every[0]] == [2, 1, 0]


def test_steps_of_each_rank_are_gathered() -> None:
    def steps(communicator):
        own = [StepTimes(1.0 + step, 0.5, 0.1 * communicator.rank) for step in range(4 + communicator.rank)]
        return TimeSplit.gathered(own, communicator)

    first, second = run_threads(2, steps)

    assert first.steps == 4  # as many as the rank with the fewest
    assert np.array_equal(first.times_s(), second.times_s())
    assert first.times_s()[:, :, 0].tolist() == [[1, 1], [2, 2], [3, 3], [4, 4]]
    assert first.times_s()[0, :, 2].tolist() == [0, 0.1]
    whole = TimeSplit()
    whole.add(first)
    whole.add(second)
    assert whole.steps == 8
    assert run_threads(2, lambda communicator: TimeSplit.gathered([], communicator).steps) == [0, 0]


def test_too_few_steps_for_an_interval() -> None:
    split = TimeSplit()
    with pytest.raises(MeasurementError, match="No step"):
        split.by_rank()
    split.record([StepTimes(1.0, 0.5, 0.2)])
    with pytest.raises(MeasurementError, match="at least 6"):
        split.by_rank()


@pytest.mark.parametrize(
    "ranks", [[], [StepTimes(-1.0, 0, 0)], [StepTimes(float("nan"), 0, 0)], [StepTimes(1, 1, 1)] * 3]
)
def test_times_that_are_not_accepted(ranks: list[StepTimes]) -> None:
    split = TimeSplit()
    split.record([StepTimes(1, 1, 1)] * 2)
    with pytest.raises(MeasurementError, match="Accepted are times"):
        split.record(ranks)
