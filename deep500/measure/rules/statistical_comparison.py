"""SC15, rule 7: systems are compared with statistics, not by eye."""

from __future__ import annotations

from collections.abc import Sequence

from deep500.measure.document_view import ComparedView, DocumentView, number_of, short
from deep500.measure.rule import Finding, Rule
from deep500.measure.rules._reported import reported_verdicts
from deep500.measure.statistics.multiple import holm

__all__ = ["StatisticalComparison"]

#: p-values that are written with six digits are the same.
_ROUNDING = 1e-6


class StatisticalComparison(Rule):
    """A verdict needs a ratio whose interval agrees with it, and p-values that are corrected for their number."""

    number = "7"
    title = "Systems are compared with statistics"

    def measurement(self, document: DocumentView) -> Finding:
        """Look for verdicts, which a measurement has no statistics for."""
        claims = [
            f"{where} says {verdict}, and no test stands behind it" for where, verdict in reported_verdicts(document)
        ]
        if claims:
            return self.judged([*claims[:2], "compare the samples with deep500 compare"], [], "")
        if len(document.systems) > 1:
            return self.not_applicable("the document claims no difference between its systems; deep500 compare does")
        return self.not_applicable("there are no two systems to compare")

    def comparison(self, document: DocumentView) -> Finding:
        """Hold each verdict against the interval and the p-value of its row."""
        confidence = document.confidence
        if confidence is None:
            return self.broken("statistic states no confidence between 0 and 1, such as 0.95; compare again")
        direction = document.part("metric.direction")
        if direction not in ("higher", "lower"):
            return self.broken("metric.direction does not tell which values are better: higher or lower; state it")
        broken = _uncorrected(document.compared)
        evidence: list[str] = []
        for row in document.compared:
            problem = _problem(row, 1 - confidence, direction == "higher", number_of(document.part("margin")))
            if problem:
                broken.append(f"{row.absolute.system} is said to be {short(str(row.verdict))}, {problem}")
            else:
                evidence.append(_evidence(row, len(document.compared)))
        return self.judged(broken, evidence, "nothing is compared")

    def recipe(self, document: DocumentView) -> Finding:
        """Say that one run is compared with nothing."""
        return self.not_applicable("one run is held against its targets, not against another system")


def _problem(row: ComparedView, level: float, higher_is_better: bool, margin: float | None) -> str:
    """Return why a verdict does not follow from the row's own numbers; an empty text when it does."""
    if row.verdict == "undecided":
        return ""
    if row.verdict not in ("faster", "slower", "equivalent"):
        return "which is no verdict; accepted are faster, slower, undecided and equivalent"
    if row.ends is None:
        return "and its ratio has no interval; say undecided, or measure more launches"
    low, high = row.ends
    if row.verdict == "equivalent":
        if margin is None or not margin > 0:
            return "and no margin was declared within which differences do not matter; compare with --margin"
        is_within = row.ratio is not None and 1 / (1 + margin) < row.ratio < 1 + margin
        return "" if is_within else f"and its ratio is not within the margin of {margin:.4g}"
    is_lower = row.verdict == ("slower" if higher_is_better else "faster")
    if not (high < 1 if is_lower else low > 1):
        return f"and the interval of its ratio is {low:.4g} to {high:.4g}; say undecided, or correct the verdict"
    if row.pairing not in ("none", "samples", "launches"):
        return "and its pairing is not told; compare again"
    p_value = row.p_value if row.p_holm is None else row.p_holm
    if p_value is None or p_value > level * (1 + _ROUNDING):
        told = "no p-value stands beside it" if p_value is None else f"its p-value is {p_value:.3g}, above {level:.3g}"
        return f"and {told}; say undecided"
    return ""


def _uncorrected(rows: Sequence[ComparedView]) -> list[str]:
    """Return what is wrong with the correction of the p-values for their number."""
    tested = [(row, row.p_value) for row in rows if row.p_value is not None and 0 <= row.p_value <= 1]
    if len(tested) < 2:
        return []
    adjusted = holm([p_value for _, p_value in tested]).adjusted
    wrong = [
        row.absolute.system
        for (row, _), least in zip(tested, adjusted)
        if row.p_holm is None or row.p_holm < float(least) * (1 - _ROUNDING)
    ]
    if not wrong:
        return []
    return [f"the p-values of {', '.join(wrong)} are not corrected for {len(tested)} comparisons (Holm); compare again"]


def _evidence(row: ComparedView, count: int) -> str:
    if row.ends is None or row.ratio is None:
        return f"{row.absolute.system} is {row.verdict}, since there is no interval"
    corrected = "" if count < 2 or row.p_holm is None else f", p = {row.p_holm:.2g} after Holm"
    return (
        f"{row.absolute.system} is {row.verdict}: {row.ratio:.4g} ({row.ends[0]:.4g} to {row.ends[1]:.4g}{corrected})"
    )
