"""What goes with the rates of failing and of succeeding, each with the others held fixed: Cox models of a trace."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student

from deep500.core.errors import FleetError
from deep500.core.texts import escaped
from deep500.fleet.trace.cox import CoxFit, critical, fit_cox, proportionality
from deep500.fleet.trace.factors import FoundFactor
from deep500.fleet.trace.observed import FAILED, PASSED, ObservedTrace
from deep500.fleet.trace.survival import FEWEST_CLUSTERS, distinct
from deep500.measure.statistics import holm

__all__ = ["CauseModel", "Effect", "SplitEffect", "cause_models"]

#: Of each cause, so many ends make a group a covariate, and so many per covariate a model.
_FEWEST_EVENTS = 10

#: A factor that is missing for more than this share of the tasks would cost the model too many of them.
_MOST_MISSING = 0.5


#: A covariate of which the others leave less than this share of the variance is told by them.
_SAME = 1e-8

#: Of one of which they leave less than this, the effect is told badly.
_ALIKE = 0.05

#: The logarithm of the largest number.
_LARGEST = math.log(sys.float_info.max)


@dataclass(frozen=True)
class Effect:
    """By what a rate is multiplied.

    Attributes:
        covariate: Of what.
        unit: For which change of it.
        ratio: The factor of the rate.
        low: The lower end of its interval, over users.
        high: The upper end.
        p_value: p-value of a factor of 1.
        adjusted_p: The same after Holm's correction for all effects on all causes.
        proportional_p: p-value of the factor being the same early and late.
        proportional_adjusted_p: The same after Holm's correction for the covariates of one cause.
    """

    covariate: str
    unit: str
    ratio: float
    low: float
    high: float
    p_value: float
    adjusted_p: float
    proportional_p: float
    proportional_adjusted_p: float


@dataclass(frozen=True)
class SplitEffect:
    """By what a rate is multiplied early and late.

    Attributes:
        covariate: Of what.
        early: The factor before the split, with the ends of its interval.
        late: The factor after it.
        change: The late factor over the early one.
        adjusted_p: p-value of a change of 1, after Holm's correction for the covariates.
        verdict: ``changes`` where that tells a change, else ``undecided``.
    """

    covariate: str
    early: tuple[float, float, float]
    late: tuple[float, float, float]
    change: tuple[float, float, float]
    adjusted_p: float
    verdict: str


@dataclass(frozen=True)
class CauseModel:
    """The model of one cause.

    Attributes:
        cause: ``failed`` or ``passed``.
        tasks: The number of tasks that it is fitted on.
        events: How many of them ended by the cause.
        users: The number of users.
        converged: Whether the search for the effects came to an end.
        effects: By what the rate is multiplied.
        proportional: Whether no effect was found to change over time.
        split_s: Where time was split since some did; ``None`` where it was not.
        split: The effects before and after.
        notes: What is to be known of it.
    """

    cause: str
    tasks: int
    events: int
    users: int
    converged: bool
    effects: tuple[Effect, ...]
    proportional: bool
    split_s: float | None
    split: tuple[SplitEffect, ...]
    notes: tuple[str, ...]


@dataclass
class _Covariates:
    names: list[str]
    units: list[str]
    columns: list[NDArray[np.float64]]
    keep: NDArray[np.bool_]
    notes: list[str]


def cause_models(
    trace: ObservedTrace, factors: Sequence[FoundFactor], confidence: float = 0.95
) -> tuple[list[CauseModel], list[str]]:
    """Return the models of failing and of succeeding, on all tasks whose factors are known.

    Numbers enter by their logarithm to base 2: an effect is that of doubling them. Names enter against the most common
    one. Users are no covariate: the errors take the tasks of each together.

    Returns:
        The models, and why there is none where there is none.
    """
    taken = _covariates(trace, factors)
    notes = list(taken.notes)
    rows = np.flatnonzero(taken.keep)
    if not taken.names or not len(rows):
        return [], [*notes, "There is no Cox model: no factor is known of enough tasks and differs between them."]
    x = np.stack([column[rows] for column in taken.columns]).T
    taken.columns.clear()
    duration, user, event = trace.duration_s[rows], trace.user[rows], trace.event[rows]
    users = distinct(user)
    if users < FEWEST_CLUSTERS:
        notes.append(_few_users(users))
        user = np.arange(len(rows))
    told = _independent(x)
    same = [name for place, name in enumerate(taken.names) if place not in told]
    if same:
        notes.append(f"No covariate, since constant or told by the others: {', '.join(same)}.")
    names, units = [taken.names[j] for j in told], [taken.units[j] for j in told]
    x = x[:, told]
    alike = _alike(x)
    if alike:
        notes.append(
            f"Hardly to be told apart, since the others leave less than {_ALIKE:.0%} of their variance: "
            f"{', '.join(names[j] for j in alike)}. Their effects have wide intervals; the others' are not touched."
        )
    fits: dict[str, CoxFit] = {}
    for cause, code in (("failed", FAILED), ("passed", PASSED)):
        ended = event == code
        if not names or ended.sum() < _FEWEST_EVENTS * len(names):
            notes.append(
                f"There is no Cox model of {cause}: {int(ended.sum())} such ends, and {len(names)} covariates need "
                f"{_FEWEST_EVENTS} each."
            )
            continue
        try:
            fits[cause] = fit_cox(duration, ended, x, names, user)
        except FleetError as error:
            notes.append(f"There is no Cox model of {cause}: {error}")
    if not fits:
        return [], notes
    adjusted = holm(np.concatenate([fit.p_values for fit in fits.values()])).adjusted
    models = []
    for place, (cause, fit) in enumerate(fits.items()):
        code = FAILED if cause == "failed" else PASSED
        corrected = adjusted[place * len(names) : (place + 1) * len(names)]
        model = _model(cause, fit, units, corrected, (duration, event == code, x, user), confidence)
        models.append(replace(model, users=users))
    return models, notes


def _few_users(users: int) -> str:
    return (
        f"The errors of the Cox models take tasks as independent, for they are of {users} "
        f"{'user' if users == 1 else 'users'}, and errors over users need {FEWEST_CLUSTERS}: they may be too small."
    )


def _covariates(trace: ObservedTrace, factors: Sequence[FoundFactor]) -> _Covariates:
    taken = _Covariates([], [], [], np.ones(len(trace), dtype=bool), [])
    for found in factors:
        if found.factor.name == "user":
            continue
        if found.values is not None:
            known = np.isfinite(found.values) & (np.nan_to_num(found.values) > 0)
            if not _enough(known, found, taken):
                continue
            taken.keep &= known
            taken.names.append(found.factor.name)
            taken.units.append("doubling")
            taken.columns.append(np.log2(np.where(known, found.values, 1.0)))
        else:
            _indicators(trace, found, taken)
    lost = int((~taken.keep).sum())
    if lost:
        taken.notes.append(f"{lost:,} tasks of which a covariate is missing or not above 0 are not in the Cox models.")
    return taken


def _independent(x: NDArray[np.float64]) -> list[int]:
    """Return the columns that vary and are no sum of those before them."""
    varied = [int(j) for j in np.flatnonzero(np.ptp(x, axis=0) > 0)]
    kept: list[int] = []
    if varied:
        related = np.atleast_2d(np.corrcoef(x[:, varied], rowvar=False))
        for j in range(len(varied)):
            among = related[np.ix_(kept, kept)]
            own = 1.0 - (related[j, kept] @ np.linalg.solve(among, related[kept, j]) if kept else 0.0)
            if own > _SAME:
                kept.append(j)
    return [varied[j] for j in kept]


def _alike(x: NDArray[np.float64]) -> list[int]:
    """Return the columns of which the others leave little."""
    if x.shape[1] < 2:
        return []
    left = 1.0 / np.diag(np.linalg.inv(np.corrcoef(x, rowvar=False)))
    return [int(j) for j in np.flatnonzero(left < _ALIKE)]


def _indicators(trace: ObservedTrace, found: FoundFactor, taken: _Covariates) -> None:
    """Add a covariate for each name but the most common one."""
    size = len(found.groups)
    known = found.codes >= 0
    if not _enough(known, found, taken):
        return
    ends = [np.bincount(found.codes[known & (trace.event == code)], minlength=size) for code in (FAILED, PASSED)]
    rare = np.flatnonzero(np.minimum(*ends) < _FEWEST_EVENTS)
    common = [code for code in np.argsort(-np.bincount(found.codes[known], minlength=size)) if code not in rare]
    if len(common) < 2:
        taken.notes.append(
            f"{found.factor.title} is no covariate: fewer than two of its groups have {_FEWEST_EVENTS} that failed and "
            f"{_FEWEST_EVENTS} that passed."
        )
        return
    if len(rare):
        names = ", ".join(escaped(found.groups[code]) for code in rare)
        taken.notes.append(
            f"{found.factor.title} {names}: fewer than {_FEWEST_EVENTS} failed or passed, so that no effect can be "
            f"told; their tasks are not in the Cox models."
        )
    taken.keep &= known & ~np.isin(found.codes, rare)
    for code in sorted(common[1:]):
        taken.names.append(f"{found.factor.name}={found.groups[code]}")
        taken.units.append(f"against {found.groups[common[0]]}")
        taken.columns.append((found.codes == code).astype(np.float64))


def _enough(known: NDArray[np.bool_], found: FoundFactor, taken: _Covariates) -> bool:
    missing = 1 - float(known.mean())
    if missing > _MOST_MISSING:
        taken.notes.append(
            f"{found.factor.title} is no covariate: it is missing or not above 0 for {missing:.0%} of the tasks."
        )
    return missing <= _MOST_MISSING


_Rows = tuple[NDArray[np.float64], NDArray[np.bool_], NDArray[np.float64], NDArray[np.int64]]


def _model(
    cause: str, fit: CoxFit, units: list[str], adjusted: NDArray[np.float64], rows: _Rows, confidence: float
) -> CauseModel:
    low, high = fit.interval(confidence)
    trends = proportionality(fit)
    corrected = holm([trend.p_value for trend in trends], 1 - confidence)
    effects = tuple(
        Effect(
            covariate=name,
            unit=units[j],
            ratio=_exp(fit.coefficients[j]),
            low=_exp(low[j]),
            high=_exp(high[j]),
            p_value=float(fit.p_values[j]),
            adjusted_p=float(adjusted[j]),
            proportional_p=trends[j].p_value,
            proportional_adjusted_p=float(corrected.adjusted[j]),
        )
        for j, name in enumerate(fit.names)
    )
    changing = bool(corrected.rejected.any())
    notes: list[str] = []
    split_s: float | None = None
    split: tuple[SplitEffect, ...] = ()
    if not fit.converged:
        notes.append("The search for the effects did not come to an end: do not believe them.")
    if changing:
        try:
            split_s, split = _split(fit, rows, confidence)
        except FleetError as error:
            notes.append(f"Some effects change over time, and they cannot be told for early and late alone: {error}")
    return CauseModel(
        cause, fit.rows, fit.events, fit.clusters, fit.converged, effects, not changing, split_s, split, tuple(notes)
    )


def _split(fit: CoxFit, rows: _Rows, confidence: float) -> tuple[float, tuple[SplitEffect, ...]]:
    """Fit the model before and after the median end, and compare: each cluster's influence is known in both."""
    duration, ended, x, user = rows
    at = float(np.median(fit.event_times))
    after = duration > at
    early = fit_cox(np.minimum(duration, at), ended & ~after, x, fit.names, user)
    late = fit_cox(duration[after], ended[after], x[after], fit.names, user[after])
    influences = np.zeros((len(early.influences), len(fit.names), 2))
    influences[:, :, 0] = early.influences
    influences[: len(late.influences), :, 1] = late.influences
    spread = np.sqrt(((influences[:, :, 1] - influences[:, :, 0]) ** 2).sum(axis=0))
    clusters = min(early.clusters, late.clusters)
    spread *= math.sqrt(clusters / max(clusters - 1, 1))
    wide = critical(clusters, confidence) * spread
    change = late.coefficients - early.coefficients
    both = [_ratios(part.coefficients, *part.interval(confidence)) for part in (early, late)]
    changes = _ratios(change, change - wide, change + wide)
    told = holm(2 * student.sf(np.abs(change) / spread, clusters - 1), 1 - confidence)
    verdicts = ["changes" if rejected else "undecided" for rejected in told.rejected]
    return at, tuple(
        SplitEffect(name, both[0][j], both[1][j], changes[j], float(told.adjusted[j]), verdicts[j])
        for j, name in enumerate(fit.names)
    )


def _ratios(*logarithms: NDArray[np.float64]) -> list[tuple[float, float, float]]:
    return [(_exp(a), _exp(b), _exp(c)) for a, b, c in zip(*logarithms)]


def _exp(logarithm: float) -> float:
    """Return the factor of a logarithm; infinity where there is no number as large."""
    return math.exp(logarithm) if logarithm < _LARGEST else math.inf
