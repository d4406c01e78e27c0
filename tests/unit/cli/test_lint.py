from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from deep500.cli import lint
from deep500.cli.main import run_command
from deep500.measure.rule import Finding, RuleVerdict
from tests.unit.measure.rules.support import changed, comparison, measurement, metric, system


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("COLUMNS", "250")

    def write(document: Any) -> str:
        path = tmp_path / "result.json"
        path.write_text(document if isinstance(document, str) else json.dumps(document))
        return str(path)

    return write


def test_a_good_result_passes(write: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["lint", write(measurement())]) == 0

    output = capsys.readouterr().out
    assert "documented_setup" in output
    assert "Test CPU, kernel 6.1" in output
    assert "0 broken" in output
    assert "\x1b[" not in output  # no colours where there is no terminal


def test_a_broken_rule_fails_with_its_reason(write: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["lint", write(measurement(system(metrics=(metric(1),))))]) == 1

    line = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("5 "))
    assert "intervals" in line
    assert "broken" in line
    assert "--launches 6" in line


def test_a_narrow_terminal_shows_the_reason_below_the_rule(
    write: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(measurement())
    monkeypatch.setenv("COLUMNS", "80")
    assert run_command(["lint", path]) == 0

    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert lines[lines.index("12   raw_samples: obeyed") + 1].endswith("and all hashes fit")
    assert max(map(len, lines)) <= 80


def test_json_holds_every_finding(write: Any, capsys: pytest.CaptureFixture[str]) -> None:
    document = changed(comparison(2.0), lambda d: d.pop("base"))
    assert run_command(["lint", write(document), "--json"]) == 1

    content = json.loads(capsys.readouterr().out)
    assert content["passed"] is False
    assert len(content["findings"]) == 21
    assert content["findings"][0]["verdict"] == "broken"
    assert "no base" in content["findings"][0]["reason"]
    assert run_command(["lint", write(comparison(2.0)), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["passed"] is True


@pytest.mark.parametrize("content", ["", "{", "[]", '{"kind": "other"}', '{"a": NaN}'])
def test_what_is_no_result_is_a_mistake_told_in_one_line(
    write: Any, capsys: pytest.CaptureFixture[str], content: str
) -> None:
    assert run_command(["lint", write(content)]) == 2

    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("Error: ")
    assert captured.err.count("\n") == 1


def test_a_file_that_is_not_there_is_a_mistake(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["lint", "/no/such/file.json"]) == 2
    assert "cannot be read" in capsys.readouterr().err


def test_names_from_the_file_are_neither_markup_nor_control(write: Any, capsys: pytest.CaptureFixture[str]) -> None:
    document = measurement(system(label="[bold]x[/red]\x1b[31m", metrics=(metric(1),)))
    assert run_command(["lint", write(document)]) == 1

    output = capsys.readouterr().out
    assert "[bold]x[/red]" in output
    assert "\x1b" not in output


def test_a_terminal_shows_verdicts_in_colours(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    findings = [Finding("x", "1", "t", verdict, "a reason") for verdict in RuleVerdict]
    lint._render(findings)

    output = capsys.readouterr().out
    assert "\x1b[1;31mbroken" in output
    assert "\x1b[32mobeyed" in output
    assert "1 obeyed, 1 broken, 1 not applicable" in output
