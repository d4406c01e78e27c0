from __future__ import annotations

import json
from pathlib import Path

import pytest

from deep500.cli.main import run_command
from deep500.fleet.ci.generating import generate_history

Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    generate_history(commits=200, groups=3, jobs_per_group=3, singletons=2, break_rate=0.06, flaky_rate=0.01, seed=1)[
        0
    ].write("h.jsonl")


COMMAND = ["fleet", "ci", "reduce", "h.jsonl", "--draws", "100"]


def test_table_picture_and_page(capsys: Capture) -> None:
    options = ["--budget", "0.5", "--keep", "idle0", "--periodic", "5", "--picture", "r.svg", "--page", "r.html"]
    assert run_command([*COMMAND, *options]) == 0
    printed = capsys.readouterr().out

    assert "Proposed (greedy): 6 of 13 jobs" in printed
    assert "better than random" in printed
    assert "With the other jobs once in 5 commits" in printed
    lines = printed.splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith("method"))
    assert [line.split()[0] for line in lines[start + 1 : start + 5]] == ["greedy", "layers", "exact", "clusters"]
    assert any(line.split()[:3] == ["idle0", "must", "keep"] for line in lines)
    assert "<svg" in Path("r.svg").read_text(encoding="utf-8")
    page = Path("r.html").read_text(encoding="utf-8")
    assert "must keep" in page
    assert "What was read" in page


def test_json_is_complete(capsys: Capture) -> None:
    assert run_command([*COMMAND, "--method", "exact", "--seed", "9", "--json", "--drop", "single*"]) == 0
    document = json.loads(capsys.readouterr().out)

    assert list(document["methods"]) == ["exact", "greedy", "layers", "clusters"]
    assert document["proposed"] == document["methods"]["exact"]["jobs"]
    assert document["parameters"]["seed"] == 9
    assert document["parameters"]["drop"] == ["single*"]
    assert document["commits"] == {"chosen_from": 140, "held_out": 60}
    assert document["methods"]["exact"]["gap"] == 0
    held_out = document["methods"]["exact"]["held_out"]
    assert {"recall", "recall_interval", "random_recall", "random_interval", "difference_interval", "verdict"} <= (
        held_out.keys()
    )
    assert {row["state"] for row in document["jobs"]} == {"keep", "drop"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--budget", "0"], "budget is 0.0"),
        (["--keep", "cuda*"], "matches none of the 13 jobs"),
        (["--method", "magic"], "method is 'magic'"),
        (["--train", "1"], "train_share is 1.0"),
        (["--periodic", "0"], "periodic was given as 0"),
        (["--periodic", "99999999999"], "below 2**31"),
        (["--drop", "*"], "nothing is left to choose"),
        (["--keep", "idle0", "--drop", "idle*"], "Both --keep and --drop match 'idle0'"),
        (["--page", "r.txt"], ".html"),
    ],
)
def test_mistakes_are_one_line(arguments: list[str], message: str, capsys: Capture) -> None:
    assert run_command([*COMMAND, *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert message in captured.err


def test_help(capsys: Capture) -> None:
    assert run_command(["fleet", "ci", "reduce", "--help"]) == 0
    assert "Exit code:" in capsys.readouterr().out


def test_where_what_is_kept_leaves_no_choice_nothing_is_judged(capsys: Capture) -> None:
    assert run_command([*COMMAND, "--budget", "0.05", "--keep", "group*"]) == 0
    printed = capsys.readouterr().out
    assert "undecided: nothing was left to choose" in printed
    assert "not better than random" not in printed


def test_long_tables_are_cut(capsys: Capture) -> None:
    table = generate_history(commits=40, groups=0, singletons=61, idle=62, break_rate=0.1, seed=1)[0]
    table.write("wide.jsonl")
    assert run_command(["fleet", "ci", "reduce", "wide.jsonl", "--draws", "10", "--method", "greedy"]) == 0
    printed = capsys.readouterr().out
    assert "... and 63 more jobs (all with --json or --page)" in printed
    assert run_command(["fleet", "ci", "correlate", "wide.jsonl", "--support", "2"]) == 0
    printed = capsys.readouterr().out
    assert "... and 1 more job (all with --json or --page)" in printed
    assert "and 2 more" in next(line for line in printed.splitlines() if line.startswith("never failed"))
