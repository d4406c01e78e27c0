"""When the tasks of a trace succeed or fail, and what goes with it: everything that is told of one trace."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from deep500.core.counts import check_count
from deep500.core.errors import FleetError
from deep500.fleet.outcome_table import OutcomeTable
from deep500.fleet.trace.association import RankCorrelation, correlations
from deep500.fleet.trace.classic import ClassicView, classic_view
from deep500.fleet.trace.factors import find_factors
from deep500.fleet.trace.groups import FactorReport, GroupReport, Settings, corrected, factor_report, group_report
from deep500.fleet.trace.models import CauseModel, cause_models
from deep500.fleet.trace.observed import ObservedTrace, observe
from deep500.fleet.trace.rates import EFFECTIVE_TIME, task_hours

__all__ = ["TraceReport", "report_trace"]

#: The times for which shares are told unless others are named: an hour, six, a day, a week.
_TIMES_S = (3600.0, 6 * 3600.0, 86400.0, 7 * 86400.0)

#: More groups would take hours, more resamples change no digit that is shown.
_MOST_GROUPS, _MOST_RESAMPLES = 1000, 1_000_000

#: What holds for all of it.
_NOTES = (
    "Tasks that still ran at the trace's end, were cancelled, ran out of time or lost their machine are kept: they "
    "count for as long as they were seen (censored). That is right if what cut them off has nothing to do with how "
    "they would have ended.",
    "Intervals and p-values are over users unless they say 'exact': the tasks of one user succeed and fail alike, and "
    "are taken together. A group of fewer than 5 users has none.",
    "MTTF is the mean time to failure, the hours of all tasks over the failures; 'MTTF, GPU' counts GPU-hours. 'Median "
    "end' is when half of the tasks have ended, either way; 'still seen' is how many were seen running for longer; "
    "'failed, were it alone' is the share that would have failed if success ended no task: no share of what happened.",
    "What goes with failures need not cause them: users choose GPUs, plans and sizes for their work.",
    EFFECTIVE_TIME,
)


@dataclass(frozen=True)
class TraceReport:
    """What is told of a trace.

    Attributes:
        tasks: How many tasks were seen running.
        users: Of how many users.
        end_s: The trace's end.
        statuses: All tasks by status.
        censored: The tasks whose end was not seen, by why.
        left_out: The tasks that were not seen running, by why.
        unknown_gpus: The tasks of which nobody knows how many GPUs they had; their GPU-hours count as 0.
        settings: What intervals were made with.
        whole: All tasks as one group.
        factors: The factors.
        absent: Factors that the trace does not tell of, with why.
        models: The models of failing and of succeeding.
        correlations: Rank correlations.
        classic: The view of seed 004; ``None`` unless asked for.
        notes: What is to be known of it.
    """

    tasks: int
    users: int
    end_s: float
    statuses: dict[str, int]
    censored: dict[str, int]
    left_out: dict[str, int]
    unknown_gpus: int
    settings: Settings
    whole: GroupReport
    factors: tuple[FactorReport, ...]
    absent: dict[str, str]
    models: tuple[CauseModel, ...]
    correlations: tuple[RankCorrelation, ...]
    classic: ClassicView | None
    notes: tuple[str, ...]

    def document(self) -> dict[str, Any]:
        """Return the report as what JSON can hold."""
        return dataclasses.asdict(self)


def report_trace(
    table: OutcomeTable,
    *,
    classic: bool = False,
    factors: Sequence[str] = (),
    times_s: Sequence[float] | None = None,
    confidence: float = 0.95,
    top: int = 8,
    resamples: int = 1000,
    seed: int = 0,
    tell: Callable[[str], None] = lambda text: None,
) -> TraceReport:
    """Tell when the tasks of a trace succeed or fail, and what goes with it.

    Args:
        table: The outcomes of tasks.
        classic: Whether to add the view of seed 004, with what is wrong with it.
        factors: Labels to look at beside those that are always looked at.
        times_s: The times for which shares are told, in seconds; by default an hour, six, a day and a week.
        confidence: That of all intervals; one minus it is the level of the tests.
        top: How many users (GPU types) are groups of their own; the rest go together.
        resamples: Resamples of users for the intervals of ratios.
        seed: The seed of the resamples.
        tell: Is told how far it is.

    Raises:
        FleetError: No task was seen running, or an argument is not accepted.
    """
    _check_top(top)
    settings = _settings(times_s, confidence, resamples, seed)
    trace = observe(table)
    found, absent = find_factors(trace, factors, top)
    settings = settings if settings.times_s else replace(settings, times_s=_usual_times(trace))
    hours = task_hours(trace)
    tell("all tasks")
    whole = group_report(trace, hours, "all tasks", np.arange(len(trace)), settings)
    reports = []
    for factor in found:
        tell(factor.factor.title)
        reports.append(factor_report(trace, hours, factor, settings))
    tell("models of the rates, rank correlations")
    models, notes = cause_models(trace, found, confidence)
    return TraceReport(
        tasks=len(trace),
        users=len(trace.users),
        end_s=trace.end_s,
        statuses=trace.statuses,
        censored=trace.censored,
        left_out=trace.left_out,
        unknown_gpus=hours.unknown_gpus,
        settings=settings,
        whole=whole,
        factors=corrected(reports),
        absent=absent,
        models=tuple(models),
        correlations=tuple(correlations(trace, found, confidence)),
        classic=classic_view(table) if classic else None,
        notes=(*_NOTES, *notes),
    )


def _check_top(top: int) -> None:
    check_count("top", top, least=1, error=FleetError)
    if top > _MOST_GROUPS:
        raise FleetError(f"The {top:,} largest groups were asked for; accepted are at most {_MOST_GROUPS:,}.")


def _settings(times_s: Sequence[float] | None, confidence: float, resamples: int, seed: int) -> Settings:
    """Return the settings; no times where the usual ones are wanted."""
    if not 0.5 <= confidence < 1:
        raise FleetError(f"A confidence of {confidence:g} was asked for; accepted is from 0.5, below 1.")
    check_count("resamples", resamples, least=100, error=FleetError)
    if resamples > _MOST_RESAMPLES:
        raise FleetError(f"{resamples:,} resamples were asked for; accepted are at most {_MOST_RESAMPLES:,}.")
    check_count("seed", seed, least=0, error=FleetError)
    if times_s is not None and not (len(times_s) and all(np.isfinite(time) and time > 0 for time in times_s)):
        asked = ", ".join(f"{time / 3600:g}" for time in times_s) or "no"
        raise FleetError(f"Shares were asked for after {asked} hours; times above 0 are needed.")
    return Settings(tuple(sorted(set(map(float, times_s or ())))), confidence, resamples, seed)


def _usual_times(trace: ObservedTrace) -> tuple[float, ...]:
    """Return the usual times that the trace saw tasks for, the median where it saw none for an hour."""
    seen = tuple(time for time in _TIMES_S if time <= trace.duration_s[-1])
    return seen or (float(np.median(trace.duration_s)),)
