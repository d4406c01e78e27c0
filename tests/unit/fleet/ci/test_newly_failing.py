from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from deep500.fleet.ci.newly_failing import FOREVER, lives, newly_failing
from tests.unit.fleet.ci.support import history_from

N = np.nan
MATRICES = arrays(
    np.float32, st.tuples(st.integers(1, 15), st.integers(1, 4)), elements=st.sampled_from([0, 1, np.nan])
)


def test_new_is_what_passed_when_last_it_had_a_result() -> None:
    column = [0, 1, 0, 0, N, 0, 1, N, 0, 1]
    new = [0, 0, 1, 0, 0, 0, 0, 0, 1, 0]
    made = newly_failing(history_from(np.array([column, [N, *column[:-1]]]).T))

    np.testing.assert_array_equal(made[:, 0], np.array(new, dtype=bool))
    np.testing.assert_array_equal(made[:, 1], np.array([0, *new[:-1]], dtype=bool))


def test_a_failure_that_passed_when_run_again_says_nothing() -> None:
    history = history_from(np.array([[1], [0], [0]]))
    failures = history.failures.copy()
    failures[1] = False
    np.testing.assert_array_equal(newly_failing(replace(history, failures=failures))[:, 0], [False, False, True])


@settings(max_examples=60, deadline=None)
@given(MATRICES)
def test_new_commit_by_commit(results: np.ndarray) -> None:
    made = newly_failing(history_from(results))
    for job in range(results.shape[1]):
        last = N
        for commit in range(results.shape[0]):
            value = results[commit, job]
            assert made[commit, job] == (value == 0 and last == 1)
            last = value if not np.isnan(value) else last


@settings(max_examples=60, deadline=None)
@given(MATRICES)
def test_lives_commit_by_commit(results: np.ndarray) -> None:
    history = history_from(results)
    broken = newly_failing(history)
    rows = np.flatnonzero(broken.any(1))
    made = lives(history, rows, broken[rows])
    for place, row in enumerate(rows):
        ends = []
        for job in np.flatnonzero(broken[row]):
            passing = [later for later in range(row + 1, len(results)) if results[later, job] == 1]
            ends.append(passing[0] if passing else None)
        expected = FOREVER if None in ends else max(ends) - row  # type: ignore[type-var]
        assert made[place] == expected
