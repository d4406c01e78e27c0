"""Deep learning, F2: accuracy is that of data which the training did not see."""

from __future__ import annotations

from collections.abc import Sequence

from deep500.measure.document_view import DocumentView, ScoreView
from deep500.measure.rule import Finding, Rule
from deep500.measure.rules._training import qualities, told

__all__ = ["HeldOutAccuracy"]


class HeldOutAccuracy(Rule):
    """A score on the training's own data needs one on held-out data beside it."""

    number = "F2"
    title = "Accuracy is measured on held-out data"

    def measurement(self, document: DocumentView) -> Finding:
        """Look at the scores of each system."""
        broken: list[str] = []
        evidence: list[str] = []
        for system in document.systems:
            wrong, right = _split(system.scores)
            broken += [f"{system.label}: {text}" for text in wrong]
            evidence += [f"{system.label}: {text}" for text in right]
        return self.judged(broken, evidence, "no score tells on which data it was taken")

    comparison = measurement

    def recipe(self, document: DocumentView) -> Finding:
        """Look at the names of the metrics: those with "test" or "valid" in them are of held-out data."""
        return self.judged(*_split(document.scores), "no metric is an accuracy by its name")


def _split(scores: Sequence[ScoreView]) -> tuple[list[str], list[str]]:
    """Return what is wrong with scores, and what is right."""
    found = qualities(scores)
    held_out = [f"{told(score)} on held-out data" for score in found if score.held_out]
    if held_out:
        return [], held_out
    seen = [told(score) for score in found if score.held_out is False]
    return [f"{text} is of data that the training saw; add TestAccuracy to METRICS" for text in seen], []
