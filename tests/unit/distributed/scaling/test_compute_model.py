"""A step's computation as a line over its samples."""

from __future__ import annotations

import pytest

from deep500.core.errors import MeasurementError
from deep500.distributed.scaling.compute_model import ComputeModel, ComputeTimes, measure_compute
from deep500.training.optimizers.gradient_descent import GradientDescent
from tests.unit.distributed.support import RankExecutor, batch


def times(samples: int, step_s: float) -> ComputeTimes:
    return ComputeTimes(samples, step_s / 4, step_s * 0.75, step_s)


def test_line_is_found_again() -> None:
    model = ComputeModel.of([times(samples, 0.5 + 0.25 * samples) for samples in (1, 4, 16)])

    assert model.fixed_s == pytest.approx(0.5)
    assert model.sample_s == pytest.approx(0.25)
    assert model.forward_share == pytest.approx(1 / 3)
    assert model.step_s(64) == pytest.approx(16.5)


def test_neither_part_is_negative() -> None:
    falling = ComputeModel.of([times(1, 2.0), times(8, 1.0)])
    steep = ComputeModel.of([times(1, 0.1), times(10, 2.0)])

    assert (falling.fixed_s, falling.sample_s) == (1.5, 0.0)
    assert (steep.fixed_s, steep.sample_s) == (0.0, pytest.approx(0.15))


def test_one_size_tells_the_update_apart() -> None:
    model = ComputeModel.of([times(8, 2.0)])

    assert model.fixed_s == pytest.approx(0.5)
    assert model.sample_s == pytest.approx(1.5 / 8)


def test_step_for_predictions() -> None:
    step = ComputeModel.of([times(1, 0.75), times(4, 1.5)]).training_step(8, 4000, 1 << 22, overlaps=True)

    assert step.compute_s == pytest.approx(2.5)
    assert step.fixed_s == pytest.approx(0.5)
    assert step.forward_s == pytest.approx(2 / 3)
    assert step.buckets == [1000]


def test_measured_times_grow_from_part_to_part() -> None:
    optimizer = GradientDescent(RankExecutor())
    found = measure_compute(optimizer, {4: [batch(0, 4)], 2: [batch(1, 2), batch(2, 2)]}, steps=3, warm_up=1)

    assert [entry.samples for entry in found] == [2, 4]
    assert all(min(entry.forward_s, entry.differentiated_s, entry.step_s) > 0 for entry in found)
    assert optimizer.step_count == 8
    assert ComputeModel.of(found).to_dict()["times"][0]["samples"] == 2


def test_nothing_measured() -> None:
    with pytest.raises(MeasurementError, match="measure one first"):
        ComputeModel.of([])
