from __future__ import annotations

import pytest

from deep500.core.errors import TrainingError
from deep500.measure.metrics.wallclock_time import WallclockTime
from deep500.training.metrics.sampler_event_metric import SamplerEventMetric
from deep500.training.optimizers.gradient_descent import GradientDescent
from tests.unit.training.support import make_trainer


def test_metric_is_measured_around_sampling() -> None:
    metric = SamplerEventMetric(WallclockTime(reruns=0))
    make_trainer(GradientDescent, batch_size=10, tested=False).run_loop(2, [metric])

    assert isinstance(metric.metric, WallclockTime)
    assert len(metric.metric.durations_s) == 6
    assert metric.measure(None, None) > 0
    assert (metric.name, metric.unit) == ("WallclockTime of sampling", "s")


def test_fresh_copy_has_measured_nothing() -> None:
    metric = SamplerEventMetric(WallclockTime(reruns=0))
    metric.before_sampling(None, 1)  # type: ignore[arg-type]
    metric.after_sampling(None, {})  # type: ignore[arg-type]

    copy = metric.fresh().metric
    assert isinstance(copy, WallclockTime)
    assert not copy.durations_s


def test_what_is_no_metric_is_refused() -> None:
    with pytest.raises(TrainingError, match="accepted is a metric"):
        SamplerEventMetric("wallclock_time")  # type: ignore[arg-type]
