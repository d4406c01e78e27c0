from __future__ import annotations

from pathlib import Path

import pytest

from deep500.cli.main import run_command
from deep500.measure.export import EXPORTS, exported
from deep500.measure.results.files import write_measurement
from tests.unit.measure.results.support import pair

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def result(tmp_path: Path) -> str:
    write_measurement(pair(), tmp_path / "result.json")
    return str(tmp_path / "result.json")


@pytest.mark.parametrize("form", EXPORTS.names())
def test_export_goes_to_the_standard_output_or_a_file(result: str, tmp_path: Path, capsys: Capture, form: str) -> None:
    assert run_command(["export", result, "--to", form]) == 0
    assert capsys.readouterr().out == exported(pair(), form)

    output = tmp_path / "export"
    assert run_command(["export", result, "--to", form, "--output", str(output)]) == 0
    assert capsys.readouterr().out == f"The export is in {output}\n"
    assert output.read_text() == exported(pair(), form)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--to", "pyprf"], "Did you mean 'pyperf'?"),
        ([], "Missing option '--to'"),
        (["--to", "mllog", "--output", "missing/x"], "The export cannot be written to missing/x"),
    ],
)
def test_mistakes_are_told_in_one_line(
    result: str, capsys: Capture, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, options: list[str], message: str
) -> None:
    monkeypatch.chdir(tmp_path)

    assert run_command(["export", result, *options]) == 2

    captured = capsys.readouterr()
    assert captured.out == ""
    assert message in captured.err
    assert captured.err.count("\n") == 1


def test_every_format_is_in_the_help(capsys: Capture) -> None:
    assert run_command(["export", "--help"]) == 0

    text = capsys.readouterr().out
    assert all(f"  {form} " in text for form in EXPORTS.names())
