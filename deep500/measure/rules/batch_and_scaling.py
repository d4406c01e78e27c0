"""Deep learning, F8: with several ranks, the local and the global minibatch, and how the work grows."""

from __future__ import annotations

from deep500.measure.document_view import DocumentView, SystemView, number_of, text_of
from deep500.measure.rule import Finding, Rule
from deep500.measure.rules._parallel import ranks_of

__all__ = ["BatchAndScaling"]

_LOCAL = ("local_batch_size", "batch_size_per_rank")
_GLOBAL = ("global_batch_size", "total_batch_size")


class BatchAndScaling(Rule):
    """Systems with several ranks have to name both minibatch sizes, and weak or strong scaling."""

    number = "F8"
    title = "Local and global minibatch are told, and weak or strong scaling is named"

    def measurement(self, document: DocumentView) -> Finding:
        """Look at the systems with several ranks."""
        broken: list[str] = []
        evidence: list[str] = []
        for system in document.systems:
            if ranks_of(system) > 1:
                problem, told = _scaling(system)
                (broken if problem else evidence).append(f"{system.label}: {problem or told}")
        return self.judged(broken, evidence, "every system is one process")

    def recipe(self, document: DocumentView) -> Finding:
        """Say that a recipe runs in one process."""
        return self.not_applicable("the run was one process")


def _scaling(system: SystemView) -> tuple[str, str]:
    """Return what is missing or contradicts, and what is told."""
    ranks = ranks_of(system)
    local, total = number_of(system.setting(*_LOCAL)), number_of(system.setting(*_GLOBAL))
    scaling = (text_of(system.setting("scaling")) or "").lower()
    missing = [name for name, value in ((_LOCAL[0], local), (_GLOBAL[0], total)) if value is None]
    if scaling not in ("weak", "strong"):
        missing.append("scaling ('weak' or 'strong')")
    if missing:
        return f"of {ranks:g} ranks, the factors do not tell {', '.join(missing)}", ""
    if local is not None and total is not None and abs(local * ranks - total) > 0.5 * ranks:
        return f"{ranks:g} ranks with {local:g} samples each are not the {total:g} that are told; correct one", ""
    return "", f"{ranks:g} ranks with {local:g} samples each, {total:g} in all, {scaling} scaling"
