"""SC15, rule 10: in parallel, what is timed, how the clocks are synchronised, and how ranks are summarised."""

from __future__ import annotations

from deep500.measure.document_view import DocumentView, SystemView, short, text_of
from deep500.measure.rule import Finding, Rule
from deep500.measure.rules._parallel import is_on_accelerator, ranks_of, stated

__all__ = ["ParallelTiming"]


class ParallelTiming(Rule):
    """For systems with several ranks or an accelerator, the document has to tell how they were timed."""

    number = "10"
    title = "Parallel timing tells its clock, its synchronisation and its summary over ranks"

    def measurement(self, document: DocumentView) -> Finding:
        """Look at the systems that are parallel."""
        broken: list[str] = []
        evidence: list[str] = []
        clock = text_of(document.environment("clock.implementation"))
        for system in document.systems:
            ranks, on_accelerator = ranks_of(system), is_on_accelerator(system)
            if ranks <= 1 and not on_accelerator:
                continue
            missing = _missing(document, system, ranks, clock)
            where = f"{ranks:g} ranks" if ranks > 1 else "an accelerator"
            if missing:
                broken.append(f"{system.label} ran on {where}, and {' and '.join(missing)}")
            else:
                told = short(stated(document, system, "synchron") or "")
                evidence.append(f"{system.label} ran on {where}; {told}; clock: {short(clock or '')}")
        return self.judged(broken, evidence, "every system is one process on the CPU")

    def recipe(self, document: DocumentView) -> Finding:
        """Look at the device: the trainer waits for it before it reads the clock."""
        device = text_of(document.content.get("device")) or "cpu"
        if device == "cpu":
            return self.not_applicable("the run was one process on the CPU")
        return self.obeyed(f"the run was one process on {short(device)}, which is waited for at the end of each pass")


def _missing(document: DocumentView, system: SystemView, ranks: float, clock: str | None) -> list[str]:
    missing = []
    if clock is None:
        missing.append("the clock is not named (environment.sections.clock)")
    if stated(document, system, "synchron") is None:
        missing.append("nothing tells how it was synchronised (a factor or setting 'synchronisation')")
    if ranks > 1 and stated(document, system, "rank_summary", "summary_over_ranks", "over_ranks") is None:
        missing.append(
            "nothing tells how times of ranks became one (a factor or setting 'rank_summary', such as 'max')"
        )
    return missing
