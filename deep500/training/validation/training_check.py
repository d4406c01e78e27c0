"""A whole training held to what every training must do: stay finite, learn, and equal its reference."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from deep500.core.errors import TrainingError
from deep500.core.event import Event
from deep500.core.texts import shown
from deep500.datasets.dataset import Dataset
from deep500.measure.metric import TestMetric
from deep500.measure.metric_test import metric_value
from deep500.networks.graph_executor import GraphExecutor
from deep500.training.divergence import explain_divergence
from deep500.training.optimizer import Optimizer
from deep500.training.sampler import Sampler
from deep500.training.samplers.ordered import OrderedSampler
from deep500.training.samplers.shuffle import ShuffleSampler
from deep500.training.statistics import TrainingStatistics
from deep500.training.trainer import Trainer
from deep500.training.validation.report import TrainingReport, settled

__all__ = ["test_training"]


def test_training(
    executor: GraphExecutor,
    training_set: Sampler | Dataset,
    validation_set: Sampler | Dataset | None,
    optimizer: Optimizer,
    epochs: int = 2,
    batch_size: int = 64,
    output_node: str | None = None,
    metrics: Iterable[TestMetric] = (),
    events: Iterable[Event] = (),
    *,
    reference: TrainingStatistics | Sequence[float] | None = None,
    tolerance: float = 1e-3,
    seed: int = 0,
    raise_on_failure: bool = True,
) -> TrainingReport:
    """Train, and check that the loss stays finite, falls, and is the reference's at each step.

    The loss falls when its mean over the last epoch is below that over the first; in a single epoch, when it is in the
    last quarter of the steps.

    Args:
        executor: What runs the network.
        training_set: A sampler, or a data set, which is shuffled.
        validation_set: A sampler, or a data set, which is gone through in its order; ``None`` not to test.
        optimizer: What updates the parameters, made for this executor.
        epochs: Number of epochs.
        batch_size: Samples a minibatch of a data set.
        output_node: Name of the output with the class scores.
        metrics: Such as ``[d5.TestAccuracy()]``; those that are events listen to the training.
        events: Further listeners.
        reference: Statistics of a training that this one must equal, or the losses of its steps: the same training
            under another framework, or of an earlier version.
        tolerance: How far a step's loss may be from the reference's, relative to it.
        seed: Seed of the order of a data set.
        raise_on_failure: Whether what is wrong is an error; else the report says it.

    Returns:
        A report; iterating over it gives what the metrics measured, as the published Deep500 returned it.

    Raises:
        TrainingError: An argument is not accepted, or the training is wrong.
    """
    train = ShuffleSampler(training_set, batch_size, seed) if isinstance(training_set, Dataset) else training_set
    test = OrderedSampler(validation_set, batch_size) if isinstance(validation_set, Dataset) else validation_set
    trainer = Trainer(train, test, executor, optimizer, output_node)
    copies = [_fresh(metric) for metric in metrics]
    for copy in copies:
        copy.synchronize = executor.synchronize
        copy.begin(trainer if copy.requires_inputs else None)
    statistics = trainer.run_loop(epochs, [*events, *(copy for copy in copies if isinstance(copy, Event))])
    for copy in reversed(copies):
        copy.end(statistics if copy.requires_outputs else None)
    report = _report(trainer, statistics, copies, reference, tolerance)
    return settled(report, raise_on_failure)


test_training.__test__ = False  # type: ignore[attr-defined]


def _report(
    trainer: Trainer,
    statistics: TrainingStatistics,
    metrics: Sequence[TestMetric],
    reference: TrainingStatistics | Sequence[float] | None,
    tolerance: float,
) -> TrainingReport:
    losses = [loss for record in statistics.epochs if record.training for loss in record.training.step_losses]
    first, last = _ends(statistics, losses)
    failures = _failures(trainer, statistics, losses, (first, last))
    largest = None
    if reference is not None:
        largest, wrong = _against(losses, reference, tolerance)
        failures += wrong
    return TrainingReport(
        f"training by {type(trainer.optimizer).__name__} under {trainer.executor.framework}",
        failures=tuple(failures),
        metrics=tuple(metric_value(metric, trainer, statistics) for metric in metrics),
        measured=tuple(metric.measure(trainer, statistics) for metric in metrics),
        statistics=statistics,
        first_loss=first,
        last_loss=last,
        largest_difference=largest,
    )


def _failures(
    trainer: Trainer, statistics: TrainingStatistics, losses: Sequence[float], ends: tuple[float, float]
) -> list[str]:
    if not statistics.complete:
        return [f"The training ended before its budget was used up: {statistics.outcome.value}."]
    bad = next((step for step, loss in enumerate(losses, 1) if not math.isfinite(loss)), None)
    if bad is not None:
        return [f"The loss of step {bad} is {losses[bad - 1]}."]
    explained = explain_divergence(trainer, statistics)
    if explained is not None:
        return [explained]
    if len(losses) < 2:
        return []
    return [] if ends[1] < ends[0] else [f"The loss does not fall: its mean was {ends[0]:.6g}, and is {ends[1]:.6g}."]


def _ends(statistics: TrainingStatistics, losses: Sequence[float]) -> tuple[float, float]:
    """Return the mean loss of the first and of the last part of the steps."""
    passes = [r.training for r in statistics.epochs if r.training is not None and r.training.loss is not None]
    if len(passes) > 1:
        return float(passes[0].loss or 0.0), float(passes[-1].loss or 0.0)
    if not losses:
        return math.nan, math.nan
    part = max(len(losses) // 4, 1)
    return float(np.mean(losses[:part])), float(np.mean(losses[-part:]))


def _against(losses: Sequence[float], reference: Any, tolerance: float) -> tuple[float, list[str]]:
    """Return the largest relative difference from the reference's losses, and what is wrong."""
    if isinstance(reference, TrainingStatistics):
        passes = [record.training for record in reference.epochs if record.training]
        expected = [loss for one in passes for loss in one.step_losses]
    else:
        expected = [float(loss) for loss in reference]
    if len(expected) != len(losses):
        return math.inf, [f"The reference has the losses of {len(expected)} steps; this training made {len(losses)}."]
    differences = [
        abs(found - wanted) / max(abs(wanted), np.finfo(np.float64).tiny)
        for found, wanted in zip(losses, expected, strict=True)
    ]
    largest = max(differences, default=0.0)
    wrong = next((step for step, share in enumerate(differences, 1) if not share <= tolerance), None)
    if wrong is None:
        return largest, []
    return largest, [
        f"The loss of step {wrong} is {losses[wrong - 1]:.6g}, and the reference's {expected[wrong - 1]:.6g}; allowed "
        f"is a difference of {tolerance:.3g} of it."
    ]


def _fresh(metric: Any) -> TestMetric:
    if not isinstance(metric, TestMetric):
        raise TrainingError(f"A metric was given as {shown(metric)}; accepted are objects of TestMetric.")
    return metric.fresh()
