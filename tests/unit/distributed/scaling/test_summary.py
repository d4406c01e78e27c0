"""Launches are summarised over launches, never pooled; efficiencies are against the base case."""

from __future__ import annotations

import json

import numpy as np
import pytest

from deep500.core.errors import MeasurementError
from deep500.distributed.scaling.clock_offsets import ClockOffset
from deep500.distributed.scaling.design import ScalingDesign
from deep500.distributed.scaling.step_measurement import LaunchMeasurement
from deep500.distributed.scaling.summary import Estimate, summarise_launches, summarise_scaling
from deep500.distributed.time_split import StepTimes, TimeSplit


def launch(ranks: int, step_s: float, steps: int = 7) -> LaunchMeasurement:
    split = TimeSplit()
    for _ in range(steps):
        split.record([StepTimes(step_s * (0.5 + rank / 10), 0.3 * step_s, 0.2 * step_s) for rank in range(ranks)])
    offsets = tuple(ClockOffset(rank, -1e-6 * rank, 2e-6 * rank) for rank in range(ranks))
    leads = np.stack([np.full((steps, ranks), 0.1), np.full((steps, ranks), 0.3)])
    counted = tuple({"sent_bytes": 100.0, "received_bytes": 100.0, "payload_bytes": 50.0} for _ in range(ranks))
    times = np.full((ranks, steps), step_s)
    times[0] *= 0.9  # the slowest rank counts
    if ranks == 1:
        times[0] = step_s
    return LaunchMeasurement(times, split, leads, offsets, counted)


@pytest.mark.parametrize(
    ("mode", "efficiency", "speedup", "samples"), [("strong", 0.8, 1.6, 32), ("weak", 1.6, 3.2, 64)]
)
def test_points(mode: str, efficiency: float, speedup: float, samples: int) -> None:
    factors = [1.0, 1.01, 0.99, 1.02, 0.98, 1.0]
    launches = {1: [launch(1, 1.6 * f) for f in factors], 2: [launch(2, f) for f in factors]}
    base, point = summarise_scaling(launches, ScalingDesign((1, 2), mode), 32)

    assert base.efficiency == Estimate(1.0)
    assert base.step_s.value == pytest.approx(1.6)
    assert point.step_s.basis == "launches"
    assert point.step_s.low is not None
    assert point.step_s.high is not None
    assert point.step_s.low < 1.0 < point.step_s.high
    assert point.efficiency.value == pytest.approx(efficiency)
    assert point.efficiency.low == pytest.approx(efficiency)  # the launches of a round vary together
    assert point.speedup.value == pytest.approx(speedup)
    assert (point.samples, point.samples_per_s.value) == (samples, pytest.approx(samples))
    assert point.samples_per_s.low < point.samples_per_s.value < point.samples_per_s.high  # type: ignore[operator]
    json.dumps(point.to_dict(), allow_nan=False)


def test_parts_of_each_rank() -> None:
    (point,) = summarise_scaling({2: [launch(2, 1.0)] * 6}, ScalingDesign((2,)), 8)
    first, second = point.by_rank

    assert (first.compute_s.value, second.compute_s.value) == (0.5, 0.6)
    assert (first.imbalance_s.value, second.imbalance_s.value) == (pytest.approx(0.1), 0.0)
    assert (first.exchange_s.value, first.exposed_s.value) == (0.3, 0.2)
    assert (first.lead_s.value, first.lead_s.low, first.lead_s.high) == (pytest.approx(0.2), 0.1, 0.3)
    assert second.clock_offset_s == (-1e-6, 2e-6)
    assert second.bytes_a_step["sent_bytes"] == 100


def test_interval_needs_launches() -> None:
    assert summarise_launches([[1.0, 2.0, 3.0]] * 5) == Estimate(2.0)
    assert summarise_launches([[1.0, 2.0, 3.0]]) == Estimate(2.0)
    one = summarise_launches([[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]])
    assert (one.low, one.high, one.basis) == (1.0, 6.0, "steps of one launch")
    several = summarise_launches([[value] for value in (6.0, 5.0, 4.0, 3.0, 2.0, 1.0)])
    assert (several.value, several.low, several.high, several.basis) == (3.5, 1.0, 6.0, "launches")
    with pytest.raises(MeasurementError, match="without a sample"):
        summarise_launches([[1.0], []])


def test_few_launches_have_a_ratio_without_an_interval() -> None:
    points = summarise_scaling({1: [launch(1, 1.0)], 2: [launch(2, 0.5)]}, ScalingDesign((1, 2), launches=1), 32)

    assert points[1].efficiency == Estimate(1.0)


def test_rate_of_a_time() -> None:
    rate = Estimate(2.0, 1.0, 4.0, "launches").over(8.0)

    assert (rate.value, rate.low, rate.high) == (4.0, 2.0, 8.0)
    assert Estimate(2.0).over(8.0) == Estimate(4.0)


def test_run_that_broke_off_has_what_was_measured() -> None:
    design = ScalingDesign((1, 2, 4))
    one, two = [launch(1, 1.6 + 0.01 * n) for n in range(7)], [launch(2, 1.0 + 0.01 * n) for n in range(6)]
    base, point = summarise_scaling({1: one, 2: two}, design, 32)
    assert point.efficiency.basis == "launches"  # the six rounds that have both
    assert (base.ranks, point.ranks) == (1, 2)

    (only,) = summarise_scaling({4: [launch(4, 1.0)]}, design, 32)
    assert (only.ranks, only.efficiency, only.speedup) == (4, Estimate(1.0), Estimate(1.0))
