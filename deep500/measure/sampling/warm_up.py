"""Warming up: runs that do not count, until the times keep one level or there is no more time to find out."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from deep500.measure.clock import now_ns
from deep500.measure.sampling.plan import SamplingPlan
from deep500.measure.statistics.steady_state import detectable_length, steady_state

__all__ = ["WarmUp", "steadiness", "warm_up"]

#: Rounds at the first look, and the fewest that must fit into the time: a change shows among 52 at the earliest.
_FIRST_LOOK, _FEWEST = 100, 60

#: Factor from one look to the next.
_GROWTH = 1.5

#: Rounds from which the costs of a round are estimated; the first may compile and load.
_TRIAL = 3

#: Longest series that is examined sample by sample; a longer one by the medians of blocks.
_LONGEST = 1000


@dataclass(frozen=True)
class WarmUp:
    """The rounds of a warm-up.

    Attributes:
        columns: Seconds a run, for each workload in order.
        reason: How its end was found, for people.
    """

    columns: list[list[float]]
    reason: str


def warm_up(
    once: Callable[[], list[float]],
    choose_calls: Callable[[Sequence[float]], None],
    plan: SamplingPlan,
    tell: Callable[[str, int, str], None],
) -> WarmUp:
    """Run rounds that do not count.

    After a few rounds it is known how many runs make a sample. Then rounds are added until every series ends steady
    (:func:`deep500.measure.statistics.steady_state`), or ``plan.warm_up_time_s`` is over: "no steady state" is a
    possible answer. Where so few rounds fit into that time that no change of level could be seen, a quarter of it is
    spent and the answer is that nothing was examined.

    Args:
        once: Runs one round and returns the seconds a run of each workload.
        choose_calls: Is given typical seconds a run of each workload, before any sample counts.
        plan: The settings.
        tell: Is told how far it is.
    """
    start_ns = now_ns()

    def elapsed_s() -> float:
        return (now_ns() - start_ns) * 1e-9

    table = [once()]
    while len(table) < _TRIAL and elapsed_s() < plan.warm_up_time_s / 4 and plan.warm_up is None:
        table.append(once())
    choose_calls([min(column) for column in zip(*table)])
    # From here on samples may be of several runs, so those before tell nothing about the level.
    first = len(table)
    before_s = elapsed_s()
    if plan.warm_up is not None:
        table += [once() for _ in range(plan.warm_up - len(table))]
        return _finished(table, f"a warm-up of {len(table)} samples was asked for")
    table.append(once())
    round_s = elapsed_s() - before_s
    if round_s * _FEWEST > plan.warm_up_time_s:
        while elapsed_s() + round_s <= plan.warm_up_time_s / 4:
            table.append(once())
        return _finished(table, f"a warm-up of {len(table)} samples was not examined: runs are too long")
    look = _FIRST_LOOK
    while True:
        while len(table) - first < look and elapsed_s() < plan.warm_up_time_s:
            table.append(once())
        if detectable_length(len(table) - first) is None:
            return _finished(table, f"a warm-up of {len(table)} samples was not examined: runs became too long")
        answers = [steady_state(column[first:]) for column in zip(*table)]
        tell("warm-up", len(table), answers[0].reason)
        # A steady part that is too short for a change to show in it proves nothing.
        if all(a.start is not None and detectable_length(a.samples - a.start) is not None for a in answers):
            return _finished(table, f"warm after {len(table)} samples")
        if elapsed_s() >= plan.warm_up_time_s or look > _LONGEST:
            return _finished(table, f"no steady state within {len(table)} samples of warm-up")
        look = math.ceil(look * _GROWTH)


def steadiness(samples: Sequence[float]) -> tuple[bool | None, str]:
    """Return whether samples keep one level, and what was found; ``None`` when they are too few to tell."""
    row = np.asarray(samples, dtype=np.float64)
    if len(row) > _LONGEST:
        size = math.ceil(len(row) / _LONGEST)
        row = np.median(row[: len(row) // size * size].reshape(-1, size), axis=1)
    if detectable_length(len(row)) is None:
        return None, f"{len(samples)} samples are too few to see a change of level"
    found = steady_state(row)
    if found.start == 0:
        return True, "the samples keep one level"
    if found.start is None:
        return False, "the samples keep no level"
    return False, f"the samples keep one level only from {found.start / len(row):.0%} of them on"


def _finished(table: list[list[float]], reason: str) -> WarmUp:
    return WarmUp([list(column) for column in zip(*table)], reason)
