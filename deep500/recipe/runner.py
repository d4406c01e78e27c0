"""Running a recipe to its verdict."""

from __future__ import annotations

import datetime
import hashlib
import sys
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from deep500.core.errors import FileWriteError, RecipeError
from deep500.core.event import Event
from deep500.core.files import check_writable
from deep500.core.requirement import Requirement
from deep500.core.texts import message_of, shown_path
from deep500.distributed.communicator import Communicator
from deep500.distributed.rank_options import RankOptions
from deep500.frameworks import FRAMEWORKS
from deep500.measure.environment.noise import take_witness
from deep500.measure.environment.record import record_environment
from deep500.measure.metric import TestMetric
from deep500.measure.metrics._timing import TimedMetric
from deep500.measure.region_breakdown import RegionBreakdown
from deep500.measure.regions import collect_regions, region
from deep500.recipe._measuring import agreed_metrics, measure_if_possible, measure_metric, measure_what_there_is
from deep500.recipe._ranks import RankReport, set_up_ranks
from deep500.recipe._training_parts import determinism, loss_scaling
from deep500.recipe.build import Build, build_recipe
from deep500.recipe.checkpoints import CheckpointPlan, RunRecord, plan_checkpoints
from deep500.recipe.experiment import experiment_hash
from deep500.recipe.keys import BUDGETS
from deep500.recipe.loading import is_loading
from deep500.recipe.overrides import override_recipe
from deep500.recipe.recipe import Recipe
from deep500.recipe.reporter import ConsoleReporter, Reporter, SilentReporter
from deep500.recipe.result import RecipeResult, write_result
from deep500.recipe.versions import versions_of_run
from deep500.training.budget import Budget
from deep500.training.divergence import explain_divergence
from deep500.training.events.batch_hash import BatchHashEvent
from deep500.training.ranks import ALONE
from deep500.training.statistics import TrainingStatistics
from deep500.training.trainer import Trainer

__all__ = ["execute_recipe", "run_recipe"]

_INTERRUPTED = "interrupted"


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
    rank_options: RankOptions | None = None,
    communicator: Communicator | None = None,
) -> RecipeResult:
    """Run a recipe and return all that was found.

    When the training is interrupted (Ctrl-C) or fails, the result so far is reported and written, marked as incomplete,
    before the exception goes on.

    Started as one rank of several (``mpiexec``, ``srun``, ``torchrun``), all ranks run the recipe together, each with
    its part of every minibatch and the scheme of the key ``distributed``; a recipe with the same minibatch means the
    same on any number of ranks. Rank 0 alone reports and writes, and all ranks return its verdict. Events that do
    nothing but report are rank 0's; others are on every rank, and what they decide is rank 0's decision.

    Args:
        recipe: The recipe. With the key ``runs`` it is trained several times
            (:func:`deep500.recipe.several_runs.execute_runs`).
        output: Path of a result file. That it can be written is checked before anything runs.
        reporter: Who is told; by default nobody.
        checkpoint: Folder to write checkpoints to; by default ``resume``. Ranks write one together, each its own state.
        checkpoint_every: How often: a number of steps, or a text such as ``"100steps"`` or ``"1epochs"``; by default
            every epoch.
        resume: Folder of checkpoints of this very configuration to go on from, on as many ranks. The result covers the
            whole training then and says that it was resumed. A training that has ended is not trained again; its
            verdict is given.
        rank_options: How the ranks hold together, and whether they go on when one fails; settings of the machine.
        communicator: What carries the messages of several ranks; by default what fits how the process was started.

    Raises:
        Deep500Error: What the recipe describes cannot be built or trained, or the result cannot be written.
        RecipeError: Ranks have different recipes or data, or cannot share the minibatch evenly.
        CheckpointError: There is no checkpoint to go on from, or it is of another configuration.
    """
    setup = set_up_ranks(recipe, rank_options, communicator, resumes=resume is not None)
    ranks = ALONE if setup is None else setup.ranks
    if setup is not None and not setup.may_become_first:
        output, reporter = None, None
    if recipe.get("runs", 1) > 1:
        from deep500.recipe.several_runs import execute_runs

        return execute_runs(recipe, output, reporter, checkpoint, checkpoint_every, resume, setup=setup)
    reporter = reporter or SilentReporter()
    if output is not None and ranks.is_first:
        _check_output(recipe, output)
    with collect_regions() as breakdown:
        plan = plan_checkpoints(recipe, checkpoint, checkpoint_every, resume, ranks)
        if setup is not None and plan.latest is None:
            setup.check_minibatch(recipe)
        build = build_recipe(recipe, setup)
        # Before a checkpoint is restored: it has its own place in the random streams that are seeded here.
        with determinism(recipe, build.executor, ranks.rank) as switches:
            return _Run(recipe, build, plan, reporter, RankReport(setup, recipe)).execute(switches, output, breakdown)


def _check_output(recipe: Recipe, output: str | PathLike[str]) -> None:
    check_writable(output, "result")
    if recipe.path is not None and Path(output).resolve() == Path(recipe.path).resolve():
        raise RecipeError(f"The result cannot be written to {shown_path(output)}: that is the recipe itself.")


class _Run:
    """One training of a recipe that is built."""

    def __init__(
        self, recipe: Recipe, build: Build, plan: CheckpointPlan, reporter: Reporter, report: RankReport
    ) -> None:
        self.recipe, self.build, self.plan, self.reporter = recipe, build, plan, reporter
        self.report = report
        self.ranks = build.optimizer.ranks
        self.metrics = [(metric.fresh(), acceptable) for metric, acceptable in recipe.metrics]
        for metric, _ in self.metrics:
            metric.synchronize = build.executor.synchronize
        samplers = (build.train_sampler, build.validation_sampler)
        self.trainer = Trainer(*samplers, build.executor, build.optimizer, build.output)
        self.batches = BatchHashEvent()

    def execute(
        self, switches: dict[str, Any] | None, output: str | PathLike[str] | None, breakdown: RegionBreakdown
    ) -> RecipeResult:
        """Train, measure, report and write."""
        trainer, plan, build = self.trainer, self.plan, self.build
        result = _new_result(self.recipe, build, switches, reports=self.ranks.is_first or self.report.survives)
        record = RunRecord(result.started)
        events = self._events(record)
        if plan.latest is not None:
            trainer.restore(plan.latest.state)
            record.go_on_from(plan.latest)
            result.started, result.resumed = record.started, record.resumed
            result.statistics = trainer.statistics.to_dict() if trainer.statistics else {}
        result.ranks = self.report.content(together=True)
        witness = take_witness()
        if self.report.survives:  # the first one may be lost before it has begun
            self.ranks.first_does(lambda: self.reporter.started(result), FileWriteError)
        elif self.ranks.is_first:
            self.reporter.started(result)
        try:
            self._train_and_measure(result, events, record.earlier_s)
            result.complete = True
        except BaseException as error:
            result.failure = f"{type(error).__name__}: {message_of(error)}"
            if isinstance(error, KeyboardInterrupt):
                result.failure = _INTERRUPTED
                if plan.event is not None and plan.event.written is not None:
                    result.failure += f"; it goes on with --resume {shown_path(plan.event.writer.folder)}"
            raise
        finally:
            _close_input(build)
            result.ended = _now()
            result.numerics["loss_scaling"] = loss_scaling(build.optimizer)
            result.statistics = trainer.statistics.to_dict() if trainer.statistics else {}
            if not result.complete:
                result.ranks = self.report.content(together=False)
                result.first_epoch_batches_hash = self._batches_hash(together=False)
            if not result.metrics:
                result.metrics = [measure_what_there_is(metric, least, trainer) for metric, least in self.metrics]
            result.noise = take_witness().since(witness).to_dict()
            result.regions = breakdown.to_dict()
            self._publish(result, output)
        return result

    def _publish(self, result: RecipeResult, output: str | PathLike[str] | None) -> None:
        """Write the result and report it, on rank 0; where that one is lost meanwhile, on the first that is left."""

        def publish() -> None:
            # The file first: whoever reads the verdict finds it written.
            if output is not None:
                write_result(result, output)
            others_go_on = self.report.survives and self.ranks.size > 1 and result.failure != _INTERRUPTED
            if result.complete or not others_go_on:
                self.reporter.finished(result)

        if self.report.survives and result.complete:
            self.ranks.first_does(publish, FileWriteError)
        elif self.ranks.is_first:
            publish()

    def _events(self, record: RunRecord) -> list[Event]:
        """Return who listens to the training."""
        budget = Budget.of(*(self.recipe.get(key) for key in BUDGETS))
        planned = budget.epochs_planned(self.build.train_sampler, self.ranks.size)
        shown_events = self.reporter.events(-1 if planned is None else planned) if self.ranks.is_first else ()
        own = [metric for metric, _ in self.metrics if isinstance(metric, Event)]
        last = [] if self.plan.event is None else [self.plan.event]
        return [*shown_events, *self.build.events, self.batches, record, *own, *last]

    def _train_and_measure(self, result: RecipeResult, events: Sequence[Event], earlier_s: float) -> None:
        trainer = self.trainer
        statistics = _train(trainer, self.recipe, events, [metric for metric, _ in self.metrics], earlier_s)
        failures = self.ranks.gathered(explain_divergence(trainer, statistics))
        result.failure = next((failure for failure in failures if failure is not None), None)
        with region("metrics"):
            # A training that failed may have ended before a test.
            measure = measure_metric if result.failure is None else measure_if_possible
            measured = [measure(metric, acceptable, trainer, statistics) for metric, acceptable in self.metrics]
        result.metrics = agreed_metrics(measured, self.ranks)
        result.ranks = self.report.content(together=True)
        result.first_epoch_batches_hash = self._batches_hash(together=True)

    def _batches_hash(self, *, together: bool) -> str | None:
        """Return the hash of the first epoch's minibatches; of several ranks, that of all ranks' hashes in order."""
        own = self.batches.digest if self.batches.complete else None
        if self.report.setup is not None and self.report.setup.losses.found:
            return None  # what the lost ranks were fed is not known any more
        if self.ranks.size == 1:
            return own
        digests: list[Any] = self.ranks.gathered(own) if together else [None]
        if None in digests:
            return None
        return hashlib.sha256("".join(digests).encode()).hexdigest()


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


def _new_result(recipe: Recipe, build: Build, switches: dict[str, Any] | None, *, reports: bool) -> RecipeResult:
    framework = build.executor.framework
    requirement = getattr(FRAMEWORKS.get(framework), "REQUIREMENT", None) if framework in FRAMEWORKS else None
    version = requirement.version() if isinstance(requirement, Requirement) else "unavailable"
    with region("environment"):
        # The result is rank 0's; on the other ranks the record would be made for nothing.
        environment = record_environment().to_dict() if reports else {}
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
