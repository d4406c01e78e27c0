"""Commits that break something, and how long what they broke stays broken."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from deep500.fleet.ci.history import History

__all__ = ["lives", "newly_failing"]

#: What :func:`lives` returns for what is never seen to pass again.
FOREVER = np.iinfo(np.int64).max


def newly_failing(history: History) -> NDArray[np.bool_]:
    """Return where a job fails that passed when last it had a result, [C, J].

    A commit is newly failing when that is so of at least one job. What failed and passed when it was run again is no
    failure, and says nothing about the job's state either; a job's first result, and one that follows a failure, is
    never new.
    """
    states = _states(history)
    before = np.full_like(states, np.nan)
    before[1:] = _last_known(states)[:-1]
    return np.asarray(history.failures & (before == 1))


def lives(history: History, rows: NDArray[np.intp], broken: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return for how many commits what each newly failing commit broke stays broken.

    Args:
        history: The history.
        rows: The places of the commits, [n].
        broken: What each of them broke, of the jobs that count, [n, J].

    Returns:
        Commits from the one that broke it up to that at which the last of its jobs passes again, [n];
        :data:`FOREVER` where the history ends before.
    """
    states = _states(history)
    count = len(states)
    places = np.where(states == 1, np.arange(count)[:, None], count)
    following = np.full((count + 1, states.shape[1]), count)
    following[:count] = np.minimum.accumulate(places[::-1], axis=0)[::-1]
    ends = np.where(broken, following[rows + 1], -1).max(axis=1, initial=-1)
    return np.where(ends == count, FOREVER, ends - rows).astype(np.int64)


def _states(history: History) -> NDArray[np.float32]:
    """Return the results without failures that are none to find."""
    return np.where((history.results == 0) & ~history.failures, np.float32(np.nan), history.results)


def _last_known(states: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the last value of each column up to each row that is not NaN; NaN before the first."""
    if not len(states):
        return states
    rows = np.where(np.isnan(states), 0, np.arange(len(states), dtype=np.int32)[:, None])
    known: NDArray[np.float32] = np.take_along_axis(states, np.maximum.accumulate(rows, axis=0), axis=0)
    return known
