from __future__ import annotations

from pathlib import Path

import pytest

from deep500.cli.main import run_command
from deep500.measure.results.files import read_measurement, write_measurement
from deep500.measure.results.merging import merge
from tests.unit.measure.results.support import measurement, rows, system

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    paths = []
    for day in (1, 2):
        write_measurement(measurement(system(rows(launches=day), label="w\x1b"), day=day), tmp_path / f"{day}.json")
        paths.append(str(tmp_path / f"{day}.json"))
    return paths


@pytest.mark.parametrize("option", ["--output", "-o"])
def test_merged_file_has_the_launches_of_all(files: list[str], tmp_path: Path, capsys: Capture, option: str) -> None:
    output = tmp_path / "merged.json"

    assert run_command(["merge", *files, option, str(output)]) == 0

    assert capsys.readouterr().out == f"w\\x1b: 3 launches\nThe result is in {output}\n"
    assert read_measurement(output) == merge([read_measurement(path) for path in files])


def test_output_may_not_replace_one_of_the_files(files: list[str], capsys: Capture) -> None:
    before = Path(files[0]).read_bytes()

    assert run_command(["merge", *files, "--output", files[0]]) == 2

    assert files[0] in capsys.readouterr().err
    assert Path(files[0]).read_bytes() == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["1.json", "1.json", "-o", "m.json"], "Measurements 1 and 2 share the process launch"),
        (["1.json", "-o", "m.json"], "Two measurements or more are needed"),
        (["1.json", "other.json", "-o", "m.json"], "the data differs"),
        (["1.json", "unknown.json", "-o", "m.json"], "allow what is unknown (--allow-unknown)"),
        (["1.json", "2.json", "-o", "missing/m.json"], "The measurement cannot be written"),
        (["1.json", "missing.json", "-o", "m.json"], "missing.json does not exist"),
        (["1.json", "2.json"], "Missing option '--output'"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
@pytest.mark.usefixtures("files")
def test_mistakes_are_told_in_one_line(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, arguments: list[str], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    write_measurement(measurement(system(data_hash="f" * 64), day=3), "other.json")
    write_measurement(measurement(system(data_hash=None), day=4), "unknown.json")

    assert run_command(["merge", *arguments]) == 2

    captured = capsys.readouterr()
    assert captured.out == ""
    assert message in captured.err
    assert captured.err.count("\n") == 1
    assert not (tmp_path / "m.json").exists()


def test_unknown_data_can_be_allowed(files: list[str], tmp_path: Path, capsys: Capture) -> None:
    write_measurement(measurement(system(data_hash=None), day=4), tmp_path / "unknown.json")

    command = ["merge", files[0], str(tmp_path / "unknown.json"), "-o", str(tmp_path / "m.json"), "--allow-unknown"]

    assert run_command(command) == 0
    assert capsys.readouterr().out.splitlines()[:2] == ["w\\x1b: 1 launch", "lenet: 10 launches"]
