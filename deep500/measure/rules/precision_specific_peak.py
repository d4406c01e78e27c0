"""Deep learning, F4: a share of the peak is that of the peak of the same precision."""

from __future__ import annotations

from deep500.measure.document_view import DocumentView, number_of, short
from deep500.measure.rule import Finding, Rule
from deep500.measure.rules._peaks import dtype_of, fitting_peaks

__all__ = ["PrecisionSpecificPeak"]


class PrecisionSpecificPeak(Rule):
    """Arithmetic in one dtype is held against the measured peak of that dtype, on the same device."""

    number = "F4"
    title = "The peak is that of the same precision"

    def measurement(self, document: DocumentView) -> Finding:
        """Look for the dtype of each system's arithmetic among the peaks of its device."""
        broken: list[str] = []
        evidence: list[str] = []
        for system in document.systems:
            dtypes = [peak.dtype for peak in fitting_peaks(document, system) if peak.flops_per_s]
            if not number_of(system.work.get("flops")) or not dtypes:
                continue
            dtype = dtype_of(system)
            if dtype is None:
                broken.append(f"{system.label} does not tell the dtype of its arithmetic (work.dtype)")
            elif dtype in dtypes:
                evidence.append(f"{system.label} computes in {short(dtype)}, and so does a peak")
            else:
                others = ", ".join(sorted({short(name or "no dtype") for name in dtypes}))
                broken.append(
                    f"{system.label} computes in {short(dtype)}, the peak is of {others}; measure that of its own"
                )
        return self.judged(broken, evidence, "no peak of arithmetic is quoted")

    def recipe(self, document: DocumentView) -> Finding:
        """Say that a recipe's result quotes no peak."""
        return self.not_applicable("no peak of arithmetic is quoted")
