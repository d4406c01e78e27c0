from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from deep500.cli.main import run_command
from deep500.fleet.outcome import Outcome
from deep500.fleet.outcome_table import OutcomeTable

Capture = pytest.CaptureFixture[str]

TIMES = {
    "build-a": {"distributed": {"d/test_a": 600, "d/test_b": 60, "d/test_c": 500, "d/test_d": 90}, "default": {"x": 5}},
    "build-b": {"distributed": {"d/test_a": 10, "d/test_b": None}},
}


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("times.json").write_text(json.dumps(TIMES))


def outcomes() -> str:
    table = OutcomeTable.from_outcomes(
        Outcome(
            f"{file}.py::test_{i}", f"run {run}", "passed", started=0.0, ended=10.0 + run, labels={"gpus_used": gpus}
        )
        for run in range(3)
        for file in "ab"
        for i, gpus in enumerate((1.0, 2.0, 4.0))
    )
    table.write("history.jsonl")
    return "history.jsonl"


def test_one_configuration(capsys: Capture) -> None:
    arguments = ["fleet", "shard", "plan", "times.json", "--environment", "build-a", "--configuration", "dist*"]
    assert run_command([*arguments, "--shards", "2", "--page", "plan.html", "--picture", "plan.svg"]) == 0
    out = capsys.readouterr().out
    assert "4 tests or files; all durations are known" in out
    assert "d/test_a (10.0 min)" in out
    lines = [line.split("  ") for line in out.splitlines()]
    assert ["1-GPU", "as given", "18.3 min", "40.9%", "43.2%"] in [
        [c.strip() for c in line if c.strip()] for line in lines
    ]
    assert "d/test_a" in Path("plan.html").read_text()
    ET.parse("plan.svg")

    assert run_command([*arguments, "--shards", "2", "--shard", "2"]) == 0
    assert capsys.readouterr().out == "d/test_c\nd/test_d\nd/test_b\n"


def test_json_is_complete(capsys: Capture) -> None:
    arguments = [
        "times.json",
        "--environment",
        "build-b",
        "--shards",
        "2",
        "--split-over",
        "4",
        "--json",
        "--shard",
        "1",
    ]
    assert run_command(["fleet", "shard", "plan", *arguments]) == 0
    found = json.loads(capsys.readouterr().out)
    (plan,) = found["plans"]
    assert found["input"]["problems"][0]["effect"] == "taken as unknown durations"
    assert plan["unknown_durations"] == {
        "count": 1, "of": 2, "seconds": 10.0, "rule": "the median of the 1 that are known",
    }  # fmt: skip
    assert plan["even_shares"] == ["d/test_a", "d/test_b"]
    assert found["shard"]["run"] == plan["shards"][0]["run"]
    assert sorted(line for shard in plan["shards"] for line in shard["run"]) == [
        f"d/test_{name} {i}/3" for name in "ab" for i in (1, 2, 3)
    ]
    assert found["parameters"]["split_over_s"] == 4.0


def test_many_configurations(capsys: Capture) -> None:
    arguments = [
        "fleet",
        "shard",
        "plan",
        "times.json",
        "--shards",
        "2",
        "--page",
        "many.html",
        "--picture",
        "many.png",
    ]
    assert run_command(arguments) == 0
    out = capsys.readouterr().out
    assert "build-a / distributed" in out
    assert "build-b / distributed" in out
    assert "malformed" in out
    assert Path("many.png").read_bytes().startswith(b"\x89PNG")
    assert run_command(["fleet", "shard", "plan", "times.json", "--shards", "2", "--shard", "1"]) == 2
    assert "--shard needs one" in capsys.readouterr().err


def test_outcomes_and_runner_classes(capsys: Capture) -> None:
    arguments = ["fleet", "shard", "plan", outcomes(), "--runner", "1x1", "--runner", "2x1"]
    assert run_command([*arguments, "--runner", "4x1@3h", "--json"]) == 0
    (plan,) = json.loads(capsys.readouterr().out)["plans"]
    assert [(shard["lane"], shard["seconds"], shard["run"]) for shard in plan["shards"]] == [
        ("1-GPU", 22.0, ["a.py::test_0", "b.py::test_0"]),
        ("2-GPU", 22.0, ["a.py::test_1", "b.py::test_1"]),
        ("4-GPU every 3 h", 22.0, ["a.py::test_2", "b.py::test_2"]),
    ]
    assert plan["lost"] == []
    assert run_command([*arguments, "--need", "b.py*=1"]) == 0
    out = capsys.readouterr().out
    assert "Lost: no runner has the GPUs (1 of 6)" in out
    assert "a.py::test_2" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["times.json"], "give either"),
        (["times.json", "--shards", "2", "--runner", "2x1"], "give either"),
        (["times.json", "--shards", "0"], "cannot be"),
        (["times.json", "--runner", "two"], "GPUSxSHARDS"),
        (["times.json", "--runner", "99999999x1"], "accepted are up to 100,000"),
        (["times.json", "--shards", "2", "--count", "nonsense"], "used and declared"),
        (["times.json", "--shards", "2", "--configuration", "none"], "No recording"),
        (["times.json", "history.jsonl", "--shards", "2"], "of one kind"),
        (["none.json", "--shards", "2"], "There is no none.json"),
        (["empty.json", "--shards", "2"], "empty"),
        (["times.json", "--shards", "2", "--page", "plan.txt"], ".html"),
        (["times.json", "--shards", "2", "--picture", "plan.txt"], ".png or .svg"),
        (["times.json", "--shards", "2", "--unknown", "mean", "--environment", "build-b"], "median, max"),
        (["times.json", "--shards", "2", "--need", "x"], "PATTERN=N"),
        (["history.jsonl", "--shards", "2", "--count", "both"], "used and declared"),
        (["history.jsonl", "--shards", "2", "--shard", "3"], "There is no shard 3"),
    ],
)
def test_mistakes_are_one_line(arguments: list[str], message: str, capsys: Capture) -> None:
    outcomes()
    Path("empty.json").touch()
    assert run_command(["fleet", "shard", "plan", *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert message in captured.err


def test_help(capsys: Capture) -> None:
    assert run_command(["fleet", "shard", "plan", "--help"]) == 0
    out = capsys.readouterr().out
    assert "Examples:" in out
    assert "Exit code:" in out
