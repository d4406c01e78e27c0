"""Measuring a recipe's metrics, whether its training came to an end or not."""

from __future__ import annotations

import dataclasses
import logging
from typing import Any

from deep500.core.errors import Deep500Error, RecipeError
from deep500.core.texts import message_of, shown
from deep500.measure.metric import TestMetric
from deep500.recipe.result import MetricResult
from deep500.training.ranks import Ranks
from deep500.training.trainer import Trainer

__all__ = ["agreed_metrics", "measure_if_possible", "measure_metric", "measure_what_there_is"]

logger = logging.getLogger(__name__)


def agreed_metrics(results: list[MetricResult], ranks: Ranks) -> list[MetricResult]:
    """Return what rank 0 has measured, whose verdict is that of all ranks."""
    if ranks.size == 1:
        return results
    return [MetricResult(**found) for found in ranks.decided([dataclasses.asdict(result) for result in results])]


def measure_metric(metric: TestMetric, acceptable: float | None, trainer: Trainer, outputs: Any) -> MetricResult:
    """Return a metric's value and whether it is acceptable.

    Args:
        metric: The metric, which was told of the begin and the end of the training.
        acceptable: The value that is just good enough.
        trainer: What trained.
        outputs: The statistics of the training.

    Raises:
        RecipeError: What it measured is no number.
    """
    measured = metric.measure(trainer, outputs)
    try:
        value = float(measured)
    except (TypeError, ValueError, OverflowError) as error:
        raise RecipeError(f"The metric {metric.name} measured {shown(measured)}; accepted is a number.") from error
    passed = None if acceptable is None else metric.accepts(value, acceptable)
    margin = None if acceptable is None else metric.margin(value, acceptable)
    return MetricResult(metric.name, value, metric.unit, metric.direction.value, acceptable, margin, passed)


def measure_if_possible(metric: TestMetric, acceptable: float | None, trainer: Trainer, outputs: Any) -> MetricResult:
    """Measure a training that diverged: what it did not come to is no mistake of the recipe."""
    try:
        return measure_metric(metric, acceptable, trainer, outputs)
    except Deep500Error as error:
        logger.debug("%s was not measured: %s", metric.name, message_of(error))
        return _unmeasured(metric, acceptable)


def measure_what_there_is(metric: TestMetric, acceptable: float | None, trainer: Trainer) -> MetricResult:
    """Measure a run that broke off, as far as the metric can; what is incomplete passes nothing."""
    try:
        measured = measure_metric(metric, acceptable, trainer, trainer.statistics)
    except Exception as error:  # noqa: BLE001 - the metric's own code, on a training that is not whole
        logger.debug("%s was not measured: %s", metric.name, message_of(error))
        return _unmeasured(metric, acceptable)
    return dataclasses.replace(measured, passed=None if acceptable is None else False)


def _unmeasured(metric: TestMetric, acceptable: float | None) -> MetricResult:
    passed = None if acceptable is None else False
    return MetricResult(metric.name, None, metric.unit, metric.direction.value, acceptable, None, passed)
