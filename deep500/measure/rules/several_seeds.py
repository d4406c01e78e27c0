"""Deep learning, F7: an accuracy is that of several seeds."""

from __future__ import annotations

from deep500.core.texts import shown
from deep500.measure.document_view import DocumentView, SystemView, mapping_of
from deep500.measure.results.document import content_hash
from deep500.measure.rule import Finding, Rule
from deep500.measure.rules._training import is_training, qualities, told

__all__ = ["SeveralSeeds"]

#: Fewer seeds are not several. A convention; no measurement stands behind the number.
FEWEST_SEEDS = 3

_REMEDY = f"train with {FEWEST_SEEDS} seeds or more and show each"


class SeveralSeeds(Rule):
    """Systems that differ in nothing but their seed count as one training with several seeds."""

    number = "F7"
    title = "Accuracies are of several seeds"

    def measurement(self, document: DocumentView) -> Finding:
        """Count the seeds of each training that has a score."""
        groups: dict[str, list[SystemView]] = {}
        for system in document.systems:
            if is_training(system) and qualities(system.scores):
                groups.setdefault(_without_seed(system), []).append(system)
        broken: list[str] = []
        evidence: list[str] = []
        for systems in groups.values():
            seeds = {shown(system.setting("seed")) for system in systems}
            if len(seeds) >= FEWEST_SEEDS:
                evidence.append(f"{systems[0].label} was trained with {len(seeds)} seeds")
            else:
                broken.append(f"{systems[0].label} was trained with {len(seeds)} seed; {_REMEDY}")
        return self.judged(broken, evidence, "no training reports a score")

    def recipe(self, document: DocumentView) -> Finding:
        """Say that one run has one seed."""
        scores = qualities(document.scores)
        seed = shown(mapping_of(document.content.get("seeds")).get("recipe"))
        names = ", ".join(map(told, scores))
        wrong = [f"{names} of one run with the seed {seed}; {_REMEDY} (deep500 run --seed N)"] if scores else []
        return self.judged(wrong, [], "no metric is a score")


def _without_seed(system: SystemView) -> str:
    """Return a text that is equal for systems which differ in nothing but their seed."""
    parts = [{key: value for key, value in part.items() if key != "seed"} for part in (system.identity, system.factors)]
    try:
        return content_hash(parts)
    except (TypeError, ValueError, RecursionError):  # such as NaN, which no file of Deep500 holds
        return system.label
