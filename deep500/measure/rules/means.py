"""SC15, rule 3: arithmetic means of costs, harmonic means of rates."""

from __future__ import annotations

import numpy as np

from deep500.measure.document_view import DocumentView, MetricView
from deep500.measure.metric import MetricKind
from deep500.measure.rule import Finding, Rule
from deep500.measure.rules._reported import Reported, reported_means

__all__ = ["Means"]

_RIGHT = {MetricKind.COST: "arithmetic", MetricKind.SCORE: "arithmetic", MetricKind.RATE: "harmonic"}

#: A mean that is written with three digits or more still is the one of the samples.
_ROUNDING = 5e-4


class Means(Rule):
    """Each reported mean is held against the kind of its metric and, where there are samples, computed again."""

    number = "3"
    title = "Costs have arithmetic means, rates harmonic ones"

    def measurement(self, document: DocumentView) -> Finding:
        """Judge the means that are reported; a measurement of Deep500 reports none."""
        broken: list[str] = []
        evidence: list[str] = []
        for mean in reported_means(document):
            if mean.is_of_ratios:  # of these, rule 4
                continue
            wrong = _wrong(mean)
            if wrong is not None:
                broken.append(wrong)
            elif mean.kind is not None:
                evidence.append(f"{mean.where} is the {_RIGHT[mean.kind]} mean of a {mean.kind.value}")
        for metric in document.metrics:
            if metric.kind is MetricKind.COST and any((launch.calls_per_sample or 1) > 1 for launch in metric.launches):
                evidence.append(f"each sample of {metric.name}, a cost, is the arithmetic mean of runs in a row")
        return self.judged(broken, evidence, "no mean is reported")

    comparison = measurement
    recipe = measurement


def _wrong(mean: Reported) -> str | None:
    """Return what is wrong with a mean, ``None`` when nothing is."""
    if mean.kind is None:
        return f"{mean.where} is a mean, and the document does not tell whether of costs or of rates; state the metric"
    right = _RIGHT[mean.kind]
    if mean.mean not in ("", right):
        return f"{mean.where} is the {mean.mean} mean of a {mean.kind.value}; give the {right} mean, or the median"
    if mean.value is not None and mean.metric is not None and mean.metric.rows:
        return _wrong_value(mean, mean.value, mean.metric, right)
    if mean.mean == "" and right == "harmonic":
        return f"{mean.where} is a mean of rates and is not said to be the harmonic one; give that, and name it so"
    return None


def _wrong_value(mean: Reported, value: float, metric: MetricView, right: str) -> str | None:
    """Return what is wrong with a mean whose samples are there."""
    wrong = "arithmetic" if right == "harmonic" else "harmonic"
    distance, other = (_distance(value, metric, which) for which in (right, wrong))
    if distance <= _ROUNDING and other * 100 >= distance:
        return None
    found = f"is the {wrong} mean of the samples" if other <= _ROUNDING else "is no mean of the samples"
    means = _means(metric, right)
    remedy = f"the {right} mean is {means[0]:.6g}" if means else f"they have no {right} mean, as some are not positive"
    return f"{mean.where}, {value:.6g}, {found}; {remedy}"


def _distance(value: float, metric: MetricView, which: str) -> float:
    """Return how far a value is, relatively, from the nearest of the means."""
    means = _means(metric, which)
    return min((abs(value - mean) / max(abs(mean), 1e-300) for mean in means), default=np.inf)


def _means(metric: MetricView, which: str) -> list[float]:
    """Return the mean of all samples, of the launches' means and of their medians, where they are finite."""
    rows = [np.asarray(row) for row in metric.rows]
    with np.errstate(all="ignore"):  # samples near the largest float have no finite mean
        averages, medians = (np.array([function(row) for row in rows]) for function in (np.mean, np.median))
        series = [np.concatenate(rows), averages, medians]
        if which == "harmonic":
            means = [len(row) / np.sum(1 / row) for row in series if row.min() > 0]
        else:
            means = [np.mean(row) for row in series]
    return [float(mean) for mean in means if np.isfinite(mean)]
