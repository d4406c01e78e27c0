"""SC15, rule 11: performance is shown beside its bound."""

from __future__ import annotations

import numpy as np

from deep500.measure.document_view import DocumentView, MetricView, SystemView, number_of
from deep500.measure.metric import MetricKind
from deep500.measure.rule import Finding, Rule
from deep500.measure.rules._peaks import QuotedPeak, dtype_of, fitting_peaks

__all__ = ["Bounds"]

_SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}


class Bounds(Rule):
    """Where the work of a run is counted, its time is held against measured peaks of the same precision."""

    number = "11"
    title = "Performance is shown beside its bound"

    def measurement(self, document: DocumentView) -> Finding:
        """Compute the least time of each system whose work is known, and its share of the time that was measured."""
        broken: list[str] = []
        evidence: list[str] = []
        for system in document.systems:
            time = next(filter(_is_time, system.metrics), None)
            if time is None or not any(_work(system)):
                continue
            least_s = _least_s(system, fitting_peaks(document, system))
            if least_s is None:
                broken.append(
                    f"{system.label} counts its work, and no measured peak of {dtype_of(system) or 'its dtype'} stands "
                    "beside it; record deep500.measure.peak.measured_peak()"
                )
                continue
            median_s = float(np.median([np.median(row) for row in time.rows])) * _SECONDS[time.unit or "s"]
            told = f"{system.label} takes {median_s:.4g} s, and the peaks allow {least_s:.4g} s"
            if least_s > median_s:
                broken.append(f"{told}: what is passed is no bound; measure the peaks again, on the same device")
            else:
                evidence.append(f"{told} ({least_s / median_s:.2%} of it)")
        return self.judged(broken, evidence, "no system tells the operations or bytes of a run, so there is no bound")

    def recipe(self, document: DocumentView) -> Finding:
        """Say that a recipe's result does not count its work."""
        return self.not_applicable("the result does not count operations or bytes; deep500 bench model:NAME does")


def _is_time(metric: MetricView) -> bool:
    return metric.kind is MetricKind.COST and metric.unit in _SECONDS and metric.count > 0


def _work(system: SystemView) -> tuple[float, float]:
    """Return operations and bytes of a run, 0 for what is not known."""
    flops, moved = (max(number_of(system.work.get(key)) or 0.0, 0.0) for key in ("flops", "bytes"))
    return flops, moved


def _least_s(system: SystemView, peaks: list[QuotedPeak]) -> float | None:
    """Return the least time of a run by the peaks, ``None`` when none of them bounds it."""
    flops, moved = _work(system)
    dtype = dtype_of(system)
    rates = [peak.flops_per_s for peak in peaks if peak.flops_per_s and dtype in (None, peak.dtype)]
    bandwidths = [peak.bytes_per_s for peak in peaks if peak.bytes_per_s]
    if (flops and not rates) or (not flops and not bandwidths):
        return None
    by_arithmetic = flops / max(rates) if flops else 0.0
    # Small data stay in caches, which are faster than the memory that was measured: it bounds what has no operations.
    return by_arithmetic if flops else moved / max(bandwidths)
