from __future__ import annotations

import json
from pathlib import Path

import pytest

from deep500.cli.main import run_command

Capture = pytest.CaptureFixture[str]

MATRIX = """
frameworks: {fleetalpha: ["1.0", "2.0"]}
ranks: [1, 1, 2]
rules: [{version: "<2", ranks: ">1", reason: it never worked}]
cost: {cell_s: 36}
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("matrix.yaml").write_text(MATRIX)


def test_table_page_and_campaign(capsys: Capture) -> None:
    arguments = ["matrix.yaml", "--offline", "--campaign", "c", "--page", "p.html", "--picture", "p.svg"]
    assert run_command(["fleet", "compat", "plan", *arguments]) == 0
    out = capsys.readouterr().out
    assert "fleetalpha-2.0" in out
    assert "it never worked" in out
    assert "the matrix names the same cell twice" in out
    assert "3 cells in 2 environments" in out
    assert "Expected 0.030 job hours" in out
    assert "Note: Whether fleetalpha is offered for Python" in out
    assert "next: deep500 fleet compat run c" in out
    assert "it never worked" in Path("p.html").read_text()
    assert Path("p.svg").exists()
    assert Path("c/campaign.json").exists()
    assert run_command(["fleet", "compat", "plan", "matrix.yaml", "--offline", "--campaign", "c"]) == 2
    assert "holds a campaign already" in capsys.readouterr().err


def test_json_is_complete(capsys: Capture) -> None:
    assert run_command(["fleet", "compat", "plan", "matrix.yaml", "--offline", "--json", "--seed", "3"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [cell["ranks"] for cell in document["cells"]] == [1, 1, 2]
    assert {item["source"] for item in document["dropped"]} == {"duplicate", "rule"}
    assert document["seed"] == 3
    assert document["estimate"]["at_most"]["job_hours"] == pytest.approx(3 * 2400 / 3600)
    assert not Path("matrix").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["none.yaml"], "none.yaml"),
        (["bad.yaml"], "Did you mean 'frameworks'"),
        (["matrix.yaml", "--page", "p.txt"], "names that end with .html"),
        (["matrix.yaml", "--older", "nothing"], "nothing"),
        (["matrix.yaml", "--page", "no/such/p.html"], "page"),
    ],
)
def test_mistakes_are_one_line(arguments: list[str], message: str, capsys: Capture) -> None:
    Path("bad.yaml").write_text("framework: {a: ['1.0']}")
    assert run_command(["fleet", "compat", "plan", *arguments, "--offline"]) == 2
    captured = capsys.readouterr()
    assert captured.err.count("\n") == 1
    assert message in captured.err


def test_a_plan_that_is_not_written_may_lie_beside_a_campaign(capsys: Capture) -> None:
    for _ in range(2):
        assert run_command(["fleet", "compat", "plan", "matrix.yaml", "--offline", "--quiet"]) == 0
        capsys.readouterr()
        run_command(["fleet", "compat", "plan", "matrix.yaml", "--offline", "--quiet", "--campaign", "matrix"])
    Path("file").touch()
    capsys.readouterr()
    assert run_command(["fleet", "compat", "plan", "matrix.yaml", "--offline", "--campaign", "file"]) == 2
    assert "it is no folder" in capsys.readouterr().err
