from __future__ import annotations

from pathlib import Path

import pytest

from deep500.core.errors import FleetError
from deep500.fleet.outcome import Outcome
from deep500.fleet.outcome_table import OutcomeTable
from deep500.fleet.reading import read_outcomes
from deep500.fleet.shard.cases import Case, Needs, cases_of_outcomes, cases_of_times, node_id
from tests.unit.fleet.shard.support import SUITE, run_pytest


def outcome(key: str, group: str, seconds: float | None, status: str = "passed", **labels: float) -> Outcome:
    started, ended = (None, None) if seconds is None else (100.0, 100.0 + seconds)
    return Outcome(key, group, status, started=started, ended=ended, labels=labels)


def test_the_median_of_what_ran_to_its_end_counts() -> None:
    table = OutcomeTable.from_outcomes(
        [
            outcome("a.py::t", "1", 10),
            outcome("a.py::t", "2", 45, "failed"),
            outcome("a.py::t", "3", 20),
            outcome("a.py::t", "4", 9999, "timeout"),
            outcome("a.py::t", "5", 1, "cancelled"),
            outcome("b.py::t", "1", None),
            outcome("c.py::t", "1", 5, "timeout"),
        ]
    )
    assert cases_of_outcomes(table) == [
        Case("a.py::t", 20, runs=3, failures=1),
        Case("b.py::t", None, runs=1),
        Case("c.py::t", None),
    ]


def test_what_was_used_counts_before_what_is_declared() -> None:
    table = OutcomeTable.from_outcomes(
        [
            outcome("over", "1", 1, gpus_declared=4.0, gpus_used=2.0),
            outcome("over", "2", 1, gpus_declared=4.0, gpus_used=1.0),
            outcome("unseen", "1", 1, gpus_declared=4.0),
            outcome("lost", "1", None, "no_match", gpus_declared=2.0, gpus_needed=8.0),
            Outcome("of its job", "1", "passed", gpus=3),
            outcome("nothing", "1", 1),
        ]
    )
    assert [case.gpus for case in cases_of_outcomes(table)] == [2, 4, 8, 3, 1]
    assert [case.declared for case in cases_of_outcomes(table)] == [4, 4, 2, None, None]
    assert [case.gpus for case in cases_of_outcomes(table, count="declared")] == [4, 4, 8, 3, 1]
    needs = Needs(["*=16", "over=5"])
    assert [case.gpus for case in cases_of_outcomes(table, needs)] == [5, 16, 16, 16, 16]
    with pytest.raises(FleetError, match="used and declared"):
        cases_of_outcomes(table, count="both")


@pytest.mark.parametrize("text", ["", "4", "=4", "a=", "a=x", "a=-1"])
def test_needs_that_are_none(text: str) -> None:
    with pytest.raises(FleetError, match="PATTERN=N"):
        Needs([text])


def test_times() -> None:
    assert cases_of_times({"a": 1.0, "b": None}, Needs(["b=2"])) == [Case("a", 1.0), Case("b", None, 2)]


@pytest.mark.parametrize(
    ("key", "file", "expected"),
    [
        ("a/test_x.py::test_y", None, "a/test_x.py::test_y"),
        ("tests.unit.test_x::test_y[a.b::c]", None, "tests/unit/test_x.py::test_y[a.b::c]"),
        ("tests.x_test.TestA.TestB::test_y", None, "tests/x_test.py::TestA::TestB::test_y"),
        ("tests.odd.TestA::test_y", "tests/odd.py", "tests/odd.py::TestA::test_y"),
        ("other.TestA::test_y", "tests/odd.py", "other.TestA::test_y"),
        ("suite::case", None, "suite::case"),
        ("job / with words", None, "job / with words"),
    ],
)
def test_node_ids(key: str, file: str | None, expected: str) -> None:
    assert node_id(key, file) == expected


@pytest.mark.parametrize("family", ["xunit1", "xunit2"])
def test_node_ids_of_junit_files_are_those_of_pytest(tmp_path: Path, family: str) -> None:
    folder = tmp_path / "inner"
    folder.mkdir()
    (folder / "test_suite.py").write_text(SUITE)
    run_pytest(tmp_path, "--max-gpus", "2", "--junitxml", "junit.xml", "-o", f"junit_family={family}")
    cases = cases_of_outcomes(read_outcomes([tmp_path / "junit.xml"])[0])
    collected = run_pytest(tmp_path, "--collect-only", "-q", "--max-gpus", "9").stdout.split()
    assert {case.name for case in cases} == {name for name in collected if "::" in name}
    needs = {case.name.rpartition("::")[2]: case.gpus for case in cases}
    assert needs["test_function"] == 4
    assert needs["test_parameters[2]"] == 3


def test_what_is_to_count_is_one_of_two_words() -> None:
    with pytest.raises(FleetError, match="accepted are used and declared"):
        cases_of_outcomes(OutcomeTable.from_outcomes([Outcome("a", "1", "passed")]), count="nonsense")
