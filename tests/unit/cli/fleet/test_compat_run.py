from __future__ import annotations

import json
from pathlib import Path

import pytest

from deep500.cli.main import run_command
from tests.unit.fleet.compat.support import HERE, fleet_cache  # noqa: F401 - a fixture
from tests.unit.fleet.compat.tiny_wheels import make_wheel

Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    make_wheel(Path("wheels"), "fleetalpha", "1.0", "")
    pip = "pip: {no_index: true, find_links: [wheels]}"
    Path("matrix.yaml").write_text(f"frameworks: {{fleetalpha: ['1.0']}}\npython: ['{HERE}', '3.99']\n{pip}")
    run_command(["fleet", "compat", "plan", "matrix.yaml", "--campaign", "c", "--quiet", "--offline"])


def test_run_collect_and_diff(fleet_cache: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    capsys.readouterr()
    monkeypatch.setenv("PATH", "/usr/bin")  # launchers of many Pythons take seconds
    assert run_command(["fleet", "compat", "run", "c", "--option", f"cache={fleet_cache}"]) == 0
    out = capsys.readouterr().out
    assert "2 cells begun by local; 0 have an outcome already" in out
    assert "Now: 1 environment, 1 passed" in out
    assert run_command(["fleet", "compat", "run", "c", "--json", "--page", "c.html"]) == 0
    assert "python3.99" in Path("c.html").read_text()
    document = json.loads(capsys.readouterr().out)
    assert (document["begun"], len(document["done_before"])) == ([], 2)
    assert document["options"] == {"cache": str(fleet_cache)}  # as the campaign was run before
    assert run_command(["fleet", "compat", "run", "c", "--rerun", "environment", "--json"]) == 0
    (again,) = json.loads(capsys.readouterr().out)["begun"]
    assert "python3.99" in again
    assert Path("c/cells", again, "attempts/1/record.json").exists()
    assert run_command(["fleet", "compat", "collect", "c"]) == 0
    out = capsys.readouterr().out
    assert "There is no Python 3.99 on this machine" in out
    assert "1 passed, 1 environment" in out
    assert run_command(["fleet", "compat", "diff", "c", "c"]) == 0
    assert "0 cells differ, 2 do not" in capsys.readouterr().out


def test_generate_only(capsys: Capture) -> None:
    capsys.readouterr()
    assert run_command(["fleet", "compat", "run", "c", "--generate-only"]) == 0
    assert "2 cells written for local" in capsys.readouterr().out
    assert Path("c/scheduler/run.sh").exists()
    assert not list(Path("c").glob("cells/*/record.json"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["none"], "There is no campaign in none"),
        (["c", "--on", "locl"], "Did you mean 'local'"),
        (["c", "--option", "jobs"], "KEY=VALUE"),
        (["c", "--option", "jobs=1", "--option", "jobs=2"], "is given twice"),
        (["c", "--option", "job=1"], "Did you mean 'jobs'"),
        (["c", "--rerun", "fail"], "Did you mean 'failed'"),
    ],
)
def test_mistakes_are_one_line(arguments: list[str], message: str, capsys: Capture) -> None:
    capsys.readouterr()
    assert run_command(["fleet", "compat", "run", *arguments]) == 2
    captured = capsys.readouterr()
    assert (captured.out, captured.err.count("\n")) == ("", 1)
    assert message in captured.err
