"""SC15, rule 4: ratios are not averaged."""

from __future__ import annotations

from deep500.measure.document_view import DocumentView
from deep500.measure.metric import MetricKind
from deep500.measure.rule import Finding, Rule
from deep500.measure.rules._reported import Reported, reported_means, reported_ratios

__all__ = ["NoMeanOfRatios"]

_REMEDY = "average the costs or the rates of each system, and give one ratio of these with its base"


class NoMeanOfRatios(Rule):
    """Means among ratios are looked for; a geometric one is let pass where the costs are lost and its name says so."""

    number = "4"
    title = "Ratios are not averaged"

    def measurement(self, document: DocumentView) -> Finding:
        """Look for means of ratios, and for ratio metrics whose samples are means themselves."""
        means = [mean for mean in reported_means(document) if mean.is_of_ratios]
        ratios = [metric for metric in document.metrics if metric.kind is MetricKind.RATIO]
        has_costs = any(metric.kind in (MetricKind.COST, MetricKind.RATE) for metric in document.metrics)
        broken = [_reason(mean) for mean in means if has_costs or mean.mean != "geometric"]
        evidence = [
            f"{mean.where} is a geometric mean, says so, and no costs are left to average"
            for mean in means
            if mean.mean == "geometric" and not has_costs
        ]
        for metric in ratios:
            if any((launch.calls_per_sample or 1) > 1 for launch in metric.launches):
                broken.append(f"each sample of {metric.name}, a ratio, is the mean of several runs; {_REMEDY}")
            else:
                evidence.append(f"{metric.name} is a ratio and is not averaged")
        evidence += [f"{ratio.where} is a ratio and is not averaged" for ratio in reported_ratios(document)]
        return self.judged(broken, evidence, "no ratio is reported")

    def comparison(self, document: DocumentView) -> Finding:
        """Look for means of ratios."""
        return self.measurement(document)

    def recipe(self, document: DocumentView) -> Finding:
        """Look for means of ratios."""
        return self.measurement(document)


def _reason(mean: Reported) -> str:
    value = "" if mean.value is None else f", {mean.value:.6g},"
    return f"{mean.where}{value} is a mean of ratios, which depends on the base that was chosen; {_REMEDY}"
