from __future__ import annotations

import numpy as np
import pytest

from deep500.core.errors import FleetError
from deep500.fleet.ci.generating import generate_history
from deep500.fleet.ci.history import history_of
from deep500.fleet.outcome import Outcome
from deep500.fleet.outcome_table import OutcomeTable
from tests.unit.fleet.ci.support import table_of

NAN = np.nan


def test_only_passed_and_failed_are_results() -> None:
    others = ("no_match", "environment", "unreachable", "timeout", "cancelled", "missing")
    history = history_of(
        table_of(
            ("c1", "a", "passed"), ("c1", "b", "failed"), *(("c2", f"{s}", s) for s in others), ("c3", "a", "failed")
        )
    )

    assert history.commits == ("c1", "c2", "c3")
    assert history.jobs == tuple(sorted(("a", "b", *others)))
    assert history.judged.sum() == 3
    np.testing.assert_array_equal(history.results[:, 0], [1, NAN, 0])
    assert history.failures.sum() == 2


@pytest.mark.parametrize(
    ("results", "result", "is_failure", "is_flaky"),
    [
        (["failed", "passed"], 1, False, True),
        (["passed", "failed"], 0, True, True),
        (["failed", "failed"], 0, True, False),
        (["failed", "passed", "failed"], 0, False, True),  # a rerun passed
        (["failed", "cancelled"], 0, True, False),
        (["passed", "missing"], 1, False, False),
    ],
)
@pytest.mark.parametrize("timed", [True, False])
def test_of_reruns_the_last_counts(
    results: list[str], result: int, is_failure: bool, is_flaky: bool, timed: bool
) -> None:
    outcomes = [
        Outcome("a", "c1", status, started=float(number) if timed else None) for number, status in enumerate(results)
    ]
    shuffled = outcomes[::-1] if timed else outcomes  # with times, the order of the file says nothing
    history = history_of(OutcomeTable.from_outcomes(shuffled))

    assert history.results[0, 0] == result
    assert history.failures[0, 0] == is_failure
    assert history.flaky[0, 0] == is_flaky
    assert history.reruns[0, 0] == (sum(status in ("passed", "failed") for status in results) > 1)
    assert history.flaky_rates()[0] == float(is_flaky)


def test_where_one_rerun_has_no_time_the_order_of_the_file_counts() -> None:
    outcomes = [Outcome("a", "c1", "failed", started=9.0), Outcome("a", "c1", "passed")]
    assert history_of(OutcomeTable.from_outcomes(outcomes)).results[0, 0] == 1
    newest_first = history_of(OutcomeTable.from_outcomes(outcomes), order="reversed")
    assert newest_first.results[0, 0] == 0


def test_commits_are_ordered_by_their_earliest_time() -> None:
    outcomes = [
        Outcome("a", "late", "passed", submitted=5.0),
        Outcome("a", "early", "passed", started=2.0),
        Outcome("b", "late", "failed", submitted=9.0),
        Outcome("b", "first", "failed", ended=1.0),
    ]
    table = OutcomeTable.from_outcomes(outcomes)

    assert history_of(table).commits == ("first", "early", "late")
    assert history_of(table).order == "time"
    assert history_of(table, order="file").commits == ("late", "early", "first")
    assert history_of(table, order="reversed").commits == ("first", "early", "late")
    unknown = OutcomeTable.from_outcomes([*outcomes, Outcome("a", "whenever", "passed")])
    history = history_of(unknown)
    assert (history.order, history.commits[-1]) == ("file", "whenever")
    assert "no time" in history.notes[0]


def test_merged_jobs_failed_where_any_did() -> None:
    history = history_of(
        table_of(
            ("c1", "x_build", "passed"), ("c1", "x_test", "failed"),
            ("c2", "x_build", "passed"), ("c2", "x_test", "passed"), ("c2", "y-test", "passed"),
            ("c3", "x_build", "failed"), ("c3", "x_test", "cancelled"),
            ("c4", "x_multigpu_test", "cancelled"),
        ),
        merge="seed",
    )  # fmt: skip

    assert history.jobs == ("x", "y")
    np.testing.assert_array_equal(history.results[:, 0], [0, 1, 0, NAN])
    np.testing.assert_array_equal(history.failures[:, 0], [True, False, True, False])


def test_merged_costs_are_added() -> None:
    outcomes = [
        Outcome("x_build", "c1", "passed", cost=1.0),
        Outcome("x_test", "c1", "failed", cost=2.0),
        Outcome("x_test", "c1", "passed", cost=4.0),
        Outcome("x_test", "c2", "cancelled", cost=100.0),
    ]
    history = history_of(OutcomeTable.from_outcomes(outcomes), merge="seed")
    np.testing.assert_array_equal(history.costs, [[4.0], [NAN]])  # of a run: 1 + the mean of 2 and 4


def test_tests_without_a_build_are_missing() -> None:
    table = table_of(
        ("c1", "x_build", "failed"), ("c1", "x_test", "failed"), ("c1", "x_NO_AVX2_test", "failed"),
        ("c1", "y-test", "failed"), ("c1", "docs", "passed"),
        ("c2", "x_build", "passed"), ("c2", "x_test", "failed"), ("c2", "y-test", "passed"),
        ("c3", "z / build", "failed"), ("c3", "z / test (1)", "failed"),
    )  # fmt: skip
    tests = history_of(table, only="tests")
    by_job = dict(zip(tests.jobs, tests.results.T, strict=True))

    assert tests.jobs == ("x_NO_AVX2_test", "x_test", "y-test", "z / test (1)")
    np.testing.assert_array_equal(by_job["x_test"], [NAN, 0, NAN])
    np.testing.assert_array_equal(by_job["x_NO_AVX2_test"], [NAN, NAN, NAN])
    np.testing.assert_array_equal(by_job["y-test"], [0, 1, NAN])
    np.testing.assert_array_equal(by_job["z / test (1)"], [NAN, NAN, NAN])
    assert tests.notes[-1].endswith("failed at that commit: 3.")
    assert history_of(table, only="builds").jobs == ("x_build", "z / build")
    assert history_of(table, only="tests", test_patterns=["docs"]).jobs == ("docs",)


def test_only_jobs_of_the_last_commit() -> None:
    table = table_of(
        ("c1", "old", "passed"), ("c1", "a_build", "passed"), ("c2", "a_build", "cancelled"), ("c2", "b", "failed")
    )
    history = history_of(table, latest=True)
    assert history.jobs == ("a_build", "b")
    assert history.notes[-1] == "Jobs that the last commit did not run, which were left out: 1."
    assert history_of(table, latest=True, merge="seed").jobs == ("a", "b")


def test_the_order_of_rows_says_nothing_where_there_are_times() -> None:
    table, _ = generate_history(commits=40, groups=2, jobs_per_group=2, flaky_rate=0.1, missing_rate=0.1, seed=3)
    shuffled = OutcomeTable(table.frame.sample(fraction=1.0, shuffle=True, seed=1))
    first, second = history_of(table), history_of(shuffled)

    assert (first.commits, first.jobs) == (second.commits, second.jobs)
    for name in ("results", "failures", "flaky", "reruns", "costs"):
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name), err_msg=name)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"merge": "sead"}, "Did you mean 'seed'"),
        ({"only": "test"}, "Did you mean 'tests'"),
        ({"order": "size"}, "Accepted: time, file, reversed"),
        ({"only": "builds"}, "None of the 1 jobs, such as 'a', is one of the builds"),
    ],
)
def test_mistakes(options: dict[str, str], message: str) -> None:
    with pytest.raises(FleetError, match=message.replace("(", r"\(")):
        history_of(table_of(("c1", "a", "passed")), **options)  # type: ignore[arg-type]


def test_what_is_said_of_it() -> None:
    history = history_of(table_of(("c1", "a", "passed"), ("c1", "a", "failed"), ("c2", "b", "passed")))
    assert history.to_dict() == {
        "commits": 2, "jobs": 2, "order": "time", "results": 2, "missing_share": 0.5, "failed": 1,
        "failures_to_find": 1, "rerun": 1, "flaky": 1, "notes": [],
    }  # fmt: skip
