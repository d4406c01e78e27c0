"""Deep learning, F9: a training shows its time and its accuracy, not the one that looks better."""

from __future__ import annotations

from deep500.measure.document_view import DocumentView, MetricView, mapping_of, number_of
from deep500.measure.metric import MetricKind
from deep500.measure.rule import Finding, Rule
from deep500.measure.rules._training import SCORES_REMEDY, is_training, qualities, told

__all__ = ["TimeAndAccuracy"]

_TIMES = ("s", "ms", "us", "ns")


class TimeAndAccuracy(Rule):
    """Each training needs a time to its end, and a score of what came out."""

    number = "F9"
    title = "Trainings show both their time and their accuracy"

    def measurement(self, document: DocumentView) -> Finding:
        """Look at the trainings."""
        broken: list[str] = []
        evidence: list[str] = []
        for system in filter(is_training, document.systems):
            times, scores = list(filter(_is_time, system.metrics)), qualities(system.scores)
            if not times:
                broken.append(f"{system.label} reports no time; measure its WallclockTime")
            elif not scores:
                broken.append(f"{system.label} reports a time and no score; {SCORES_REMEDY}")
            else:
                evidence.append(f"{system.label} has {times[0].metric} and {told(scores[0])}")
        return self.judged(broken, evidence, "no system is a training")

    def comparison(self, document: DocumentView) -> Finding:
        """Look at the trainings: the metric that is compared has to be a time, and scores stand beside it."""
        broken: list[str] = []
        evidence: list[str] = []
        metric = mapping_of(document.part("metric"))
        for system in filter(is_training, document.systems):
            scores = qualities(system.scores)
            if metric.get("kind") != MetricKind.COST.value or metric.get("unit") not in _TIMES:
                broken.append(f"{system.label} is compared by what is no time; compare its WallclockTime")
            elif not scores:
                broken.append(f"{system.label} is compared by its time and has no score; {SCORES_REMEDY}")
            else:
                evidence.append(f"{system.label} is compared by its time, and has {told(scores[0])}")
        return self.judged(broken, evidence, "no system is a training")

    def recipe(self, document: DocumentView) -> Finding:
        """Look for the time of the training and for a score."""
        seconds, scores = number_of(document.part("statistics.training_s")), qualities(document.scores)
        if seconds is None:
            return self.broken("statistics.training_s does not tell the time of the training; run the recipe again")
        if not scores:
            return self.broken("no metric says how good the model is; add one, such as TestAccuracy, to METRICS")
        return self.obeyed(f"{told(scores[0])} after {seconds:.4g} s of training")


def _is_time(metric: MetricView) -> bool:
    return metric.kind is MetricKind.COST and metric.unit in _TIMES and metric.count > 0
