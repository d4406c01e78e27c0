from __future__ import annotations

import json
from pathlib import Path

import pytest

from deep500.core.errors import FleetError, UnknownNameError
from deep500.fleet.input_report import ProblemKind
from deep500.fleet.outcome import Outcome
from deep500.fleet.outcome_table import OutcomeTable
from deep500.fleet.reading import READERS, read_outcomes
from tests.conformance.outcome_readers.samples import read, told


def _write(path: Path, *outcomes: Outcome) -> Path:
    OutcomeTable.from_outcomes(outcomes).write(path)
    return path


def test_exact_copies_are_removed_and_reruns_stay(tmp_path: Path) -> None:
    one = Outcome("a", "g", "passed", started=1.0, ended=2.0)
    again = Outcome("a", "g", "failed", started=3.0, ended=4.0)
    frame, report = read(_write(tmp_path / "o.jsonl", one, again, one, one))

    assert frame["status"].to_list() == ["passed", "failed"]
    assert told(report) == {"duplicate": 2}


def test_copies_in_several_files_are_removed(tmp_path: Path) -> None:
    one = Outcome("a", "g", "passed", started=1.0, ended=2.0, labels={"os": "linux"})
    _write(tmp_path / "a.jsonl", one)
    _write(tmp_path / "b.parquet", one, Outcome("b", "g", "passed"))
    frame, report = read(tmp_path)

    assert frame["key"].to_list() == ["a", "b"]
    assert told(report) == {"duplicate": 1}


def test_file_that_is_named_twice_is_read_once(tmp_path: Path) -> None:
    path = _write(tmp_path / "o.jsonl", Outcome("a", "g", "passed"))
    table, report = read_outcomes([path, tmp_path, path])

    assert len(table) == 1
    assert report.count(ProblemKind.DUPLICATE) == 2
    assert {problem.effect for problem in report.problems} == {"the same file was read once"}


def test_clocks_that_run_backwards(tmp_path: Path) -> None:
    path = _write(
        tmp_path / "o.jsonl",
        Outcome("backwards", "g", "passed", submitted=0.0, started=5.0, ended=4.0),
        Outcome("early", "g", "passed", submitted=9.0, started=5.0, ended=6.0),
        Outcome("never", "g", "cancelled", submitted=9.0, ended=6.0),
        Outcome("right", "g", "passed", submitted=1.0, started=1.0, ended=1.0),
    )
    frame, report = read(path)

    assert frame.select("key", "submitted", "started", "ended", "cost").rows() == [
        ("backwards", 0.0, None, None, None),
        ("early", None, 5.0, 6.0, 1 / 3600),
        ("never", None, None, None, None),
        ("right", 1.0, 1.0, 1.0, 0.0),
    ]
    assert told(report) == {"clock skew": 3}


def test_numbers_that_are_none_or_cannot_be(tmp_path: Path) -> None:
    import polars as pl

    frame = pl.DataFrame(
        {"key": ["a", "b", "c"], "group": "g", "status": "passed", "started": [float("nan"), 1.0, float("inf")],
         "gpus": [1.0, -2.0, 0.0]}
    )  # fmt: skip
    frame.write_parquet(tmp_path / "o.parquet")
    read_again, report = read(tmp_path / "o.parquet")

    assert read_again["started"].to_list() == [None, 1.0, None]
    assert read_again["gpus"].to_list() == [1.0, None, 0.0]
    assert told(report) == {"malformed": 3}


def test_labels_of_several_kinds_become_texts_and_are_told(tmp_path: Path) -> None:
    _write(tmp_path / "a.jsonl", Outcome("a", "g", "passed", labels={"run": 7.0, "n": 1.0}))
    _write(tmp_path / "b.jsonl", Outcome("b", "g", "passed", labels={"run": "seven", "n": 2.0}))
    frame, report = read(tmp_path)

    assert frame["run"].to_list() == ["7.0", "seven"]
    assert frame["n"].to_list() == [1.0, 2.0]
    assert told(report) == {"malformed": 1}


def test_labels_of_several_kinds_in_one_file_become_texts_and_are_told(tmp_path: Path) -> None:
    lines = [{"x": 1, "n": 1, "b": True}, {"x": "one", "n": 2.5, "b": False}, {"x": True, "n": 10**30}]
    needed = {"key": "k", "group": "g", "status": "passed"}
    (tmp_path / "o.jsonl").write_text("\n".join(json.dumps({**needed, **line}) for line in lines))
    frame, report = read(tmp_path / "o.jsonl")

    assert frame.select("x", "n", "b").rows() == [("1", 1.0, True), ("one", 2.5, False), ("True", 1e30, None)]
    assert told(report) == {"malformed": 1}
    assert report.problems[0].examples == ["the label 'x'"]


def test_folder_is_searched_and_what_is_no_format_is_counted(tmp_path: Path) -> None:
    (tmp_path / "deep" / "deeper").mkdir(parents=True)
    (tmp_path / "deep" / "nothing").mkdir()
    _write(tmp_path / "deep" / "deeper" / "o.jsonl", Outcome("a", "g", "passed"))
    (tmp_path / "README.md").write_text("About these results.")
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / ".hidden").write_text("?")
    frame, report = read(tmp_path)

    assert frame.height == 1
    assert told(report) == {"unrecognised": 1, "empty": 2}
    unrecognised = next(p for p in report.problems if p.kind is ProblemKind.UNRECOGNISED)
    assert (unrecognised.source, unrecognised.examples) == (str(tmp_path), ["README.md"])


def test_format_that_is_named_takes_its_files_of_a_folder(tmp_path: Path) -> None:
    (tmp_path / "h.tsv").write_text("commit\ta\nc\tpass\n")
    (tmp_path / "words").write_text("commit\ta\nc\tmaybe\n")
    frame, report = read(tmp_path, "history")

    assert frame["status"].to_list() == ["passed", "missing"]
    assert told(report) == {"unknown status": 1}


@pytest.mark.parametrize(
    ("paths", "format", "message"),
    [
        ([], None, "No file was named"),
        (["", "x"], None, "empty text"),
        (["no/such"], None, "There is no no/such"),
        (["a\0b"], None, r"There is no 'a\\x00b'"),
    ],
)
def test_what_is_not_there(paths: list[str], format: str | None, message: str) -> None:
    with pytest.raises(FleetError, match=message):
        read_outcomes(paths, format)


def test_nothing_at_all_says_why_and_what_is_read(tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_text("hello")
    with pytest.raises(FleetError, match=r"unrecognised.*Formats that are read: .*junit"):
        read_outcomes([tmp_path / "x.txt"])
    with pytest.raises(UnknownNameError, match="Did you mean 'junit'"):
        read_outcomes([tmp_path], "junitt")


def test_one_path_by_itself(tmp_path: Path) -> None:
    path = _write(tmp_path / "o.jsonl", Outcome("a", "g", "passed"))

    assert len(read_outcomes(path)[0]) == len(read_outcomes(str(path))[0]) == 1


def test_formats() -> None:
    assert {"outcomes", "results", "junit", "github_jobs", "ossci_status", "history", "retecs", "pai", "philly"} <= set(
        READERS
    )
