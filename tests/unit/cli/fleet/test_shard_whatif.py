from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from deep500.cli.main import run_command
from deep500.fleet.outcome import Outcome
from deep500.fleet.outcome_table import OutcomeTable

Capture = pytest.CaptureFixture[str]

FEW = ["--commits", "200", "--replications", "6"]
LANES = ["--today", "4x2:4", "--proposed", "2x2:7", "--proposed", "4x1:1@1h"]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def history() -> str:
    table = OutcomeTable.from_outcomes(
        Outcome(
            f"a.py::test_{i}",
            f"commit {run}",
            "failed" if (run + i) % 7 == 0 else "passed",
            submitted=600.0 * run,
            started=600.0 * run + 60,
            ended=600.0 * run + 360,
            labels={"gpus_declared": 4.0 if i == 0 else 2.0},
        )
        for run in range(14)
        for i in range(5)
    )
    table.write("history.jsonl")
    return "history.jsonl"


def test_example(capsys: Capture) -> None:
    arguments = ["fleet", "shard", "whatif", "--example", *FEW, "--page", "w.html", "--picture", "w.svg", "--seed", "3"]
    assert run_command(arguments) == 0
    out = capsys.readouterr().out
    assert "4,171 (92.8%)" in out
    assert "324 (7.2%)" in out
    assert "time to signal, p90" in out
    assert "seed 3" in out
    assert "324 (7.2%)" in Path("w.html").read_text()
    ET.parse("w.svg")


def test_history_with_recorded_arrivals(capsys: Capture) -> None:
    assert run_command(["fleet", "shard", "whatif", history(), *LANES, *FEW, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["parameters"]["rate_per_hour"] == pytest.approx(6.0)
    assert len(found["parameters"]["arrivals"]) == 14
    assert found["proposed"]["coverage"] == {
        "every_commit": 4, "periodic": 1, "never": 0,
        "failures_every_commit": 8, "failures_periodic": 2, "failures_never": 0,
    }  # fmt: skip
    assert set(found["proposed"]["figures"]) - set(found["today"]["figures"]) == {
        "detection_p50_s", "detection_p90_s", "detection_mean_s",
    }  # fmt: skip
    assert len(found["today"]["replications"]["signal_p90_s"]) == 6
    assert {change["verdict"] for change in found["changes"]} <= {"shorter", "longer", "undecided"}
    assert found["input"]["outcomes"] == 70


def test_history_with_a_rate(capsys: Capture) -> None:
    arguments = ["fleet", "shard", "whatif", history(), *LANES, *FEW, "--rate", "60", "--set-up", "30"]
    assert run_command([*arguments, "--page", "w.html"]) == 0
    out = capsys.readouterr().out
    assert "historical failures found late" in out
    assert "today: more work comes than the runners can do" in out
    assert "set-up 30 s" in out
    assert "What was read" in Path("w.html").read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "take --example"),
        (["--example", "times.json"], "leave one out"),
        (["times.json", "--today", "4x1"], "give --today and --proposed"),
        (["times.json", *LANES], "give --rate N"),
        (["times.json", *LANES, "--rate", "1", "--count", "nonsense"], "used and declared"),
        (["times.json", *LANES, "--rate", "0"], "above 0"),
        (["times.json", *LANES, "--rate", "1", "--spread", "-1"], "cannot be simulated"),
        (["many.json", *LANES, "--rate", "1"], "choose one"),
        (["--example", "--today", "4"], "GPUSxSHARDS"),
    ],
)
def test_mistakes_are_one_line(arguments: list[str], message: str, capsys: Capture) -> None:
    Path("times.json").write_text('{"a.py": 5, "b.py": 6}')
    Path("many.json").write_text('{"a": {"b": {"c": 5}, "d": {"c": 5}}}')
    assert run_command(["fleet", "shard", "whatif", *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert message in captured.err


def test_help(capsys: Capture) -> None:
    assert run_command(["fleet", "shard", "whatif", "--help"]) == 0
    assert "Exit code:" in capsys.readouterr().out
