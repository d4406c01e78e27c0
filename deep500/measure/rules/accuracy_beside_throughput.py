"""Deep learning, F1: speed is shown together with how good the results are."""

from __future__ import annotations

from deep500.measure.document_view import DocumentView
from deep500.measure.rule import Finding, Rule
from deep500.measure.rules._training import SCORES_REMEDY, has_low_precision, is_training, qualities, told

__all__ = ["AccuracyBesideThroughput"]


class AccuracyBesideThroughput(Rule):
    """Trainings, and anything that computes with fewer digits than float32, need a score beside their times."""

    number = "F1"
    title = "Accuracy stands beside speed"

    def measurement(self, document: DocumentView) -> Finding:
        """Look for scores of the systems whose results can be worse."""
        broken: list[str] = []
        evidence: list[str] = []
        for system in document.systems:
            if not (is_training(system) or has_low_precision(system)):
                continue
            scores = qualities(system.scores)
            if scores:
                evidence.append(f"{system.label}: {', '.join(map(told, scores))}")
            else:
                why = "is a training" if is_training(system) else "computes in a low precision"
                broken.append(f"{system.label} {why} and reports speed without any score; {SCORES_REMEDY}")
        return self.judged(broken, evidence, "no system is a training or computes in less than float32")

    comparison = measurement

    def recipe(self, document: DocumentView) -> Finding:
        """Look for a metric that is a score."""
        scores = qualities(document.scores)
        missing = [] if scores else ["no metric says how good the model is; add one, such as TestAccuracy, to METRICS"]
        return self.judged(missing, [told(score) for score in scores], "")
