"""``deep500 fleet trace generate``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from deep500.cli.main import run_command

Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_it_writes_tables_and_truth(capsys: Capture) -> None:
    assert run_command(["fleet", "trace", "generate", "made", "--jobs", "60", "--seed", "2"]) == 0
    out = capsys.readouterr().out
    assert "The trace and its truth are in made" in out
    assert sorted(path.name for path in Path("made").iterdir()) == [
        "pai_instance_table.csv", "pai_job_table.csv", "pai_task_table.csv", "truth.json",
    ]  # fmt: skip


def test_json_is_the_truth(capsys: Capture) -> None:
    arguments = ["--jobs", "40", "--failing-hours", "9", "--passing-hours", "3", "--cancelled-per-hour", "0.1"]
    assert run_command(["fleet", "trace", "generate", "made", *arguments, "--json"]) == 0
    truth = json.loads(capsys.readouterr().out)
    assert truth == json.loads(Path("made/truth.json").read_text(encoding="utf-8"))
    assert truth["failed"]["scale_h"]["T4"] == 9
    assert truth["cancelled_per_h"] == 0.1
    assert truth["seed"] == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--jobs", "0"], "jobs was given as 0"),
        (["--failing-hours", "3"], "--passing-hours"),
        (["--failing-hours", "3", "--passing-hours", "0"], "given as 0; accepted is from"),
        (["--failing-hours", "inf", "--passing-hours", "1"], "given as inf; accepted is from"),
        (["--days", "inf"], "inf days"),
        (["--cancelled-per-hour", "inf"], "inf cancellations"),
        (["--jobs", "1000000000000"], "at most 100,000,000"),
        (["--users", "1000000000000"], "at most 10,000,000"),
        (["--days", "-1"], "days"),
    ],
)
def test_mistakes_are_one_line(arguments: list[str], message: str, capsys: Capture) -> None:
    assert run_command(["fleet", "trace", "generate", "made", *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.err.count("\n") == 1
    assert message in captured.err
    assert not Path("made").exists()


def test_help(capsys: Capture) -> None:
    assert run_command(["fleet", "trace", "generate", "--help"]) == 0
    assert "Exit code:" in capsys.readouterr().out


def test_the_page_shows_what_was_planted(tmp_path: Path) -> None:
    page = tmp_path / "truth.html"
    assert (
        run_command(["fleet", "trace", "generate", str(tmp_path / "made"), "--jobs", "200", "--page", str(page)]) == 0
    )
    text = page.read_text()
    assert "plan_cpu" in text
    assert "data:image/svg+xml" in text


def test_a_page_that_cannot_be_written_is_told_before_the_work(tmp_path: Path) -> None:
    made = tmp_path / "made"
    assert run_command(["fleet", "trace", "generate", str(made), "--page", str(tmp_path / "no" / "x.html")]) == 2
    assert not made.exists()
