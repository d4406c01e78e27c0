"""SC15, rule 8: the statistic is chosen on purpose, and percentiles have enough samples."""

from __future__ import annotations

import math

from deep500.measure.document_view import AbsoluteView, DocumentView, MetricView, number_of, short, text_of
from deep500.measure.rule import Finding, Rule
from deep500.measure.rules._reported import reported_quantiles
from deep500.measure.statistics.quantiles import samples_needed

__all__ = ["SuitedStatistic"]

_CONFIDENCE = 0.95

_REMEDY = "take more, or ask for a quantile nearer to the median"

#: Where more samples than these are needed, their number is the formula's, without the last correction.
_MANY = 1_000_000


class SuitedStatistic(Rule):
    """The quantile that was asked for, and each percentile that is reported, needs enough samples in a launch."""

    number = "8"
    title = "The statistic is named, and its samples suffice"

    def measurement(self, document: DocumentView) -> Finding:
        """Hold the number of samples against those that the quantile needs."""
        name, quantile = text_of(document.statistic.get("name")), number_of(document.statistic.get("quantile"))
        confidence = document.confidence or _CONFIDENCE  # rule 5 tells of one that is missing
        broken = _contradictions(name, quantile)
        evidence: list[str] = []
        if not broken and quantile is not None:
            for metric in document.metrics:
                problem = _too_few(metric, quantile, confidence)
                (broken if problem else evidence).append(problem or _evidence(metric, quantile))
        broken += _lone_quantiles(document, confidence)
        return self.judged(broken, evidence, f"the document reports the {short(name or '')}, and no quantile")

    def comparison(self, document: DocumentView) -> Finding:
        """Hold the number of samples, all launches together, against those that the quantile needs."""
        name, quantile = text_of(document.statistic.get("name")), number_of(document.statistic.get("quantile"))
        confidence = document.confidence or _CONFIDENCE
        broken = _contradictions(name, quantile)
        evidence: list[str] = []
        if not broken and quantile is not None:
            for side in document.sides:
                problem = _too_few_in_all(side, quantile, confidence)
                told = f"{side.system} has {side.samples or 0:g} samples for its {_percentile(quantile)}"
                (broken if problem else evidence).append(problem or told)
        broken += _lone_quantiles(document, confidence)
        return self.judged(broken, evidence, f"the document reports the {short(name or '')}, and no quantile")

    def recipe(self, document: DocumentView) -> Finding:
        """Say that one run has no statistic."""
        return self.not_applicable("each value is that of one run, and no statistic")


def _contradictions(name: str | None, quantile: float | None) -> list[str]:
    """Return what is wrong with the statistic that was asked for."""
    if name is None:
        return ["the document does not name its statistic, such as the median; state it"]
    if name in ("median", "quantile"):
        if quantile is None or not 0 < quantile < 1:
            return [f"the statistic is the {name}, and its quantile does not lie between 0 and 1; state it"]
        if name == "median" and quantile != 0.5:
            return [f"the statistic is the median by its name and the {quantile:.6g} quantile by its number"]
        return []
    if "mean" in name.lower() or "average" in name.lower():  # of these, rules 3, 4 and 6
        return []
    return [f"{short(name)!r} has no interval that holds for any distribution; ask for the median or a quantile"]


def _lone_quantiles(document: DocumentView, confidence: float) -> list[str]:
    """Return the percentiles that are reported beside samples that are too few for them, or beside none."""
    problems = []
    for reported, quantile in reported_quantiles(document):
        if reported.metric is not None:
            problem = _too_few(reported.metric, quantile, confidence)
        else:
            needed = _needed(quantile, confidence)
            problem = f"{reported.where} stands beside no samples, and needs {needed:.6g} of them; keep those"
        problems += [problem] if problem else []
    return problems


def _too_few(metric: MetricView, quantile: float, confidence: float) -> str:
    """Return why a quantile cannot be told from the samples of one launch; an empty text when it can."""
    fewest = min(map(len, metric.rows), default=0)
    if metric.is_constant or (quantile == 0.5 and fewest):
        return ""
    needed = _needed(quantile, confidence)
    if fewest >= needed:
        return ""
    return (
        f"the {_percentile(quantile)} of {metric.name} needs {needed:.6g} samples in each launch, and one has "
        f"{fewest}; {_REMEDY}"
    )


def _too_few_in_all(side: AbsoluteView, quantile: float, confidence: float) -> str:
    """Return why a quantile cannot be told, whichever way the samples lie in launches; an empty text when it can."""
    launches = max(len(side.launch_values), 1)
    needed = 1 if quantile == 0.5 else _needed(quantile, confidence)
    if (side.samples or 0) >= needed * launches:
        return ""
    return (
        f"the {_percentile(quantile)} of {side.system} needs {needed:.6g} samples in each launch, and its {launches} "
        f"launches have {side.samples or 0:g} in all; {_REMEDY}"
    )


def _needed(quantile: float, confidence: float) -> float:
    tail = min(quantile, 1 - quantile)
    estimate = math.log((1 - confidence) / 2) / math.log1p(-tail)
    return estimate if estimate > _MANY else samples_needed(quantile, confidence)


def _percentile(quantile: float) -> str:
    return "median" if quantile == 0.5 else f"p{quantile * 100:.6g}"


def _evidence(metric: MetricView, quantile: float) -> str:
    fewest = min(map(len, metric.rows), default=0)
    return f"the {_percentile(quantile)} of {metric.name} was asked for, and each launch has {fewest} samples or more"
