"""Deep learning, F5: speed and accuracy are of one and the same configuration."""

from __future__ import annotations

from deep500.measure.document_view import DocumentView, text_of
from deep500.measure.results.document import content_hash
from deep500.measure.rule import Finding, Rule
from deep500.measure.rules._hashes import configuration_problem
from deep500.measure.rules._training import told

__all__ = ["OneConfiguration"]


class OneConfiguration(Rule):
    """The hash that binds scores and times is computed again from what it stands for."""

    number = "F5"
    title = "Speed and accuracy are of one configuration"

    def measurement(self, document: DocumentView) -> Finding:
        """Compute the configuration hash of each system that has scores."""
        broken: list[str] = []
        evidence: list[str] = []
        for system in document.systems:
            if not system.scores:
                continue
            problem = configuration_problem(system)
            bound = f"{system.label}: {', '.join(map(told, system.scores))} and the times are of the same configuration"
            (broken if problem else evidence).append(problem or bound)
        return self.judged(broken, evidence, "no accuracy is reported beside the times")

    def recipe(self, document: DocumentView) -> Finding:
        """Compute the configuration hash of the recipe's two parts."""
        stated = text_of(document.content.get("configuration_hash"))
        try:
            computed = content_hash({key: document.content.get(key) for key in ("fixed", "mutable")})
        except (TypeError, ValueError, RecursionError):  # such as NaN, which no file of Deep500 holds
            computed = None
        if stated is None:
            return self.broken("no configuration_hash is stated; run the recipe again")
        if computed != stated:
            return self.broken("configuration_hash is not that of fixed and mutable: one was changed after the run")
        return self.obeyed(f"time and metrics are of the configuration {stated[:12]}")
