r"""Does a training converge as fast as it did? Its runs against stored reference runs.

What is compared is the work that a run needs until its target is met: samples (or steps, or epochs), which do not
depend on the machine. With :math:`n` runs :math:`x_i` and :math:`m` reference runs :math:`r_j`, the statistic is Mann
and Whitney's number of pairs :math:`U = \#\{x_i > r_j\} + \frac12 \#\{x_i = r_j\}`, whose distribution without a
difference is known exactly. One-sided at level :math:`\alpha`:

- *slower*, when so many pairs speak for it that :math:`P(U' \ge U) \le \alpha`;
- *not slower*, when the one-sided upper bound of the ratio, the order statistic of :math:`x_i / r_j` at confidence
  :math:`1 - \alpha` (Hodges and Lehmann), is at most :math:`1 + margin`: the runs need at most so much more;
- *undecided* otherwise, also when there are so few runs that no outcome could be the first, :math:`\binom{n+m}{n}^{-1}
  > \alpha`.

A run that never met its target needed infinitely much.

Source: MLPerf Training's reference convergence points (P. Mattson et al., "MLPerf training benchmark", MLSys 2020; the
rules compare epochs to the target of a submission's runs with those of reference runs at the same batch size, to find
runs that converge too fast); H. B. Mann, D. R. Whitney, Annals of Mathematical Statistics 18 (1947); J. L. Hodges,
E. L. Lehmann, Annals of Mathematical Statistics 34 (1963).
"""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from deep500.core.errors import MeasurementError
from deep500.core.texts import shown
from deep500.measure.metric import Direction
from deep500.measure.statistics._rank_nulls import rank_sum_null
from deep500.training.statistics import TrainingStatistics
from deep500.training.validation.reference_runs import ReferenceRuns

__all__ = ["ConvergenceCheck", "ConvergenceVerdict", "check_convergence", "work_to_target"]


class ConvergenceVerdict(str, enum.Enum):
    """What the runs say."""

    SLOWER = "slower"
    NOT_SLOWER = "not slower"
    UNDECIDED = "undecided"


@dataclass(frozen=True)
class ConvergenceCheck:
    """What :func:`check_convergence` found.

    Attributes:
        verdict: The verdict.
        runs: What the runs needed.
        reference: The reference runs.
        median: Median of the runs.
        reference_median: Median of the reference runs.
        p_value: Probability of runs that need this much more, or more still, when there is no difference.
        ratio_bound: One-sided upper bound of the ratio of both; infinite where there are too few runs for one.
        level: The level of the test.
        margin: How much more counts as not slower.
        note: Why there is no verdict; empty when there is.
    """

    verdict: ConvergenceVerdict
    runs: tuple[float, ...]
    reference: ReferenceRuns
    median: float
    reference_median: float
    p_value: float
    ratio_bound: float
    level: float
    margin: float
    note: str = ""

    @property
    def passed(self) -> bool:
        """Whether the runs are shown to be not slower."""
        return self.verdict is ConvergenceVerdict.NOT_SLOWER

    def __str__(self) -> str:
        """Return the verdict with the numbers behind it."""
        unit, target = self.reference.unit, self.reference.target_text
        text = (
            f"{self.verdict.value}: {len(self.runs)} runs need {self.median:.6g} {unit} in the median, "
            f"{len(self.reference.values)} reference runs {self.reference_median:.6g} (target: {target}); one-sided "
            f"Mann-Whitney p = {self.p_value:.3g}, ratio at most {self.ratio_bound:.4g} at confidence "
            f"{1 - self.level:.6g}"
        )
        return f"{text}; {self.note}" if self.note else text


def check_convergence(
    runs: Sequence[float], reference: ReferenceRuns, *, level: float = 0.05, margin: float = 0.1
) -> ConvergenceCheck:
    """Tell whether runs converge slower than reference runs, not slower, or whether that is undecided.

    Args:
        runs: What each run needed until the reference's target was met, in the reference's unit
            (:func:`work_to_target`); infinite for one that did not meet it.
        reference: The reference runs.
        level: Level of both one-sided tests.
        margin: How much more, relative to the reference, still counts as not slower.

    Raises:
        MeasurementError: A number is not accepted.

    Example:
        >>> reference = ReferenceRuns("digits", "TestAccuracy", 97.0, "samples", (900, 950, 1000, 1010, 1040))
        >>> check_convergence([1900, 2100, 2000], reference).verdict.value
        'slower'
        >>> check_convergence([2000.0], reference).verdict.value
        'undecided'
    """
    values = np.array([_amount(value) for value in runs], np.float64)
    if not values.size:
        raise MeasurementError("There are no runs to compare with the reference runs.")
    if not 0 < level < 0.5 or not 0 <= margin < math.inf:
        raise MeasurementError(
            f"level is {level!r} and margin {margin!r}; accepted are a level between 0 and 0.5 and a margin from 0."
        )
    known = np.array(reference.values, np.float64)
    null = rank_sum_null(len(values), len(known))
    greater = float((values[:, None] > known).sum() + 0.5 * (values[:, None] == known).sum())
    # Half a pair counts against a difference, so that ties make the test conservative.
    p_value = null.at_most(len(values) * len(known) - math.floor(greater))
    critical = null.critical(level)
    bound = _upper_bound(values, known, critical)
    verdict, note = ConvergenceVerdict.UNDECIDED, ""
    if critical < 0:
        note = _too_few(len(values), len(known), level)
    elif p_value <= level:
        verdict = ConvergenceVerdict.SLOWER
    elif bound <= 1 + margin:
        verdict = ConvergenceVerdict.NOT_SLOWER
    else:
        note = f"the runs may need up to {bound:.4g} times as much, and {1 + margin:.4g} is allowed; more runs tell"
    return ConvergenceCheck(
        verdict,
        tuple(values.tolist()),
        reference,
        float(np.median(values)),
        float(np.median(known)),
        p_value,
        bound,
        level,
        margin,
        note,
    )


def work_to_target(
    statistics: TrainingStatistics,
    target: float,
    *,
    of: str = "accuracy",
    unit: str = "samples",
    direction: Direction | str | None = None,
) -> float:
    """Return what a training needed until a test met a target; infinite when none did.

    Tests are made at the ends of epochs and where ``evaluate_every_steps`` says, so the answer is as fine as they are.

    Args:
        statistics: What the training measured.
        target: The target: per cent for the accuracy, nats or the like for the loss.
        of: ``"accuracy"`` or ``"loss"`` of the tests.
        unit: ``"samples"``, ``"steps"`` or ``"epochs"``.
        direction: Which values are better; by default higher accuracies and lower losses.

    Raises:
        MeasurementError: An argument is not accepted.
    """
    if of not in ("accuracy", "loss"):
        raise MeasurementError(f"of was given as {shown(of)}; accepted are 'accuracy' and 'loss'.")
    if unit not in ("samples", "steps", "epochs"):
        raise MeasurementError(f"unit was given as {shown(unit)}; accepted are 'samples', 'steps' and 'epochs'.")
    default = Direction.HIGHER if of == "accuracy" else Direction.LOWER
    higher = Direction(direction or default) is Direction.HIGHER
    for evaluation in statistics.all_evaluations:
        result = evaluation.result
        value = result.accuracy_percent if of == "accuracy" else result.loss
        if value is not None and result.complete and (value >= target if higher else value <= target):
            if unit == "steps":
                return float(evaluation.step)
            if unit == "epochs":
                return float(evaluation.epoch + 1)
            return float(_samples_until(statistics, evaluation.step))
    return math.inf


def _samples_until(statistics: TrainingStatistics, step: int) -> int:
    """Return the number of samples of the first steps; a smaller last minibatch of an epoch counts as it is."""
    samples = done = 0
    for record in statistics.epochs:
        if record.training is None or done + record.training.batches > step:
            break
        done, samples = done + record.training.batches, samples + record.training.samples
    return samples + (step - done) * statistics.train_batch_size


def _upper_bound(values: NDArray[np.float64], known: NDArray[np.float64], critical: int) -> float:
    """Return the one-sided upper bound of the ratio: an order statistic of the ratios of all pairs."""
    if critical < 0:
        return math.inf
    with np.errstate(invalid="ignore"):
        ratios = values[:, None] / known
    ratios = np.sort(np.where(np.isnan(ratios), 1.0, ratios), axis=None)  # neither met the target: no difference
    return float(ratios[len(ratios) - 1 - critical])


def _too_few(runs: int, reference: int, level: float) -> str:
    """Return why so few runs cannot decide, and how many could."""
    orders = math.comb(runs + reference, runs)
    needed = next(count for count in range(1, 10**6) if 1 / math.comb(count + reference, count) <= level)
    return (
        f"{runs} against {reference} runs cannot decide at level {level:.6g}: of the {orders} possible orders, one "
        f"alone is as likely as {1 / orders:.3g}; {needed} runs could"
    )


def _amount(value: float) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)) or not value > 0:
        raise MeasurementError(f"A run needed {shown(value)}; accepted are numbers above 0, infinity among them.")
    return float(value)
