from __future__ import annotations

import pytest

from deep500.core.errors import UnknownNameError
from deep500.core.event import Event
from deep500.measure.metric import TestMetric
from deep500.training.catalogue import (
    EVENTS,
    OPTIMIZERS,
    SAMPLERS,
    SCHEDULES,
    TRAINING_METRICS,
    find_metric,
    metric_names,
)
from deep500.training.optimizer import Optimizer
from deep500.training.sampler import Sampler
from deep500.training.schedule import Schedule


@pytest.mark.parametrize(
    ("registry", "names", "kind"),
    [
        (OPTIMIZERS, {"adam", "gradient_descent", "momentum"}, Optimizer),
        (SAMPLERS, {"ordered", "shuffle"}, Sampler),
        (SCHEDULES, {"cosine", "step_list", "warm_up"}, Schedule),
        (EVENTS, {"batch_hash", "progress_bar"}, Event),
        (TRAINING_METRICS, {"training_accuracy", "test_accuracy"}, TestMetric),
    ],
    ids=["optimizers", "samplers", "schedules", "events", "metrics"],
)
def test_every_plug_in_is_of_its_kind(registry, names, kind) -> None:  # type: ignore[no-untyped-def]
    assert names <= set(registry.names())
    assert all(issubclass(registry.get(name), kind) for name in registry)


def test_metrics_of_all_levels_are_listed_and_found() -> None:
    assert {"test_accuracy", "training_accuracy", "wallclock_time", "consensus_distance"} <= set(metric_names())
    assert all(issubclass(find_metric(name), TestMetric) for name in metric_names())
    with pytest.raises(UnknownNameError, match="Did you mean 'test_accuracy'"):
        find_metric("tests_accuracy")
