"""Running a recipe to its verdict."""

from __future__ import annotations

import dataclasses
import datetime
import logging
import sys
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from deep500.core.errors import Deep500Error, RecipeError
from deep500.core.event import Event
from deep500.core.files import check_writable
from deep500.core.requirement import Requirement
from deep500.core.texts import message_of, shown, shown_path
from deep500.frameworks import FRAMEWORKS
from deep500.measure.environment.noise import take_witness
from deep500.measure.environment.record import record_environment
from deep500.measure.metric import TestMetric
from deep500.measure.metrics._timing import TimedMetric
from deep500.measure.region_breakdown import RegionBreakdown
from deep500.measure.regions import collect_regions, region
from deep500.recipe._training_parts import determinism, loss_scaling
from deep500.recipe.build import Build, build_recipe
from deep500.recipe.checkpoints import CheckpointPlan, RunRecord, plan_checkpoints
from deep500.recipe.experiment import experiment_hash
from deep500.recipe.keys import BUDGETS
from deep500.recipe.loading import is_loading
from deep500.recipe.overrides import override_recipe
from deep500.recipe.recipe import Recipe
from deep500.recipe.reporter import ConsoleReporter, Reporter, SilentReporter
from deep500.recipe.result import MetricResult, RecipeResult, write_result
from deep500.recipe.versions import versions_of_run
from deep500.training.budget import Budget
from deep500.training.divergence import explain_divergence
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
    recipe: Recipe,
    *,
    output: str | PathLike[str] | None = None,
    reporter: Reporter | None = None,
    checkpoint: str | PathLike[str] | None = None,
    checkpoint_every: str | int | None = None,
    resume: str | PathLike[str] | None = None,
) -> RecipeResult:
    """Run a recipe and return all that was found.

    When the training is interrupted (Ctrl-C) or fails, the result so far is reported and written, marked as incomplete,
    before the exception goes on.

    Args:
        recipe: The recipe. With the key ``runs`` it is trained several times
            (:func:`deep500.recipe.several_runs.execute_runs`).
        output: Path of a result file. That it can be written is checked before anything runs.
        reporter: Who is told; by default nobody.
        checkpoint: Folder to write checkpoints to; by default ``resume``.
        checkpoint_every: How often: a number of steps, or a text such as ``"100steps"`` or ``"1epochs"``; by default
            every epoch.
        resume: Folder of checkpoints of this very configuration to go on from. The result covers the whole training
            then and says that it was resumed. A training that has ended is not trained again; its verdict is given.

    Raises:
        Deep500Error: What the recipe describes cannot be built or trained, or the result cannot be written.
        CheckpointError: There is no checkpoint to go on from, or it is of another configuration.
    """
    if recipe.get("runs", 1) > 1:
        from deep500.recipe.several_runs import execute_runs

        return execute_runs(recipe, output, reporter, checkpoint, checkpoint_every, resume)
    reporter = reporter or SilentReporter()
    if output is not None:
        check_writable(output, "result")
        if recipe.path is not None and Path(output).resolve() == Path(recipe.path).resolve():
            raise RecipeError(f"The result cannot be written to {shown_path(output)}: that is the recipe itself.")
    with collect_regions() as breakdown:
        plan = plan_checkpoints(recipe, checkpoint, checkpoint_every, resume)
        return _execute(recipe, output, reporter, breakdown, plan)


def _execute(
    recipe: Recipe,
    output: str | PathLike[str] | None,
    reporter: Reporter,
    breakdown: RegionBreakdown,
    plan: CheckpointPlan,
) -> RecipeResult:
    build = build_recipe(recipe)
    # Before a checkpoint is restored: it has its own place in the random streams that are seeded here.
    with determinism(recipe, build.executor) as switches:
        return _execute_build(recipe, build, switches, output, reporter, breakdown, plan)


def _execute_build(
    recipe: Recipe,
    build: Build,
    switches: dict[str, Any] | None,
    output: str | PathLike[str] | None,
    reporter: Reporter,
    breakdown: RegionBreakdown,
    plan: CheckpointPlan,
) -> RecipeResult:
    metrics = [(metric.fresh(), acceptable) for metric, acceptable in recipe.metrics]
    for metric, _ in metrics:
        metric.synchronize = build.executor.synchronize
    result = _new_result(recipe, build, switches)
    trainer = Trainer(build.train_sampler, build.validation_sampler, build.executor, build.optimizer, build.output)
    batches, record = BatchHashEvent(), RunRecord(result.started)
    own = [metric for metric, _ in metrics if isinstance(metric, Event)]
    planned = Budget.of(*(recipe.get(key) for key in BUDGETS)).epochs_planned(build.train_sampler)
    shown_events = reporter.events(-1 if planned is None else planned)
    events = [*shown_events, *build.events, batches, record, *own]
    if plan.event is not None:
        events.append(plan.event)
    if plan.latest is not None:
        trainer.restore(plan.latest.state)
        record.go_on_from(plan.latest)
        result.started, result.resumed = record.started, record.resumed
        result.statistics = trainer.statistics.to_dict() if trainer.statistics else {}
    witness = take_witness()
    reporter.started(result)
    try:
        statistics = _train(trainer, recipe, events, [metric for metric, _ in metrics], record.earlier_s)
        result.failure = explain_divergence(trainer, statistics)
        with region("metrics"):
            measure = _measure if result.failure is None else _measure_if_possible  # it may have ended before a test
            result.metrics = [measure(metric, acceptable, trainer, statistics) for metric, acceptable in metrics]
        result.complete = True
    except BaseException as error:
        result.failure = f"{type(error).__name__}: {message_of(error)}"
        if isinstance(error, KeyboardInterrupt):
            result.failure = "interrupted"
            if plan.event is not None and plan.event.written is not None:
                result.failure += f"; it goes on with --resume {shown_path(plan.event.writer.folder)}"
        raise
    finally:
        _close_input(build)
        result.ended = _now()
        result.numerics["loss_scaling"] = loss_scaling(build.optimizer)
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
def _train(
    trainer: Trainer, recipe: Recipe, events: Sequence[Event], metrics: Sequence[TestMetric], earlier_s: float
) -> TrainingStatistics:
    """Train between the metrics' begin and end. A training is one run: metrics' own reruns do not apply to it."""
    for metric in metrics:
        if isinstance(metric, TimedMetric):
            metric.go_on(earlier_s)
        metric.begin(trainer if metric.requires_inputs else None)
    every = recipe.get("evaluate_every_steps")
    statistics = trainer.run_loop(events=events, evaluate_every_steps=every, **recipe.budget)
    for metric in reversed(metrics):
        metric.end(statistics if metric.requires_outputs else None)
    return statistics


def _close_input(build: Build) -> None:
    """Let the workers of an input pipeline end."""
    close = getattr(build.train_sampler, "close", None)
    if close is not None:
        close()


def _measure(metric: TestMetric, acceptable: float | None, trainer: Trainer, outputs: Any) -> MetricResult:
    measured = metric.measure(trainer, outputs)
    try:
        value = float(measured)
    except (TypeError, ValueError, OverflowError) as error:
        raise RecipeError(f"The metric {metric.name} measured {shown(measured)}; accepted is a number.") from error
    passed = None if acceptable is None else metric.accepts(value, acceptable)
    margin = None if acceptable is None else metric.margin(value, acceptable)
    return MetricResult(metric.name, value, metric.unit, metric.direction.value, acceptable, margin, passed)


def _measure_if_possible(metric: TestMetric, acceptable: float | None, trainer: Trainer, outputs: Any) -> MetricResult:
    """Measure a training that diverged: what it did not come to is no mistake of the recipe."""
    try:
        return _measure(metric, acceptable, trainer, outputs)
    except Deep500Error as error:
        logger.debug("%s was not measured: %s", metric.name, message_of(error))
        return _unmeasured(metric, acceptable)


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


def _new_result(recipe: Recipe, build: Build, switches: dict[str, Any] | None) -> RecipeResult:
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
        initial_weights_hash=build.initial_weights_hash,
        versions=versions,
        environment=environment,
        started=_now(),
        numerics={"precision": recipe.get("precision", "float32"), "determinism": switches, "loss_scaling": None},
    )


def _now() -> str:
    return datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="milliseconds")
