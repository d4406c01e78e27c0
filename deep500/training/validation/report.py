"""What the checks of training found: values that can be asked, and a short table for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from deep500.core.errors import TrainingError
from deep500.measure.metric_test import MetricValue
from deep500.networks.plain_table import plain_table
from deep500.training.statistics import TrainingStatistics

__all__ = ["CheckReport", "OptimizerReport", "ParameterCheck", "SamplerReport", "TrainingReport", "settled"]

#: An error says so many of the things that are wrong, and a table has so many rows.
_MOST_SAID = 3
_MOST_ROWS = 20


@dataclass(frozen=True)
class CheckReport:
    """What every check says. Iterating over it gives what its metrics measured, in their order.

    Attributes:
        subject: Name of what was checked.
        failures: What is wrong, a sentence each; none where it passed.
        notes: What to know about the result, a sentence each.
        metrics: What the metrics measured.
        measured: The same, as the metrics' ``measure`` returned it.
    """

    subject: str
    failures: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    metrics: tuple[MetricValue, ...] = ()
    measured: tuple[Any, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether nothing is wrong."""
        return not self.failures

    def __iter__(self) -> Iterator[Any]:
        """Return what the metrics measured, as the published Deep500's tests did."""
        return iter(self.measured)

    def _text(self, title: str, lines: Sequence[str]) -> str:
        """Return lines with a title, and what is wrong below."""
        metrics = [f"{metric.name}: {metric.summary}" for metric in self.metrics]
        said = [f"wrong: {text}" for text in self.failures] + [f"note: {text}" for text in self.notes]
        verdict = "PASSED" if self.passed else "FAILED"
        return "\n".join([f"{title}: {verdict}", *(f"  {line}" for line in (*lines, *metrics, *said))])


@dataclass(frozen=True)
class ParameterCheck:
    """One parameter against its reference, at the step at which it is farthest away.

    Attributes:
        name: The parameter.
        step: The step, from 1.
        distance: ``|p - r|`` in the 2-norm.
        largest: The largest difference of an element.
        norm: ``|r|`` in the 2-norm.
        allowed: What was allowed of ``distance``.
    """

    name: str
    step: int
    distance: float
    largest: float
    norm: float
    allowed: float

    @property
    def agrees(self) -> bool:
        """Whether the distance is within what is allowed; NaN never is."""
        return self.distance <= self.allowed

    @property
    def relative(self) -> float:
        """The distance relative to the reference's norm."""
        return self.distance / self.norm if self.norm else self.distance


@dataclass(frozen=True)
class OptimizerReport(CheckReport):
    """What :func:`~deep500.training.validation.optimizer_check.test_optimizer` found.

    Attributes:
        reference: What it was compared with.
        losses: The loss of each step, before its update.
        first_wrong_step: The first step after which a parameter was wrong; ``None`` when none was.
        parameters: The parameters, each at its worst step.
    """

    reference: str = ""
    losses: tuple[float, ...] = ()
    first_wrong_step: int | None = None
    parameters: tuple[ParameterCheck, ...] = ()

    def __str__(self) -> str:
        """Return a short table."""
        worst = sorted(self.parameters, key=lambda check: check.relative, reverse=True)
        titles = ["parameter", "worst step", "|p - r| / |r|", "largest difference", "|r|", "allowed"]
        rows = [
            [c.name, f"{c.step}", f"{c.relative:.3g}", f"{c.largest:.3g}", f"{c.norm:.4g}", f"{c.allowed:.3g}"]
            for c in worst[:_MOST_ROWS]
        ]
        table = plain_table(titles, rows, titles[1:]) if rows else []
        losses = f"loss {self.losses[0]:.6g} at step 1, {self.losses[-1]:.6g} at step {len(self.losses)}"
        title = f"{self.subject}, {len(self.losses)} steps, against {self.reference or 'nothing'}"
        return self._text(title, [losses, *table])


@dataclass(frozen=True)
class SamplerReport(CheckReport):
    """What :func:`~deep500.training.validation.sampler_check.test_sampler` found.

    Attributes:
        epochs: Number of epochs that were gone through.
        samples_an_epoch: Number of samples that each yielded.
        batches_an_epoch: Number of minibatches.
        each_sample_once: Whether each epoch yielded each sample once (but for a dropped last minibatch).
        class_counts: How often each class was drawn in all epochs, by label; empty without labels that are classes.
        dataset_counts: How often each is in the data set.
        bias: Half the sum of the differences of both shares (total variation): 0 when they are equal, at most 1.
        law_p_value: Probability of counts that differ this much from the stated law; ``None`` where there is none.
    """

    epochs: int = 0
    samples_an_epoch: int = 0
    batches_an_epoch: int = 0
    each_sample_once: bool | None = None
    class_counts: tuple[int, ...] = ()
    dataset_counts: tuple[int, ...] = ()
    bias: float | None = None
    law_p_value: float | None = None

    def __str__(self) -> str:
        """Return a short table."""
        lines = [f"{self.epochs} epochs of {self.batches_an_epoch} minibatches, {self.samples_an_epoch} samples each"]
        if self.law_p_value is not None:
            lines.append(f"counts against the stated law: p = {self.law_p_value:.3g}")
        if self.class_counts and self.bias is not None:
            titles = ["class", "drawn", "in the data set"]
            rows = [
                [f"{i}", f"{a}", f"{b}"]
                for i, (a, b) in enumerate(zip(self.class_counts, self.dataset_counts, strict=True))
            ]
            lines += plain_table(titles, rows[:_MOST_ROWS], titles[1:])
            lines.append(f"bias (total variation of the classes' shares): {self.bias:.3g}")
        return self._text(self.subject, lines)


@dataclass(frozen=True)
class TrainingReport(CheckReport):
    """What :func:`~deep500.training.validation.training_check.test_training` found.

    Attributes:
        statistics: What the training measured.
        first_loss: Mean loss of the first part of the steps (the first epoch of several, a quarter of one).
        last_loss: Mean loss of the last part.
        largest_difference: The largest relative difference of a step's loss from the reference's; ``None`` without one.
    """

    statistics: TrainingStatistics | None = None
    first_loss: float = float("nan")
    last_loss: float = float("nan")
    largest_difference: float | None = None

    def __str__(self) -> str:
        """Return a short table."""
        stats = self.statistics
        lines = [f"mean loss {self.first_loss:.6g} at first, {self.last_loss:.6g} at last"]
        if stats is not None:
            lines.append(f"{stats.steps} steps, {stats.samples} samples, {stats.training_s:.3g} s of training")
            if stats.test_accuracy is not None:
                lines.append(f"test accuracy {stats.test_accuracy:.4g} %")
        if self.largest_difference is not None:
            lines.append(f"losses differ from the reference's by at most {self.largest_difference:.3g} of them")
        return self._text(self.subject, lines)


_Report = TypeVar("_Report", bound=CheckReport)


def settled(report: _Report, raise_on_failure: bool) -> _Report:
    """Return a report, or raise what it says is wrong.

    Raises:
        TrainingError: Something is wrong, and that is to be an error.
    """
    if raise_on_failure and report.failures:
        more = len(report.failures) - _MOST_SAID
        said = [*report.failures[:_MOST_SAID], *([f"And {more} more."] if more > 0 else [])]
        raise TrainingError(" ".join(said))
    return report
