"""``deep500 fleet trace report``: tables, JSON, page, picture, and what it says of faulty input."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from deep500.cli.main import run_command
from deep500.fleet.trace.generating import generate_outcomes, generate_trace

Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def report(*arguments: str) -> int:
    return run_command(["fleet", "trace", "report", *arguments])


def test_a_folder_of_tables(capsys: Capture) -> None:
    generate_trace("made", 1500, 1)
    assert report("made", "--classic", "--page", "trace.html", "--picture", "trace.svg") == 0
    out = capsys.readouterr().out
    for words in (
        "outcomes of 1 source",
        "By GPU type",
        "Log-rank test of equal rates",
        "Cox model of the rate of failing",
        "Spearman's rank correlations",
        "Classic view",
        "Flaw: ",
        "Note: ",
        "The page is in trace.html",
        "The picture is in trace.svg",
    ):
        assert words in out
    ET.parse("trace.svg")
    assert Path("trace.html").read_text(encoding="utf-8").startswith("<!doctype html>")


def test_json_holds_everything(capsys: Capture) -> None:
    generate_outcomes(800, 1).write("tasks.parquet")
    assert report("tasks.parquet", "--json", "--classic", "--at", "2", "--seed", "5", "--factor", "inst_num") == 0
    document = json.loads(capsys.readouterr().out)
    assert document["settings"] == {"times_s": [7200.0], "confidence": 0.95, "resamples": 1000, "seed": 5}
    assert document["input"]["outcomes"] == sum(document["statuses"].values())
    assert len(document["classic"]["correlations"]) == 12
    assert document["whole"]["at"][0]["time_s"] == 7200.0
    assert {"failed", "passed"} == {model["cause"] for model in document["models"]}


def test_faults_of_the_input_are_named_and_counted(capsys: Capture) -> None:
    generate_trace("made", 300, 1)
    task = Path("made/pai_task_table.csv")
    lines = task.read_bytes().splitlines(keepends=True)
    fields = lines[5].split(b",")
    fields[4], fields[5] = b"9000", b"100"  # ends before it starts
    odd = lines[6].replace(b"Terminated", b"Exploded").replace(b"Failed", b"Exploded")
    task.write_bytes(b"".join([*lines[:5], b",".join(fields), odd, lines[7], *lines[7:], b"\xff\xfe,half a line\n"]))
    assert report("made", "--json") == 0
    document = json.loads(capsys.readouterr().out)
    kinds = {problem["kind"]: problem["count"] for problem in document["input"]["problems"]}
    assert kinds["clock skew"] == 1
    assert kinds["unknown status"] == 1
    assert kinds["duplicate"] >= 1
    assert kinds["malformed"] >= 1
    assert sum(document["left_out"].values()) >= 1  # the task whose times contradict each other


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere"], "nowhere"),
        (["tasks.jsonl", "--page", "x.png"], ".html"),
        (["tasks.jsonl", "--picture", "x.html"], ".png"),
        (["tasks.jsonl", "--at", "-1"], "times above 0"),
        (["tasks.jsonl", "--factor", "colour"], "'colour'"),
        (["tasks.jsonl", "--confidence", "2"], "confidence"),
        (["untimed.jsonl"], "None of the 1 outcomes"),
        (["empty.jsonl"], "No outcome was found"),
    ],
)
def test_mistakes_are_one_line(arguments: list[str], message: str, capsys: Capture) -> None:
    generate_outcomes(30, 1).write("tasks.jsonl")
    Path("untimed.jsonl").write_text('{"key": "t", "group": "u", "status": "passed"}\n', encoding="utf-8")
    Path("empty.jsonl").write_text("", encoding="utf-8")
    assert report(*arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert message in captured.err


def test_help(capsys: Capture) -> None:
    assert report("--help") == 0
    assert "Exit code:" in capsys.readouterr().out


def test_names_are_escaped_on_a_terminal(capsys: Capture) -> None:
    lines = [
        json.dumps(
            {"key": f"t{n}", "group": f"u{n % 6}", "status": "failed" if n % 3 else "passed", "started": 0.0,
             "ended": 1.0 + n, "gpu_type": "\x1b[31mred\nline" if n % 2 else "x" * 200}
        )
        for n in range(80)
    ]  # fmt: skip
    Path("t.jsonl").write_text("\n".join(lines), encoding="utf-8")
    assert report("t.jsonl", "--classic", "--quiet") == 0
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert r"\x1b[31mred\nline" in out
    assert "x" * 60 not in out


def test_why_nothing_is_left(capsys: Capture) -> None:
    """Clocks that run backwards leave no times; the message says that this is why."""
    lines = [
        json.dumps({"key": f"t{n}", "group": "u", "status": "passed", "started": 9.0, "ended": 1.0}) for n in range(5)
    ]
    Path("t.jsonl").write_text("\n".join(lines), encoding="utf-8")
    assert report("t.jsonl") == 2
    err = capsys.readouterr().err
    assert "None of the 5 outcomes" in err
    assert "Faults of the input: 5 clock" in err
