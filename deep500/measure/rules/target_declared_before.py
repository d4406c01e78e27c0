"""Deep learning, F6: what is good enough was declared before the run."""

from __future__ import annotations

from collections.abc import Sequence

from deep500.measure.document_view import DocumentView, ScoreView
from deep500.measure.rule import Finding, Rule
from deep500.measure.rules._training import is_training, qualities, told

__all__ = ["TargetDeclaredBefore"]


class TargetDeclaredBefore(Rule):
    """A score needs an acceptable value, which recipes state in METRICS before they run."""

    number = "F6"
    title = "The target was declared before"

    def measurement(self, document: DocumentView) -> Finding:
        """Look for the acceptable values of each training's scores."""
        broken: list[str] = []
        evidence: list[str] = []
        for system in filter(is_training, document.systems):
            wrong, right = _split(system.scores)
            broken += [f"{system.label}: {text}" for text in wrong]
            evidence += [f"{system.label}: {text}" for text in right]
        return self.judged(broken, evidence, "no training reports a score")

    comparison = measurement

    def recipe(self, document: DocumentView) -> Finding:
        """Look for the acceptable values of METRICS."""
        return self.judged(*_split(document.scores), "no metric is a score")


def _split(scores: Sequence[ScoreView]) -> tuple[list[str], list[str]]:
    """Return what is wrong with scores, and what is right."""
    found = qualities(scores)
    declared = [f"{told(score)}, target {score.acceptable:.6g}" for score in found if score.acceptable is not None]
    if declared or not found:
        return [], declared
    names = ", ".join(told(score) for score in found)
    return [f"{names} has no target; give an acceptable value in METRICS before the run"], []
