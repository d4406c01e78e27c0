from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from deep500.cli.main import run_command
from tests.unit.fleet.shard.support import LOST, SUITE, run_pytest

Capture = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def junit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs of the suite: one with all GPUs, one with two."""
    folder = tmp_path_factory.mktemp("suite")
    (folder / "test_suite.py").write_text(SUITE + "\n\n@pytest.mark.gpus(2)\ndef test_one(gpus):\n    gpus.take(1)\n")
    for gpus in ("8", "2"):
        run_pytest(folder, "--max-gpus", gpus, "--junitxml", f"junit/{gpus}.xml")
    return folder / "junit"


def test_what_is_lost_and_what_is_declared(junit: Path, capsys: Capture, tmp_path: Path) -> None:
    page, picture = tmp_path / "gpus.html", tmp_path / "gpus.svg"
    arguments = ["fleet", "shard", "report", str(junit), "--page", str(page), "--picture", str(picture)]
    assert run_command([*arguments, "--max-gpus", "3"]) == 0
    out = capsys.readouterr().out
    assert "Over-declared: never used as many" in out
    assert "Lost: skipped since GPUs lacked" in out
    assert "Would be lost with 3 GPUs" in out
    assert "It was seen what 1 of 17 tests use." in out
    assert "With 3 GPUs 8 of 17 tests" in out
    assert "test_suite::test_one" in page.read_text()
    ET.parse(picture)


def test_json(junit: Path, capsys: Capture) -> None:
    assert run_command(["fleet", "shard", "report", str(junit), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    lost = {
        test["test"].replace("test_suite", "test_suite.py", 1).replace(".Test", "::Test"): test
        for test in found["lost"]
    }
    assert {name: test["gpus"] for name, test in lost.items()} == LOST
    assert all(test["groups"] == 1 and test["runs"] == 1 and test["seconds"] is not None for test in lost.values())
    assert found["over_declared"] == [{"test": "test_suite::test_one", "declared": 2.0, "used": 1.0}]
    assert found["would_be_lost"] == []
    assert found["input"]["sources"][0]["format"] == "junit"


def test_mistakes_are_one_line(tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("plain.jsonl").write_text('{"key": "a", "group": "b", "status": "passed"}\n')
    for arguments, message in ((["plain.jsonl"], "has a label gpus_declared"), (["none"], "There is no none")):
        assert run_command(["fleet", "shard", "report", *arguments]) == 2
        captured = capsys.readouterr()
        assert captured.out == ""
        assert captured.err.count("\n") == 1
        assert message in captured.err


def test_help(capsys: Capture) -> None:
    assert run_command(["fleet", "shard", "report", "--help"]) == 0
    assert "Exit code:" in capsys.readouterr().out
    assert run_command(["fleet", "shard"]) == 0
    assert "whatif" in capsys.readouterr().out


def test_a_collection_error_is_told_from_nothing_lost(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "test_ok.py").write_text("import pytest\n@pytest.mark.gpus(2)\ndef test_it(): pass\n")
    (tmp_path / "test_bad.py").write_text("import nothing_there\n")
    run_pytest(tmp_path, "--max-gpus", "1", "--junitxml", "j.xml")
    assert run_command(["fleet", "shard", "report", str(tmp_path / "j.xml"), "--picture", str(tmp_path / "p.svg")]) == 0
    out = capsys.readouterr().out
    assert "Not collected in 1 group: 1 error, such as test_bad. Which tests are lost there is not known." in out
