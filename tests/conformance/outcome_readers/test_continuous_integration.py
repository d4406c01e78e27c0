"""Readers of what continuous integration leaves: GitHub's jobs, statuses of commits, histories, RETECS."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from tests.conformance.outcome_readers.samples import GITHUB, HISTORY, RETECS, SAMPLES, SHARED, read, told


def _write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_github_jobs(tmp_path: Path) -> None:
    frame, report = read(_write(tmp_path / "jobs.json", json.dumps(GITHUB)))

    first, second, third = frame.iter_rows(named=True)
    assert (first["key"], first["group"], first["status"]) == ("build", "abc", "passed")
    assert (first["started"] - first["submitted"], first["ended"] - first["started"]) == (60.0, 3600.0)
    assert (first["run_id"], first["workflow"], first["runner"], first["runner_labels"]) == (7, "ci", "r1", "linux")
    assert (second["status"], second["cause"], second["ended"]) == ("missing", "running", None)
    assert second["started"] is not None
    assert (third["status"], third["attempt"]) == ("missing", 2.0)
    assert told(report) == {"unknown status": 1}


@pytest.mark.parametrize(
    ("conclusion", "status"),
    [
        ("success", "passed"), ("failure", "failed"), ("cancelled", "cancelled"), ("skipped", "missing"),
        ("timed_out", "timeout"), ("startup_failure", "environment"), ("neutral", "missing"),
        ("action_required", "missing"), ("stale", "missing"),
    ],
)  # fmt: skip
def test_every_conclusion_that_github_documents(conclusion: str, status: str, tmp_path: Path) -> None:
    job = {**GITHUB["jobs"][0], "conclusion": conclusion}
    frame, report = read(_write(tmp_path / "jobs.json", json.dumps({"total_count": 1, "jobs": [job]})))

    assert frame["status"].to_list() == [status]
    assert not report.problems


@pytest.mark.parametrize("state", ["queued", "waiting", "pending", "requested"])
def test_jobs_that_have_not_begun_have_no_start(state: str, tmp_path: Path) -> None:
    job = {**GITHUB["jobs"][0], "status": state, "conclusion": None, "completed_at": None}
    frame, _ = read(_write(tmp_path / "jobs.json", json.dumps({"total_count": 1, "jobs": [job]})))

    assert frame.select("status", "cause", "started", "ended").row(0) == ("missing", state, None, None)


def test_pages_of_jobs_one_after_the_other_or_in_a_list(tmp_path: Path) -> None:
    pages = [{"total_count": 3, "jobs": GITHUB["jobs"][:1]}, {"total_count": 3, "jobs": GITHUB["jobs"][1:]}]
    one, _ = read(_write(tmp_path / "a.json", json.dumps(GITHUB)))

    for text in (json.dumps(pages), "".join(map(json.dumps, pages)), json.dumps(GITHUB["jobs"])):
        frame, report = read(_write(tmp_path / "b.json", text))
        assert frame.equals(one)
        assert told(report) == {"unknown status": 1}


def test_genuine_answer_of_github() -> None:
    path = SHARED / "ci" / "gha_workflow_jobs_pytorch_run3201497249.json"
    if not path.exists():
        pytest.skip("the data beside the repository is not there")
    jobs = json.loads(path.read_text())["jobs"]
    frame, report = read(path)

    assert frame.height == len(jobs) == 6
    assert frame["status"].to_list().count("passed") == 4
    assert set(frame.filter(pl.col("status") == "missing")["cause"]) == {"skipped"}
    assert frame["group"].unique().to_list() == ["0e30da3f2f3620caa91ada734d9cd3b91d4ee606"]
    assert not report.problems


def test_statuses_of_commits(tmp_path: Path) -> None:
    folder = SAMPLES["ossci_status"][1](tmp_path)
    (folder / "pr" / "broken.json").write_text('{"linux_build": {"status": "suc')
    (folder / "pr" / "list.json").write_text("[]")
    (folder / "master" / "odd.json").write_text('{"a": {"status": "green"}, "b": 3, "c": {"state": "success"}}')
    frame, report = read(folder)

    assert frame.select("key", "group", "status", "branch").rows() == [
        ("linux_build", "commit-pr", "passed", "pr"),
        ("linux_test", "commit-pr", "missing", "pr"),
        ("linux_build", "commit-master", "failed", "master"),
        ("linux_test", "commit-master", "missing", "master"),
        ("a", "odd", "missing", "master"),
    ]
    assert told(report) == {"malformed": 4, "unknown status": 1}


def test_history_of_words(tmp_path: Path) -> None:
    frame, report = read(_write(tmp_path / "history.tsv", HISTORY))

    assert frame.select("group", "key", "status", "cause").rows() == [
        ("c1", "build, x", "passed", None),
        ("c1", "test", "failed", None),
        ("c2", "build, x", "passed", None),
        ("c2", "test", "missing", None),
        ("c3", "build, x", "cancelled", None),
        ("c3", "test", "missing", "skipped"),
    ]
    assert frame["submitted"].to_list() == [1767225600.0] * 2 + [1767312000.0] * 2 + [None] * 2
    assert not report.problems


def test_history_of_numbers_means_one_for_passed(tmp_path: Path) -> None:
    frame, _ = read(_write(tmp_path / "combined.csv", "linux,mac\n1,0\n0.0,1.0\n,1\n"))

    assert frame.select("group", "key", "status").rows() == [
        ("line 1", "linux", "passed"), ("line 1", "mac", "failed"), ("line 2", "linux", "failed"),
        ("line 2", "mac", "passed"), ("line 3", "linux", "missing"), ("line 3", "mac", "passed"),
    ]  # fmt: skip


def test_history_with_quotes_and_faults(tmp_path: Path) -> None:
    text = 'sha,"job ""a"", one",b,\nc1,pass,fail,1\n,pass,pass,1\nc3,pass\nc4,exploded,pass,0\n'
    text += 'c5,"timed out","a\nb",1\n'
    frame, report = read(_write(tmp_path / "history.csv", text))

    assert frame.select("group", "key", "status").rows() == [
        ("c1", 'job "a", one', "passed"), ("c1", "b", "failed"),
        ("c4", 'job "a", one', "missing"), ("c4", "b", "passed"),
        ("c5", 'job "a", one', "timeout"), ("c5", "b", "missing"),
    ]  # fmt: skip
    assert told(report) == {"incomplete": 2, "malformed": 1, "unknown status": 2}


def test_history_with_a_quote_that_is_never_closed_loses_only_its_line(tmp_path: Path) -> None:
    lines = "".join(f"c{number},pass,fail\n" for number in range(30))
    frame, report = read(_write(tmp_path / "history.csv", f'commit,a,b\nc,"pass,fail\n{lines}'))

    assert frame.height == 62
    assert told(report) == {"unknown status": 1}


def test_retecs_means_one_for_failed(tmp_path: Path) -> None:
    frame, report = read(_write(tmp_path / "iofrol.csv", RETECS))

    assert frame.select("key", "group", "status", "duration_s", "cycle").rows() == [
        ("78082", "1", "failed", 57.262, 1.0),
        ("78083", "1", "passed", 3600.0, 1.0),
        ("78082", "2", "passed", 57.262, 2.0),
    ]
    assert frame["cost"][1] == pytest.approx(1.0)
    assert frame["last_run"].to_list() == [1423843980.0, 1423843980.0, 1423843980.0]
    assert not report.problems


def test_retecs_with_faults(tmp_path: Path) -> None:
    more = "4;78084;x;0;;[];1;3\n5;78085;1;0;;[];2;3\n6;;1;0;;[];1;3\n7;78086;1\n8;78087;1;0;;[];1;3;9\n\n"
    frame, report = read(_write(tmp_path / "iofrol.csv", RETECS + more))

    assert frame.filter(pl.col("group") == "3").select("key", "status", "duration_s").rows() == [
        ("78084", "failed", None),
        ("78085", "missing", 0.001),
    ]
    assert told(report) == {"malformed": 3, "unknown status": 1, "incomplete": 1}
    examples = next(problem.examples for problem in report.problems if problem.kind.value == "malformed")
    assert [example.split(":")[0] for example in examples] == ["line 5", "line 8", "line 9"]


def test_genuine_verdicts_of_retecs() -> None:
    path = SHARED / "ci" / "iofrol.csv.gz"
    if not path.exists():
        pytest.skip("the data beside the repository is not there")
    frame, report = read(path)

    assert frame.height == 32260
    assert frame["group"].n_unique() == 320
    assert set(frame["status"]) == {"passed", "failed"}
    assert not report.problems
