"""SC15, rule 2: why only a part of the workloads or of the machine was used."""

from __future__ import annotations

from collections import Counter

from deep500.measure.document_view import DocumentView, flag_of, items_of, number_of, short, text_of
from deep500.measure.rule import Finding, Rule

__all__ = ["JustifiedSubset"]


class JustifiedSubset(Rule):
    """What was planned is held against what was run, and the CPUs of the machine against those that were used."""

    number = "2"
    title = "A subset of the workloads or of the machine is justified"

    def measurement(self, document: DocumentView) -> Finding:
        """Compare workloads, launches and CPUs with those that there were."""
        reason = text_of(document.part("design.justification"))
        broken = _unfinished(document) + _missing_launches(document)
        missing, evidence = _workloads(document)
        fewer_cpus = _fewer_cpus(document)
        unjustified = [text for text in (missing, fewer_cpus) if text]
        if reason is None:
            broken += [f"{text}, and no reason is given (deep500 bench --because TEXT)" for text in unjustified]
        else:
            evidence += [f"{text}, because: {short(reason)}" for text in unjustified]
        return self.judged(broken, evidence, "the document tells neither what was planned nor what was run")

    def recipe(self, document: DocumentView) -> Finding:
        """Compare the epochs with those that were planned."""
        planned = number_of(document.part("statistics.epochs_planned"))
        run = len(items_of(document.part("statistics.epochs")))
        outcome = document.part("statistics.outcome")
        if flag_of(document.content.get("complete")) is not True:
            why = text_of(document.content.get("failure")) or "no reason is given"
            return self.broken(f"the run is not complete: {short(why)}; run the recipe to its end")
        if planned is None and number_of(document.part("statistics.budget.time_limit_s")) is not None:
            return self.obeyed(f"the run is complete: {run} epochs were begun within its budget of seconds")
        if planned is None:
            return self.broken("the document does not tell how many epochs were planned; run the recipe again")
        if run < planned and outcome != "stopped":
            return self.broken(f"{run} of {planned:g} epochs were run, and no event stopped them; run the recipe again")
        stopped = "; an event of the recipe stopped it" if run < planned else ""
        return self.obeyed(f"the run is complete, with {run} of {planned:g} epochs{stopped}")


def _unfinished(document: DocumentView) -> list[str]:
    if flag_of(document.content.get("complete")) is not False:
        return []
    why = text_of(document.content.get("failure")) or "no reason is given"
    return [f"not all that was planned was run: {short(why)}; measure again"]


def _workloads(document: DocumentView) -> tuple[str, list[str]]:
    """Return which planned workloads were not run, as a text, and the evidence that the others were."""
    planned = [text for item in items_of(document.part("design.workloads")) if (text := text_of(item))]
    run = Counter(system.spec for system in document.systems)
    missing = list((Counter(planned) - run).elements())
    evidence = [f"{len(planned) - len(missing)} of {len(planned)} planned workloads were run"] if planned else []
    return (f"{', '.join(map(short, missing))} was planned and not run" if missing else ""), evidence


def _missing_launches(document: DocumentView) -> list[str]:
    planned = number_of(document.part("design.launches"))
    if planned is None:
        return []
    return [
        f"{metric.name} has {len(metric.rows)} of {planned:g} planned launches; measure again"
        for metric in document.metrics
        if len(metric.rows) < planned
    ]


def _fewer_cpus(document: DocumentView) -> str:
    """Return how the machine was limited, as a text: by affinity, by a quota, by the number of threads."""
    cores = number_of(document.environment("cpu.cores"))
    limits = {
        "the process may run on": number_of(document.environment("process.affinity_count")),
        "its quota is": number_of(document.environment("process.cpu_quota")),
        "libraries were given threads for": min(
            (threads for system in document.systems if (threads := number_of(system.setting("threads"))) is not None),
            default=None,
        ),
    }
    found = [f"{what} {limit:g}" for what, limit in limits.items() if cores and limit is not None and limit < cores]
    return f"of the machine's {cores:g} cores, {' and '.join(found)}" if found else ""
