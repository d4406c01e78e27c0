"""SC15, rule 5: a value is deterministic, or has a confidence interval."""

from __future__ import annotations

import numpy as np

from deep500.measure.document_view import AbsoluteView, DocumentView, MetricView, number_of
from deep500.measure.results.summary import launches_needed
from deep500.measure.rule import Finding, Rule
from deep500.measure.statistics.quantiles import quantile_interval

__all__ = ["Intervals"]


class Intervals(Rule):
    """The interval of every metric is computed again, over process launches; samples that are all equal need none."""

    number = "5"
    title = "Values are deterministic, or have a confidence interval"

    def measurement(self, document: DocumentView) -> Finding:
        """Ask each metric for equal samples, or for enough launches for an interval."""
        confidence = document.confidence
        if confidence is None:
            return self.broken("design.statistic states no confidence between 0 and 1, such as 0.95; measure again")
        quantile = number_of(document.statistic.get("quantile"))
        quantile = quantile if quantile is not None and 0 < quantile < 1 else 0.5  # rule 8 tells of others
        broken: list[str] = []
        evidence: list[str] = []
        for metric in document.metrics:
            if metric.is_constant:
                evidence.append(f"all {metric.count} samples of {metric.name} are {metric.rows[0][0]:.6g}")
                continue
            problem = _too_few(metric, confidence)
            (broken if problem else evidence).append(problem or _interval(metric, quantile, confidence))
        return self.judged(broken, evidence, "the document has no samples; rule 12 says more")

    def comparison(self, document: DocumentView) -> Finding:
        """Ask each absolute value and each ratio for its interval, and compute the absolute ones again."""
        confidence = document.confidence
        if confidence is None:
            return self.broken("statistic states no confidence between 0 and 1, such as 0.95; compare again")
        broken: list[str] = []
        evidence: list[str] = []
        for side in document.sides:
            problem = _problem(side, confidence)
            told = f"{side.system} is {side.estimate or 0:.4g} over {len(side.launch_values)} launches"
            (broken if problem else evidence).append(problem or told)
        broken += [
            f"the ratio of {row.absolute.system} has no interval; {_remedy(confidence)}"
            for row in document.compared
            if row.ratio is not None and row.ends is None
        ]
        return self.judged(broken, evidence, "nothing is compared")

    def recipe(self, document: DocumentView) -> Finding:
        """Ask for more than one run: each of a recipe's values is a single number."""
        names = ", ".join(score.name for score in document.scores if score.value is not None)
        wrong = f"{names} of one run, without an interval over runs; deep500 bench recipe:FILE --launches 6 gives one"
        return self.judged([wrong] if names else [], [], "no value is reported")


def _remedy(confidence: float) -> str:
    needed = launches_needed(confidence)
    return f"a published interval needs {needed} process launches (deep500 bench --launches {needed})"


def _too_few(metric: MetricView, confidence: float) -> str:
    """Return why there is no interval; an empty text when there is one."""
    if not metric.count:
        return f"{metric.name} has no samples that can be read; measure again"
    needed = launches_needed(confidence)
    launches = metric.separate_launches
    if launches >= needed and len(metric.rows) >= needed:
        return ""
    if launches > 1:
        return f"{metric.name} has {launches} launches; {_remedy(confidence)}"
    return f"{metric.name} has samples of one process, which say nothing of the next one; {_remedy(confidence)}"


def _interval(metric: MetricView, quantile: float, confidence: float) -> str:
    """Return the interval as evidence: over launches, of each launch's quantile."""
    values = [float(np.quantile(row, quantile)) for row in metric.rows]
    interval = quantile_interval(values, 0.5, confidence)
    ends = f"{confidence * 100:.3g} % interval {interval.low:.4g} to {interval.high:.4g}"
    return f"{metric.name} is {interval.estimate:.4g} {metric.unit or ''} ({ends}) over {len(values)} launches"


def _problem(side: AbsoluteView, confidence: float) -> str:
    """Return what is wrong with the interval of an absolute value; an empty text when nothing is."""
    values = side.launch_values
    if side.estimate is None:
        return f"{side.system} has no absolute value"
    if len(values) > 1 and len(set(values)) == 1:
        return ""
    if len(values) < launches_needed(confidence):
        return f"{side.system} has {len(values)} launches; {_remedy(confidence)}"
    if side.ends is None:
        return f"{side.system} has no interval; compare again"
    interval = quantile_interval(values, 0.5, confidence)
    if not np.allclose(side.ends, (interval.low, interval.high), rtol=1e-6, atol=0):
        return f"the interval of {side.system} is not that of its launches, {interval.low:.6g} to {interval.high:.6g}"
    if not side.ends[0] <= side.estimate <= side.ends[1]:
        return f"{side.system} is {side.estimate:.6g}, outside of its own interval"
    return ""
