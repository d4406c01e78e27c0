"""A trace's report as rows of text, for terminals and pages alike."""

from __future__ import annotations

import math
from collections.abc import Sequence

from deep500.core.texts import escaped
from deep500.fleet.trace.classic import ClassicCorrelation, ClassicView
from deep500.fleet.trace.factors import FACTORS
from deep500.fleet.trace.groups import FactorReport, GroupReport, Share
from deep500.fleet.trace.models import CauseModel
from deep500.fleet.trace.report import TraceReport

__all__ = [
    "classic_rows",
    "classic_tables",
    "correlation_rows",
    "counted",
    "effect_rows",
    "group_rows",
    "name_text",
    "number_of",
    "p_text",
    "share_rows",
    "split_rows",
    "test_text",
    "time_text",
]

Row = tuple[str, ...]

#: Longer names are cut in tables.
_LONGEST = 48

_TITLES = {factor.name: factor.title for factor in FACTORS}

#: How statuses of the classic view are called in it.
OUTCOMES = {"passed": "success", "failed": "failure (all that did not pass)"}


def time_text(seconds: float | None) -> str:
    """Return a time in the unit that suits it."""
    if seconds is None or not math.isfinite(seconds):
        return "-"
    for unit, size in (("d", 86400.0), ("h", 3600.0), ("min", 60.0)):
        if seconds >= size:
            return f"{_digits(seconds / size)} {unit}"
    return f"{seconds:.3g} s"


def hours_text(hours: float) -> str:
    """Return hours with three digits and more; nothing for what was not seen to come, such as a first failure."""
    return "-" if not math.isfinite(hours) else f"{_digits(hours)} h"


def _digits(value: float) -> str:
    return f"{value:,.0f}" if 100 <= value < 1e9 else f"{value:.3g}"


def name_text(name: str) -> str:
    """Return a name in one line of bearable length."""
    line = escaped(name)
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 6]} [...]"


def p_text(p_value: float | None) -> str:
    """Return a p-value."""
    if p_value is None or math.isnan(p_value):
        return "-"
    return "< 1e-300" if p_value < 1e-300 else f"{p_value:.2g}"


def interval_text(ends: tuple[float | None, float | None] | None, form: str = "{:.3g}") -> str:
    """Return an interval in brackets."""
    if ends is None or ends[0] is None or ends[1] is None or math.isnan(ends[0]):
        return ""
    return "[" + " .. ".join("inf" if math.isinf(end) else form.format(end) for end in ends if end is not None) + "]"


def _equals(p_value: float) -> str:
    text = p_text(p_value)
    return text if text.startswith("<") else f"= {text}"


def number_of(count: int, what: str) -> str:
    """Return a number with its noun."""
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def counted(counts: dict[str, int]) -> str:
    """Return counts in one line."""
    return ", ".join(f"{name} {count:,}" for name, count in counts.items()) or "none"


def share_text(share: Share) -> str:
    """Return a share with its interval in percent."""
    ends = None if share.low is None or share.high is None else (100 * share.low, 100 * share.high)
    return f"{100 * share.value:.1f} % {interval_text(ends, '{:.1f}')}".rstrip()


def group_rows(groups: Sequence[GroupReport]) -> list[Row]:
    """Return the rates of groups, a row each, below a header."""
    rows: list[Row] = [
        ("group", "tasks", "users", "failed", "passed", "neither", "median end", "MTTF", "exact", "over users",
         "MTTF, GPU", "over users", "GPU time lost", "effective", "over users"),
    ]  # fmt: skip
    for group in groups:
        r = group.rates
        gpus = r.gpu_hours > 0
        rows.append(
            (
                name_text(group.group),
                f"{r.tasks:,}",
                f"{r.users:,}",
                f"{r.failed:,}",
                f"{r.passed:,}",
                f"{r.censored:,}",
                time_text(group.median_s),
                hours_text(r.mttf_h),
                interval_text(r.mttf_exact),
                interval_text(r.mttf_users),
                hours_text(r.mttf_gpu_h) if gpus else "-",
                interval_text(r.mttf_gpu_users),
                hours_text(r.failed_gpu_h) if gpus else "-",
                f"{100 * r.effective:.1f} %" if gpus else "-",
                interval_text(None if r.effective_users is None else _percent(r.effective_users), "{:.1f}"),
            )
        )
    return rows


def share_rows(groups: Sequence[GroupReport]) -> list[Row]:
    """Return what has become of groups at each time, a row each, below a header."""
    rows: list[Row] = [("group", "after", "still seen", "ended", "failed", "passed", "failed, were it alone")]
    for group in groups:
        for at in group.at:
            shares = (at.ended, at.failed, at.passed, at.failed_alone)
            rows.append((name_text(group.group), time_text(at.time_s), f"{at.at_risk:,}", *map(share_text, shares)))
    return rows


def test_text(report: FactorReport) -> str:
    """Return what the log-rank tests of a factor say, in a sentence."""
    parts = []
    for cause, test in report.tests.items():
        over = "over users" if test.test.robust_p_value is not None else "tasks taken as independent"
        parts.append(
            f"{cause}: p {_equals(test.p_value)} ({over}), {p_text(test.adjusted_p)} after Holm's correction "
            f"[independent: chi2({test.test.degrees}) = {test.test.statistic:.4g}, p {_equals(test.test.p_value)}]"
        )
    said = "; ".join(parts) or "not possible with one group or no ends"
    missing = f" Missing for {report.missing:,} tasks." if report.missing else ""
    return f"Log-rank test of equal rates: {said}.{missing}"


def effect_rows(model: CauseModel, confidence: float) -> list[Row]:
    """Return the effects of a model, a row each, below a header."""
    rows: list[Row] = [
        ("covariate", "for", "rate times", f"{confidence:.0%}", "p", "p (Holm)", "same early and late? p (Holm)")
    ]
    for e in model.effects:
        ends = interval_text((e.low, e.high))
        rows.append(
            (name_text(e.covariate), name_text(e.unit), f"{e.ratio:.3f}", ends, p_text(e.p_value), p_text(e.adjusted_p),
             p_text(e.proportional_adjusted_p))
        )  # fmt: skip
    return rows


def split_rows(model: CauseModel) -> list[Row]:
    """Return the effects before and after the split, a row each, below a header."""
    rows: list[Row] = [("covariate", "early", "", "late", "", "late over early", "", "p (Holm)", "")]
    for effect in model.split:
        cells = [
            text
            for value, low, high in (effect.early, effect.late, effect.change)
            for text in (f"{value:.3f}", interval_text((low, high)))
        ]
        rows.append((name_text(effect.covariate), *cells, p_text(effect.adjusted_p), effect.verdict))
    return rows


def correlation_rows(report: TraceReport) -> list[Row]:
    """Return the rank correlations, a row each, below a header."""
    rows: list[Row] = [("factor", "against", "tasks", "rho", "interval", "p", "p (Holm)")]
    for found in report.correlations:
        ends = interval_text((found.low, found.high), "{:+.3f}")
        rows.append(
            (name_text(found.factor), found.against, f"{found.tasks:,}", f"{found.rho:+.3f}", ends,
             p_text(found.p_value), p_text(found.adjusted_p))
        )  # fmt: skip
    return rows


def classic_name(found: ClassicCorrelation) -> str:
    """Return what a correlation of the classic view is of."""
    cut = "" if found.cut_s is None else f", tasks below {found.cut_s:,.0f} s"
    return f"{_TITLES.get(found.factor, found.factor)}{cut}"


def classic_rows(view: ClassicView) -> list[Row]:
    """Return the correlations of the classic view, a row each, below a header."""
    rows: list[Row] = [("time to", "factor", "groups", "Pearson's r of means", "p", "p (Holm)")]
    for found in view.correlations:
        r = "-" if found.r is None else f"{found.r:+.2f}"
        p_value = "-" if found.p_value is None else f"{found.p_value:.2e}"
        rows.append(
            (
                OUTCOMES[found.outcome],
                classic_name(found),
                f"{len(found.groups):,}",
                r,
                p_value,
                p_text(found.adjusted_p),
            )
        )
    return rows


def classic_tables(view: ClassicView) -> list[Row]:
    """Return the mean run times by GPU type, a row each, below a header."""
    rows: list[Row] = [("time to", "GPU type", "average task runtime (seconds)", "tasks")]
    for table in view.tables:
        for group in table.groups:
            rows.append(
                (OUTCOMES[table.outcome], name_text(str(group.value)), f"{group.mean_s:.1f}", f"{group.tasks:,}")
            )
    return rows


def _percent(ends: tuple[float, float]) -> tuple[float, float]:
    return 100 * ends[0], 100 * ends[1]
