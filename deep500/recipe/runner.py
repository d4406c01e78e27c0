"""Running a recipe to its verdict."""

from __future__ import annotations

import dataclasses
import datetime
import logging
import math
import sys
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from deep500.core.errors import RecipeError
from deep500.core.event import Event
from deep500.core.files import check_writable
from deep500.core.requirement import Requirement
from deep500.core.texts import message_of, shown, shown_path
from deep500.frameworks import FRAMEWORKS
from deep500.measure.environment.noise import take_witness
from deep500.measure.environment.record import record_environment
from deep500.measure.metric import TestMetric
from deep500.measure.region_breakdown import RegionBreakdown
from deep500.measure.regions import collect_regions, region
from deep500.recipe.build import Build, build_recipe
from deep500.recipe.experiment import experiment_hash
from deep500.recipe.loading import is_loading
from deep500.recipe.overrides import override_recipe
from deep500.recipe.recipe import Recipe
from deep500.recipe.reporter import ConsoleReporter, Reporter, SilentReporter
from deep500.recipe.result import MetricResult, RecipeResult, write_result
from deep500.recipe.versions import versions_of_run
from deep500.training.events.batch_hash import BatchHashEvent
from deep500.training.statistics import TrainingStatistics
from deep500.training.trainer import Trainer

__all__ = ["execute_recipe", "run_recipe"]

logger = logging.getLogger(__name__)


def run_recipe(
    fixed: Mapping[str, Any],
    mutable: Mapping[str, Any],
    metrics: Sequence[tuple[TestMetric | str, float | None]],
    *,
    name: str | None = None,
    changes: Mapping[str, Any] | None = None,
    framework: str | None = None,
    seed: int | None = None,
    device: Any = None,
    output: str | PathLike[str] | None = None,
    reporter: Reporter | None = None,
) -> bool:
    """Run a recipe, tell the verdict, and return it.

    What is passed is not changed: metrics and events are used as copies.

    Args:
        fixed: The definitions that may not be changed.
        mutable: The definitions that may be changed.
        metrics: Pairs ``(metric, acceptable value)``; ``None`` for a metric that is only reported.
        name: Name for reports; by default that of the calling file.
        changes: Other values of mutable keys; see :func:`deep500.recipe.overrides.override_recipe`.
        framework: Framework that is to run it instead of the recipe's.
        seed: Seed instead of the recipe's.
        device: Device instead of the recipe's.
        output: Path of a result file; see ``deep500/recipe/result.schema.json``.
        reporter: Who is told; by default the standard output.

    Returns:
        Whether no metric is worse than acceptable and the training stayed finite.

    Raises:
        Deep500Error: The recipe is not valid, or what it describes cannot be built or trained.

    Example:
        >>> run_recipe(FIXED, MUTABLE, METRICS) or exit(1)  # doctest: +SKIP
    """
    if is_loading():
        raise RecipeError("run_recipe was called while the recipe is read; put it under: if __name__ == '__main__'")
    file = sys._getframe(1).f_globals.get("__file__")
    name = name or (Path(file).stem if file else "recipe")
    recipe = Recipe(fixed, mutable, metrics, name=name, path=file)
    recipe = override_recipe(recipe, changes=changes or {}, framework=framework, seed=seed, device=device)
    return execute_recipe(recipe, output=output, reporter=reporter or ConsoleReporter()).passed


def execute_recipe(
    recipe: Recipe, *, output: str | PathLike[str] | None = None, reporter: Reporter | None = None
) -> RecipeResult:
    """Run a recipe and return all that was found.

    When the training is interrupted (Ctrl-C) or fails, the result so far is reported and written, marked as incomplete,
    before the exception goes on.

    Args:
        recipe: The recipe.
        output: Path of a result file. That it can be written is checked before anything runs.
        reporter: Who is told; by default nobody.

    Raises:
        Deep500Error: What the recipe describes cannot be built or trained, or the result cannot be written.
    """
    reporter = reporter or SilentReporter()
    if output is not None:
        check_writable(output, "result")
        if recipe.path is not None and Path(output).resolve() == Path(recipe.path).resolve():
            raise RecipeError(f"The result cannot be written to {shown_path(output)}: that is the recipe itself.")
    with collect_regions() as breakdown:
        return _execute(recipe, output, reporter, breakdown)


def _execute(
    recipe: Recipe, output: str | PathLike[str] | None, reporter: Reporter, breakdown: RegionBreakdown
) -> RecipeResult:
    build = build_recipe(recipe)
    metrics = [(metric.fresh(), acceptable) for metric, acceptable in recipe.metrics]
    for metric, _ in metrics:
        metric.synchronize = build.executor.synchronize
    result = _new_result(recipe, build)
    trainer = Trainer(build.train_sampler, build.validation_sampler, build.executor, build.optimizer, build.output)
    batches = BatchHashEvent()
    own = [metric for metric, _ in metrics if isinstance(metric, Event)]
    events = [*reporter.events(recipe["epochs"]), *build.events, batches, *own]
    witness = take_witness()
    reporter.started(result)
    try:
        statistics = _train(trainer, recipe["epochs"], events, [metric for metric, _ in metrics])
        result.failure = _divergence(statistics)
        with region("metrics"):
            result.metrics = [_measure(metric, acceptable, trainer, statistics) for metric, acceptable in metrics]
        result.complete = True
    except BaseException as error:
        result.failure = (
            "interrupted" if isinstance(error, KeyboardInterrupt) else f"{type(error).__name__}: {message_of(error)}"
        )
        raise
    finally:
        result.ended = _now()
        result.first_epoch_batches_hash = batches.digest if batches.complete else None
        result.statistics = trainer.statistics.to_dict() if trainer.statistics else {}
        if not result.metrics:
            result.metrics = [_measure_what_there_is(metric, acceptable, trainer) for metric, acceptable in metrics]
        result.noise = take_witness().since(witness).to_dict()
        result.regions = breakdown.to_dict()
        # The file first: whoever reads the verdict finds it written.
        if output is not None:
            write_result(result, output)
        reporter.finished(result)
    return result


@region("training")
def _train(trainer: Trainer, epochs: int, events: Sequence[Event], metrics: Sequence[TestMetric]) -> TrainingStatistics:
    """Train between the metrics' begin and end. A training is one run: metrics' own reruns do not apply to it."""
    for metric in metrics:
        metric.begin(trainer if metric.requires_inputs else None)
    statistics = trainer.run_loop(epochs, events)
    for metric in reversed(metrics):
        metric.end(statistics if metric.requires_outputs else None)
    return statistics


def _measure(metric: TestMetric, acceptable: float | None, trainer: Trainer, outputs: Any) -> MetricResult:
    measured = metric.measure(trainer, outputs)
    try:
        value = float(measured)
    except (TypeError, ValueError, OverflowError) as error:
        raise RecipeError(f"The metric {metric.name} measured {shown(measured)}; accepted is a number.") from error
    passed = None if acceptable is None else metric.accepts(value, acceptable)
    margin = None if acceptable is None else metric.margin(value, acceptable)
    return MetricResult(metric.name, value, metric.unit, metric.direction.value, acceptable, margin, passed)


def _measure_what_there_is(metric: TestMetric, acceptable: float | None, trainer: Trainer) -> MetricResult:
    """Measure a run that broke off, as far as the metric can; what is incomplete passes nothing."""
    try:
        measured = _measure(metric, acceptable, trainer, trainer.statistics)
    except Exception as error:  # noqa: BLE001 - the metric's own code, on a training that is not whole
        logger.debug("%s was not measured: %s", metric.name, message_of(error))
        return _unmeasured(metric, acceptable)
    return dataclasses.replace(measured, passed=None if acceptable is None else False)


def _unmeasured(metric: TestMetric, acceptable: float | None) -> MetricResult:
    passed = None if acceptable is None else False
    return MetricResult(metric.name, None, metric.unit, metric.direction.value, acceptable, None, passed)


def _divergence(statistics: TrainingStatistics) -> str | None:
    """Return what to say of a training whose loss stopped being a finite number."""
    for record in statistics.epochs:
        for step, loss in enumerate(record.training.step_losses if record.training else ()):
            if not math.isfinite(loss):
                return f"The training diverged: the loss is {loss} in epoch {record.epoch + 1}, step {step + 1}."
        if record.test is not None and record.test.loss is not None and not math.isfinite(record.test.loss):
            return f"The training diverged: the test loss is {record.test.loss} after epoch {record.epoch + 1}."
    return None


def _new_result(recipe: Recipe, build: Build) -> RecipeResult:
    framework = build.executor.framework
    requirement = getattr(FRAMEWORKS.get(framework), "REQUIREMENT", None) if framework in FRAMEWORKS else None
    version = requirement.version() if isinstance(requirement, Requirement) else "unavailable"
    with region("environment"):
        environment = record_environment().to_dict()
        versions = versions_of_run(framework, version)
    return RecipeResult(
        recipe={"name": recipe.name, "path": recipe.path},
        **recipe.description,
        configuration_hash=recipe.configuration_hash,
        experiment_hash=experiment_hash(recipe),
        framework={"name": framework, "version": version},
        device=str(build.executor.device),
        seeds=build.seeds,
        initial_weights_hash=build.executor.network.weights_hash(),
        versions=versions,
        environment=environment,
        started=_now(),
    )


def _now() -> str:
    return datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="milliseconds")
