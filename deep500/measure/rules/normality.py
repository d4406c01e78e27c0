"""SC15, rule 6: normality is tested, not assumed."""

from __future__ import annotations

import numpy as np

from deep500.core.errors import MeasurementError
from deep500.measure.document_view import DocumentView, MetricView
from deep500.measure.rule import Finding, Rule
from deep500.measure.rules._reported import reported_means
from deep500.measure.statistics.diagnostics import FEWEST_FOR_MEAN, normality

__all__ = ["Normality"]

_REMEDY = "give the median, whose interval assumes no distribution"


class Normality(Rule):
    """Where a mean has an interval, its samples are tested again; intervals of quantiles assume no distribution."""

    number = "6"
    title = "Normality is tested before it is used"

    def measurement(self, document: DocumentView) -> Finding:
        """Test the samples behind each mean that has an interval."""
        broken: list[str] = []
        evidence: list[str] = []
        for mean in reported_means(document):
            if not mean.has_interval:
                continue
            if mean.metric is None or not mean.metric.count:
                broken.append(
                    f"{mean.where} has an interval, and there are no samples to test for normality; {_REMEDY}"
                )
                continue
            rejected, told = _tested(mean.metric)
            (broken if rejected else evidence).append(f"the interval of {mean.where} {told}")
        name = document.statistic.get("name")
        has_values = document.base is not None or any(metric.count for metric in document.metrics)
        if name in ("median", "quantile") and has_values:
            evidence.append(f"the {name} has an interval of order statistics, which assumes no distribution")
        return self.judged(broken, evidence, "no interval is reported")

    # Where there are no samples, a mean with an interval breaks the rule.
    comparison = measurement
    recipe = measurement


def _tested(metric: MetricView) -> tuple[bool, str]:
    """Return whether the samples (of several launches: their means) are too few or not normal, and what was found."""
    rows = metric.rows
    with np.errstate(all="ignore"):
        values = [float(np.mean(row)) for row in rows] if len(rows) > 1 else list(rows[0])
    what = "launches" if len(rows) > 1 else "samples"
    if len(values) < FEWEST_FOR_MEAN:
        needed = f"a test of normality sees nothing in fewer than {FEWEST_FOR_MEAN}"
        return True, f"rests on {len(values)} {what} of {metric.name}, and {needed}; {_REMEDY}"
    try:
        test = normality(values)
    except MeasurementError:  # all are equal, or not finite
        return True, f"rests on {what} of {metric.name} that cannot be tested for normality; {_REMEDY}"
    if test.rejected:
        found = f"{test.test}, p = {test.p_value:.2g}"
        return True, f"rests on {len(values)} {what} of {metric.name} that are not normal ({found}); {_REMEDY}"
    return (
        False,
        f"rests on {len(values)} {what} of {metric.name} that may be normal ({test.test}, p = {test.p_value:.2g})",
    )
