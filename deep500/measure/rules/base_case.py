"""SC15, rule 1: no ratio without its base, and the base in absolute numbers."""

from __future__ import annotations

from deep500.measure.document_view import DocumentView, SystemView, text_of
from deep500.measure.metric import MetricKind
from deep500.measure.rule import Finding, Rule
from deep500.measure.rules._reported import reported_ratios

__all__ = ["BaseCase"]

_REMEDY = "name the base and give its absolute value, or give absolute values alone"


class BaseCase(Rule):
    """Every ratio needs the name of its base and the base's absolute value, with a unit."""

    number = "1"
    title = "A ratio names its base and the base's absolute value"

    def measurement(self, document: DocumentView) -> Finding:
        """Look for ratios among the metrics and beside them."""
        broken = [f"{ratio.where} is a ratio without its base; {_REMEDY}" for ratio in reported_ratios(document)]
        evidence: list[str] = []
        for system in document.systems:
            for metric in system.metrics:
                if metric.kind is not MetricKind.RATIO:
                    continue
                absolute = _absolute(system)
                if absolute:
                    evidence.append(f"beside {metric.name}, a ratio, stand absolute values of {absolute}")
                else:
                    broken.append(f"{metric.name} is a ratio, and no absolute values stand beside it; {_REMEDY}")
        return self.judged(broken, evidence, "no ratio is reported; the samples are absolute values")

    def comparison(self, document: DocumentView) -> Finding:
        """Ask each ratio for its base, and the base for its name, value and unit."""
        own = [row.content.get("ratio") for row in document.compared]
        broken = [
            f"{ratio.where} is a ratio without its base; {_REMEDY}"
            for ratio in reported_ratios(document)
            if not any(ratio.content is content for content in own)
        ]
        ratios = [row for row in document.compared if row.ratio is not None]
        unit = document.part("metric.unit")
        base = document.base
        if ratios and (base is None or base.estimate is None):
            names = ", ".join(row.absolute.system for row in ratios)
            broken.append(f"the ratios of {names} have no base with an absolute value; {_REMEDY}")
        elif ratios and text_of(unit) is None:
            broken.append(f"the base's absolute value has no unit; {_REMEDY}")
        broken += [f"{row.absolute.system} has no absolute value" for row in ratios if row.absolute.estimate is None]
        evidence = []
        if ratios and base is not None and base.estimate is not None:
            names = ", ".join(row.absolute.system for row in ratios)
            evidence.append(f"the ratio of {names} is to {base.system}, {base.estimate:.4g} {unit}")
        return self.judged(broken, evidence, "no ratio is reported")

    def recipe(self, document: DocumentView) -> Finding:
        """Look for ratios beside the metrics."""
        return self.measurement(document)


def _absolute(system: SystemView) -> str:
    kinds = (MetricKind.COST, MetricKind.RATE)
    return ", ".join(metric.metric for metric in system.metrics if metric.kind in kinds and metric.count)
