from __future__ import annotations

import json
from pathlib import Path

import pytest

from deep500.cli.main import run_command
from deep500.fleet.outcome import Outcome
from deep500.fleet.outcome_table import OutcomeTable

Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write("old.jsonl", a=("passed", None), b=("failed", "x"), c=("failed", "y"), gone=("passed", None))
    write("new.jsonl", a=("failed", "import: z"), b=("passed", None), c=("failed", "w"), new=("passed", None))


def write(path: str, **said: tuple[str, str | None]) -> None:
    OutcomeTable.from_outcomes(Outcome(key, "c", *both) for key, both in said.items()).write(path)


def test_what_broke_gives_code_1(capsys: Capture) -> None:
    assert run_command(["fleet", "compat", "diff", "old.jsonl", "new.jsonl", "--page", "p.html"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:2] for line in lines[1:6]] == [
        ["a", "broken"],
        ["c", "cause"],
        ["b", "repaired"],
        ["new", "new"],
        ["gone", "gone"],
    ]
    assert "y -> w" in lines[2]
    assert "5 cells differ, 0 do not" in lines[7]
    assert "import: z" in Path("p.html").read_text()


def test_nothing_broke(capsys: Capture) -> None:
    assert run_command(["fleet", "compat", "diff", "new.jsonl", "new.jsonl", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["regressed"], document["changes"], document["same"]) == (False, [], 4)
    write("better.jsonl", a=("passed", None), b=("passed", None), c=("failed", "w"))
    assert run_command(["fleet", "compat", "diff", "new.jsonl", "better.jsonl"]) == 0


def test_faults_of_the_input_are_shown(capsys: Capture) -> None:
    with Path("old.jsonl").open("ab") as file:
        file.write(b'{"key": "d"}\n\xff\n')
    assert run_command(["fleet", "compat", "diff", "old.jsonl", "new.jsonl"]) == 1
    out = capsys.readouterr().out
    assert "malformed" in out
    assert "encoding" in out
    assert run_command(["fleet", "compat", "diff", "none", "new.jsonl"]) == 2
    assert capsys.readouterr().err.count("\n") == 1
