from __future__ import annotations

import json
from pathlib import Path

import pytest

from deep500.cli.main import run_command
from deep500.fleet.reading import read_outcomes

Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_a_history_is_written_and_its_truth_told(capsys: Capture) -> None:
    command = ["fleet", "ci", "generate", "h.jsonl", "--commits", "30", "--groups", "2", "--flaky", "0.05"]
    assert run_command([*command, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    table, report = read_outcomes(["h.jsonl"])

    assert document["outcomes"] == len(table)
    assert not report.problems
    assert document["parameters"]["flaky_rate"] == 0.05
    assert document["parameters"]["seed"] == 0
    assert len(document["truth"]["groups"]) == 6
    assert run_command(command) == 0
    printed = capsys.readouterr().out
    assert "group1-job0, group1-job1, group1-job2, group1-job3" in printed
    assert printed.endswith("The history is in h.jsonl\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["h.csv"], ".jsonl or .parquet"),
        (["h.jsonl", "--missing", "2"], "missing_rate is 2.0"),
        (["no/h.jsonl"], "no/h.jsonl"),
    ],
)
def test_mistakes_are_one_line(arguments: list[str], message: str, capsys: Capture) -> None:
    assert run_command(["fleet", "ci", "generate", *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert message in captured.err
    assert not list(Path().iterdir())


def test_the_page_shows_the_history(tmp_path: Path) -> None:
    page = tmp_path / "history.html"
    assert run_command(["fleet", "ci", "generate", str(tmp_path / "h.jsonl"), "--page", str(page)]) == 0
    text = page.read_text()
    assert "fail together" in text
    assert "data:image/svg+xml" in text
