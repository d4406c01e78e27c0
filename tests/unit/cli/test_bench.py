from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from deep500.cli.main import run_command
from deep500.core.errors import FileWriteError
from deep500.measure.results import files
from deep500.measure.results.files import read_measurement
from deep500.measure.sampling import benchmark
from deep500.measure.sampling.launch import run_launch
from deep500.measure.sampling.plan import SamplingPlan
from tests.unit.measure.sampling.workloads import HERE, Described


@pytest.fixture(autouse=True)
def quick_launches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Launches within this process: those in fresh ones are tested where they are made."""
    quick = SamplingPlan(minimum_time_s=0.0, warm_up=1, time_limit_s=0.5)

    def launch(specs: Any, plan: SamplingPlan, *, seed: int, number: int, environment: bool, tell: Any) -> Any:
        tell("sampling", 10, "a detail")
        if "interrupt" in specs[0] and number == 6:
            raise KeyboardInterrupt
        openers = [lambda: Described(seconds=1e-5) for _ in specs]
        return run_launch(openers, quick, seed=seed, number=number, fresh=True, environment=environment)

    monkeypatch.setattr(benchmark, "launch_process", launch)
    monkeypatch.setenv("COLUMNS", "100")


def bench(*arguments: str) -> int:
    return run_command(["bench", *arguments])


def test_result_is_shown_and_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "result.json"

    assert bench(f"{HERE}:quick", "--launches", "6", "--output", str(path), "--because", "it is a test") == 0

    shown = capsys.readouterr().out
    for text in ("WallclockTime", "Throughput", "sheeps/s", "TestAccuracy", ">= 97 %", "6 process launches", str(path)):
        assert text in shown
    result = read_measurement(path)
    assert result.complete
    assert result.design.justification == "it is a test"
    assert len(result.processes) == 6


def test_comparison_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert bench("a.b:c", "--against", "a.b:d", "--launches", "6", "--label", "new", "--label", "old") == 0

    shown = capsys.readouterr().out
    assert "Ratio to base" in shown
    assert any(verdict in shown for verdict in ("faster", "slower", "undecided"))


def test_interruption_loses_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "result.json"

    assert bench("interrupt:ed", "--output", str(path)) == 130

    assert "Incomplete: 6 of 10 launches were run." in capsys.readouterr().out
    result = read_measurement(path)
    assert not result.complete
    assert len(result.systems[0].metric().launches) == 6


def test_interruption_before_the_first_launch_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(benchmark, "launch_process", interrupt)

    assert bench("a.b:c") == 130
    assert "nothing was measured" in capsys.readouterr().err


def test_result_that_cannot_be_written_is_shown_and_not_said_to_be_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(*_: Any) -> None:
        raise FileWriteError("the disk is full")

    monkeypatch.setattr(files, "write_measurement", full)

    assert bench("a.b:c", "--launches", "1", "--output", str(tmp_path / "r.json")) == 2

    shown = capsys.readouterr()
    assert "WallclockTime" in shown.out
    assert "The result is in" not in shown.out
    assert "the disk is full" in shown.err


def test_picture_is_drawn(tmp_path: Path) -> None:
    assert bench("a.b:c", "--launches", "6", "--picture", str(tmp_path / "p.svg"), "--picture-kind", "ecdf") == 0

    assert b"<svg" in (tmp_path / "p.svg").read_bytes()


def test_quantile_with_too_few_samples_is_refused_with_the_number(capsys: pytest.CaptureFixture[str]) -> None:
    """The launches here take fewer samples than the plan asks for, as one does that runs out of time."""
    assert bench("a.b:c", "--launches", "6", "--quantile", "0.99") == 2

    assert "needs at least 368" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["quick"], "is not a workload"),
        (["a.b:c", "--launches", "0"], "launches was given as 0"),
        (["a.b:c", "--launches", "many"], "--launches"),
        (["a.b:c", "--time-limit", "-1"], "time_limit_s was given as -1"),
        (["a.b:c", "--precision", "0"], "relative_half_width was given as 0.0"),
        (["a.b:c", "--threads", "0"], "threads was given as 0"),
        (["a.b:c", "--warm-up", "-1"], "warm_up was given as -1"),
        (["a.b:c", "--against", "a.b:d", "--pairing", "x"], "pairing was given as 'x'"),
        (["a.b:c", "--label", "a", "--label", "b"], "The labels were given as"),
        (["a.b:c", "--label", " "], "accepted: one text"),
        (["a.b:c", "--pairing", "x"], "pairing was given as 'x'"),
        (["a.b:c", "--output", "p.svg", "--picture", "p.svg"], "where the result goes"),
        (["a.b:c", "--precision", "inf"], "relative_half_width was given as inf"),
        (["a.b:c", "--quantile", "1e-300"], "quantile"),
        (["a.b:c", "--output", "no/such/folder/r.json"], "cannot be written to no/such/folder"),
        (["a.b:c", "--picture", "p.bmp"], ".bmp"),
        (["a.b:c", "--picture", "p.png", "--picture-kind", "pie"], "pie"),
        (["a.b:c", "--quantile", "1.5"], "quantile"),
        (["a.b:c", "--margin", "-1"], "margin"),
        ([], "WORKLOAD"),
    ],
)
def test_mistakes_are_told_in_one_line_before_anything_runs(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(benchmark, "launch_process", lambda *_, **__: pytest.fail("it ran"))

    assert bench(*arguments) == 2

    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_progress_is_one_line_on_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)

    assert bench("a.b:c", "--launches", "2") == 0
    assert bench("a.b:c", "--launches", "2", "--quiet") == 0

    assert "Traceback" not in capsys.readouterr().err


def test_file_is_plain_json(tmp_path: Path) -> None:
    bench("a.b:c", "--launches", "1", "--output", str(tmp_path / "r.json"))

    assert json.loads((tmp_path / "r.json").read_text())["kind"] == "measurement"


def test_too_few_launches_for_a_verdict_are_told_before(capsys: pytest.CaptureFixture[str]) -> None:
    assert bench("a.b:c", "--against", "a.b:d", "--against", "a.b:e", "--launches", "2") == 0
    assert "a verdict on 2 comparisons needs 7 launches; there will be 2" in capsys.readouterr().err

    assert bench("a.b:c", "--against", "a.b:d", "--launches", "6") == 0
    assert "needs" not in capsys.readouterr().err
