"""Deep learning, F3: it is told whether reading the data is part of the time."""

from __future__ import annotations

from deep500.measure.document_view import DocumentView, SystemView, number_of, short, text_of
from deep500.measure.rule import Finding, Rule
from deep500.measure.rules._training import is_training

__all__ = ["IoIncluded"]

_REMEDY = "state the factor io, or measure dataset:NAME beside it"


class IoIncluded(Rule):
    """Trainings and steps of models have to tell what of reading their data is timed."""

    number = "F3"
    title = "Reading the data is timed, or is said not to be"

    def measurement(self, document: DocumentView) -> Finding:
        """Look for the factor ``io`` of each system that learns from data or reads them."""
        broken: list[str] = []
        evidence: list[str] = []
        for system in document.systems:
            told = _told(system)
            if told:
                evidence.append(f"{system.label}: {told}")
            elif system.workload_kind == "model":
                broken.append(f"{system.label} does not tell whether reading its data is part of a run; {_REMEDY}")
        return self.judged(broken, evidence, "no system reads data")

    def recipe(self, document: DocumentView) -> Finding:
        """Look for the time of the training, from before the first minibatch is read."""
        seconds = number_of(document.part("statistics.training_s"))
        if seconds is None:
            return self.broken("statistics.training_s does not tell the time of the training; run the recipe again")
        return self.obeyed(f"{seconds:.4g} s of training count the reading of every minibatch")


def _told(system: SystemView) -> str:
    """Return what a system says of reading; an empty text when it says nothing."""
    io = text_of(system.setting("io"))
    if io is not None:
        return f"{short(io)} (io)"
    if is_training(system) or system.workload_kind == "dataset":
        return "its runs read the data"
    return ""
