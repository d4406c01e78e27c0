from __future__ import annotations

import json
from typing import Any

import pytest
import typer

from deep500.cli import env
from deep500.cli.env import environment_command
from deep500.measure.environment import isolation, noise, probe, record


def made_up(*failing: str) -> record.EnvironmentRecord:
    checks = [
        isolation.IsolationCheck("load", isolation.IsolationVerdict("failed"), "busy [/red]", "wait")
        if name in failing
        else isolation.IsolationCheck(name, isolation.IsolationVerdict("ok"), "quiet", "wait")
        for name in ("load", "steal")
    ]
    sections = {
        "cpu": probe.Section(
            {"model": "[bold]X[/bold]\x1b[31m", "flags": ["a"] * 500, "turbo": True, "governor": "unavailable"},
            {"governor": "no policy"},
        ),
        "gpu": probe.Section({}, {"": "RuntimeError: planted"}),
    }
    interval = noise.NoiseInterval(0.5, 0.1, 1, 2, 3, 4, reasons={"steal_share": "too short"})
    return record.EnvironmentRecord("2026-01-01T00:00:00.000+00:00", 0.5, sections, interval, tuple(checks))


@pytest.fixture
def show(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("COLUMNS", "120")

    def show(*failing: str, **options: bool) -> int:
        monkeypatch.setattr(record, "record_environment", lambda **_: made_up(*failing))
        return environment_command(**options)

    return show


def test_tables_tell_values_reasons_and_verdicts(show: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert show("load") == 0

    output = capsys.readouterr().out
    assert "unavailable: no policy" in output
    assert "unavailable: RuntimeError: planted" in output
    assert "unavailable: too short" in output
    assert "busy [/red]" in output
    assert "[bold]X[/bold]" in output  # no markup
    assert "\x1b[31m" not in output  # and no colours from a file
    assert "…" in output


def test_json_is_the_whole_record(show: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert show("load", as_json=True) == 0

    content = json.loads(capsys.readouterr().out)
    assert content == made_up("load").to_dict()


@pytest.mark.parametrize("as_json", [True, False])
def test_strict_shows_the_record_and_fails(show: Any, capsys: pytest.CaptureFixture[str], as_json: bool) -> None:
    assert show("load", as_json=as_json, strict=True) == 1

    captured = capsys.readouterr()
    assert "planted" in captured.out
    assert captured.err.startswith("Error: This machine fails 1 of the isolation checks")
    assert captured.err.count("\n") == 1


def test_strict_passes_a_quiet_machine(show: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert show(strict=True) == 0
    assert capsys.readouterr().err == ""


def test_command_line_of_this_machine(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(env, "_OBSERVATION_S", 0.0)
    app = typer.Typer()
    app.command()(environment_command)

    app(["--json"], standalone_mode=False)

    assert json.loads(capsys.readouterr().out)["schema_version"] == 1
