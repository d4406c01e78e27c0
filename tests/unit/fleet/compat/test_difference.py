from __future__ import annotations

from pathlib import Path

import pytest

from deep500.fleet.compat.difference import compare, outcomes_of
from deep500.fleet.outcome import Outcome
from deep500.fleet.outcome_table import OutcomeTable
from tests.unit.fleet.compat.support import campaign_of, cell


def table(*said: tuple[str, str, str | None]) -> OutcomeTable:
    return OutcomeTable.from_outcomes(Outcome(key, "c", status, cause) for key, status, cause in said)


@pytest.mark.parametrize(
    ("old", "new", "kind", "regressed"),
    [
        (("passed", None), ("failed", "import: x"), "broken", True),
        (("passed", None), ("timeout", "x"), "broken", True),
        (("passed", None), ("no_match", "x"), "broken", True),
        (("passed", None), ("missing", "pending"), "no verdict", True),
        (("passed", None), ("cancelled", "x"), "no verdict", True),
        (("failed", "a"), ("passed", None), "repaired", False),
        (("failed", "a"), ("timeout", "b"), "status", False),
        (("failed", "a"), ("failed", "b"), "cause", False),
    ],
)
def test_kinds(old: tuple[str, str | None], new: tuple[str, str | None], kind: str, regressed: bool) -> None:
    difference = compare(table(("a", *old)), table(("a", *new)))
    assert [change.kind for change in difference.changes] == [kind]
    assert difference.regressed is regressed


def test_new_gone_and_same() -> None:
    difference = compare(
        table(("same", "failed", "x"), ("gone", "passed", None)), table(("same", "failed", "x"), ("new", "failed", "y"))
    )
    assert [(change.cell, change.kind) for change in difference.changes] == [("new", "new"), ("gone", "gone")]
    assert difference.same == 1
    assert not difference.regressed
    assert difference.to_dict()["changes"][0] == {
        "cell": "new",
        "kind": "new",
        "old": None,
        "new": {"status": "failed", "cause": "y"},
    }


def test_what_broke_comes_first() -> None:
    old = table(*((key, "passed", None) for key in "abc"))
    new = table(("a", "missing", "pending"), ("b", "passed", None), ("c", "failed", "x"))
    assert [change.cell for change in compare(old, new).changes] == ["c", "a"]


def test_the_last_of_several_runs_counts() -> None:
    runs = [Outcome("a", "c", status, ended=ended) for status, ended in (("passed", 20.0), ("failed", 10.0))]
    twice = OutcomeTable.from_outcomes(runs)
    difference = compare(table(("a", "passed", None)), twice)
    assert (difference.changes, difference.same, difference.repeated) == ((), 1, 1)


def test_a_folder_or_a_table(tmp_path: Path) -> None:
    campaign_of(tmp_path, cell())
    found, _ = outcomes_of(tmp_path / "campaign")
    assert [outcome.status for outcome in found.outcomes()] == ["missing"]
    again, _ = outcomes_of(tmp_path / "campaign" / "outcomes.jsonl")
    assert list(again.outcomes()) == list(found.outcomes())
