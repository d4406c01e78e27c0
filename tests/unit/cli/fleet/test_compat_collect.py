from __future__ import annotations

import json
from pathlib import Path

import pytest

from deep500.cli.main import run_command
from tests.unit.fleet.compat.support import campaign_of, cell
from tests.unit.fleet.compat.test_collecting import write_record

Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    made = campaign_of(tmp_path, cell(), cell(ranks=2), cell(ranks=4))
    write_record(made.cell_folder(made.cells[0]))
    write_record(made.cell_folder(made.cells[1]), step=-1.0)
    folder = made.cell_folder(made.cells[2])
    folder.mkdir(parents=True)
    (folder / "record.json").write_bytes(b"\xff{")


def test_table_page_picture_and_output(capsys: Capture) -> None:
    outputs = ["--page", "p.html", "--picture", "p.png", "--output", "o.parquet"]
    assert run_command(["fleet", "compat", "collect", "campaign", *outputs]) == 0
    out = capsys.readouterr().out
    assert "malformed" in out
    assert "clock skew" in out
    assert "2 passed, 1 missing" in out
    assert "-------" in out
    page = Path("p.html").read_text()
    assert "record.json cannot be read" in page
    assert "data:image/svg+xml" in page
    assert Path("p.png").read_bytes().startswith(b"\x89PNG")
    assert run_command(["fleet", "read", "o.parquet"]) == 0
    assert run_command(["fleet", "read", "campaign/outcomes.jsonl"]) == 0


def test_json(capsys: Capture) -> None:
    assert run_command(["fleet", "compat", "collect", "campaign", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [outcome["status"] for outcome in document["outcomes"]] == ["passed", "passed", "missing"]
    assert document["outcomes"][0]["stages"]["kernel"] == {"went": "skipped", "detail": "skipped: x"}
    kinds = {problem["kind"] for problem in document["input"]["problems"]}
    assert kinds == {"malformed", "clock skew"}


def test_mistakes_are_one_line(capsys: Capture) -> None:
    for arguments in (["none"], ["campaign", "--page", "p.pdf"], ["campaign", "--output", "o.csv"]):
        assert run_command(["fleet", "compat", "collect", *arguments]) == 2
        assert capsys.readouterr().err.count("\n") == 1
