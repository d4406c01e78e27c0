"""What training finds by name: samplers, update rules, schedules, events and metrics, one file each."""

from __future__ import annotations

from typing import Any

from deep500.core.errors import UnknownNameError, near_miss
from deep500.core.registry import Registry
from deep500.datasets.augmentation import AUGMENTATIONS
from deep500.measure.metric import METRICS

__all__ = [
    "DISTRIBUTED_METRICS",
    "EVENTS",
    "OPTIMIZERS",
    "SAMPLERS",
    "SCHEDULES",
    "TRAINING_METRICS",
    "TRANSFORMATIONS",
    "find_metric",
    "metric_names",
]

#: Update rules written once for every framework, ``deep500/training/optimizers``.
OPTIMIZERS = Registry("optimizer", "deep500.training.optimizers")

#: Samplers, ``deep500/training/samplers``.
SAMPLERS = Registry("sampler", "deep500.training.samplers")

#: Transformations of minibatches that have a name: the augmentations of images.
TRANSFORMATIONS = AUGMENTATIONS

#: Schedules of hyperparameters, ``deep500/training/schedules``.
SCHEDULES = Registry("schedule", "deep500.training.schedules")

#: Events, ``deep500/training/events``.
EVENTS = Registry("event", "deep500.training.events")

#: Metrics of a training, ``deep500/training/metrics``; those of any test are in ``deep500.measure.metric.METRICS``.
TRAINING_METRICS = Registry("training metric", "deep500.training.metrics")

#: Metrics of a distributed training, ``deep500/distributed/metrics``: a name here, imported where one is asked for.
DISTRIBUTED_METRICS = Registry("metric of distributed training", "deep500.distributed.metrics")


def metric_names() -> list[str]:
    """Return the names of all metrics, those of training included, sorted, without importing any."""
    return sorted({*METRICS.names(), *TRAINING_METRICS.names(), *DISTRIBUTED_METRICS.names()})


def find_metric(name: str) -> Any:
    """Return the metric class of a name, whichever level brings it.

    Raises:
        UnknownNameError: There is none.
    """
    for registry in (TRAINING_METRICS, METRICS, DISTRIBUTED_METRICS):
        if name in registry:
            return registry.get(name)
    known = metric_names()
    raise UnknownNameError(
        f"There is no metric named {name!r}.{near_miss(str(name), known)} Known metrics: {', '.join(known)}."
    )
