"""``deep500 scale``: a cheap run from end to end, and mistakes in one line each."""

from __future__ import annotations

import dataclasses
import json
import shutil
import xml.etree.ElementTree as ET
from pathlib import Path

import psutil
import pytest

from deep500.cli import scale
from deep500.cli.main import run_command
from deep500.core.errors import MeasurementError
from deep500.distributed.scaling.design import available_processors
from deep500.distributed.scaling.summary import Estimate
from tests.unit.distributed.scaling.test_result import result

Capture = pytest.CaptureFixture[str]

__all__ = ["result"]

needs_mpi = pytest.mark.skipif(
    not (Path(shutil.which("python") or "/").parent / "mpiexec").exists() and shutil.which("mpiexec") is None,
    reason="mpiexec is not installed",
)


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@needs_mpi
@pytest.mark.timeout(120)
def test_from_end_to_end(capsys: Capture) -> None:
    arguments = ["scale", "digits_mlp", "--ranks", "1,2", "--steps", "5", "--launches", "1", "--warm-up", "2"]
    more = ["--framework", "reference", "--set", "batch_size=64", "--output", "r.json", "--picture", "r.svg"]

    assert run_command([*arguments, *more]) == 0, capsys.readouterr().err

    text = capsys.readouterr().out
    assert "strong scaling, 64 samples a step of all ranks together" in text
    assert "Base case of speedup and efficiency: the same parallel program on a single rank" in text
    assert "held out" in text
    assert text.endswith("The result is in r.json\nThe picture is in r.svg\n")
    document = json.loads(Path("r.json").read_text())
    assert [point["ranks"] for point in document["points"]] == [1, 2]
    one, two = (document["launches"][ranks][0] for ranks in ("1", "2"))
    assert [len(row) for row in one["step_s"]] == [5]
    assert [len(row) for row in two["step_s"]] == [5, 5]
    gradient_bytes = document["facts"]["gradient_bytes"]
    assert one["bytes_a_step"][0]["sent_bytes"] == 0
    assert [counted["payload_bytes"] for counted in two["bytes_a_step"]] == [gradient_bytes] * 2
    assert sum(counted["sent_bytes"] for counted in two["bytes_a_step"]) == 2 * gradient_bytes  # 2 (p - 1) n
    low, high = two["clock_offset_s"][1]
    assert low <= 0 <= high  # both ranks read the clock of one machine
    assert document["points"][1]["oversubscribed"] is (available_processors() < 2)
    assert document["prediction"]["points"]["ring_allreduce"][-1]["ranks"] == 64
    ET.parse("r.svg")
    assert not [child for child in psutil.Process().children(recursive=True) if "mpiexec" in child.name()]


@pytest.mark.slow
@needs_mpi
@pytest.mark.timeout(600)
@pytest.mark.parametrize("framework", ["reference", "pytorch", "tensorflow"])
def test_weak_scaling_with_intervals(framework: str) -> None:
    arguments = ["scale", "digits_lenet", "--ranks", "1,2", "--mode", "weak", "--steps", "6", "--launches", "6"]

    assert run_command([*arguments, "--framework", framework, "--output", "r.json"]) == 0

    document = json.loads(Path("r.json").read_text())
    for point in document["points"]:
        assert point["step_s"]["basis"] == "launches"
        assert point["step_s"]["low"] <= point["step_s"]["value"] <= point["step_s"]["high"]
        for rank in point["by_rank"]:
            assert rank["compute_s"]["value"] > 0
            assert rank["exposed_s"]["value"] <= rank["exchange_s"]["value"] + 1e-4
    efficiency = document["points"][1]["efficiency"]
    assert 0 < efficiency["low"] <= efficiency["value"] <= efficiency["high"]
    assert document["prediction"]["points"]["ring_allreduce"][-1]["ranks"] == 1024


@pytest.mark.slow
@needs_mpi
@pytest.mark.timeout(300)
def test_failure_of_a_launch_is_one_line(capsys: Capture) -> None:
    arguments = ["scale", "digits_mlp", "--ranks", "1,2", "--launches", "1", "--framework", "reference"]

    assert run_command([*arguments, "--set", "dataset_kwargs.no_such=1"]) == 2
    captured = capsys.readouterr()
    assert captured.err.count("\n") == 1
    assert "no_such" in captured.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["digits_mlp"], "Missing option"),
        (["digits_mlp", "--ranks", "one"], "accepted are numbers such as 1,2,4"),
        (["digits_mlp", "--ranks", "0"], "whole numbers from 1"),
        (["digits_mlp", "--ranks", "1,2", "--mode", "week"], "Did you mean 'weak'"),
        (["digits_mlp", "--ranks", "1,2", "--launches", "0"], "launches"),
        (["digits_mlp", "--ranks", "1,2", "--predict-to", "-1"], "predict_to"),
        (["digits_mlp", "--ranks", "1,2", "--picture", "x.bmp"], "accepted are names that end with"),
        (["digits_mlp", "--ranks", "1,2", "--output", "no/such/x.json"], "result"),
        (["digits_mlp", "--ranks", "1,2", "--output", "x.svg", "--picture", "x.svg"], "x.svg"),
        (["digits_mlpp", "--ranks", "1,2"], "digits_mlp"),
        (["digits_mlp", "--ranks", "1,3"], "nearest for 3: 30 and 33"),
        (["digits_mlp", "--ranks", "1,2", "--set", "batchsize=3"], "batch_size"),
    ],
)
def test_mistakes_are_one_line(arguments: list[str], message: str, capsys: Capture) -> None:
    assert run_command(["scale", *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert message in captured.err
    assert not list(Path().iterdir())


def test_tables_of_a_result(result, capsys: Capture) -> None:
    scale.show_scaling(result)
    lines = capsys.readouterr().out.splitlines()
    table = [line.split() for line in lines]

    assert lines[0] == "digits, some 1.0, scheme allreduce: weak scaling, 32 samples a step of each rank"
    assert lines[1].startswith("6 launches of 30 steps, 1 thread a rank")
    row = next(line for line in lines if line.startswith("64 ") and "oversubscribed" in line)
    assert "740 ms" in row
    assert sum(cells[:1] == ["64"] for cells in table) == 1 + 64 + 1  # the step, its ranks, the prediction
    assert any(cells[:1] == ["1,024"] for cells in table)
    assert lines[-1] == "Note: x"


def test_interval_from_zero_has_the_unit_of_its_end() -> None:
    assert scale._cells("s", Estimate(0.0, 0.0, 0.0085)) == ("0 ms", "[0 .. 8.5]")
    assert scale._cells("s", Estimate(0.002)) == ("2 ms", "")
    assert scale._cells("%", Estimate(50.0, 40.0, 60.0)) == ("50.0 %", "[40.0 .. 60.0]")


def test_error_of_the_run_is_told(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    def fail(*arguments: object, **named: object) -> None:
        raise MeasurementError("a launch failed")

    monkeypatch.setattr("deep500.recipe.scaling.scale_recipe", fail)
    assert run_command(["scale", "digits_mlp", "--ranks", "1"]) == 2
    assert capsys.readouterr().err == "Error: a launch failed\n"


def test_help(capsys: Capture) -> None:
    assert run_command(["scale", "--help"]) == 0
    assert "Exit code:" in capsys.readouterr().out


@pytest.mark.parametrize(("broken", "code"), [(KeyboardInterrupt(), 130), (MeasurementError("a launch failed"), 2)])
def test_what_was_measured_is_kept_where_a_run_breaks_off(
    broken: BaseException, code: int, result, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    def break_off(*arguments: object, on_launch, **named: object) -> None:
        partial = dataclasses.replace(result, complete=False, prediction=None, launches={1: result.launches[1]})
        on_launch(partial)
        raise broken

    monkeypatch.setattr("deep500.recipe.scaling.scale_recipe", break_off)
    arguments = ["scale", "digits_mlp", "--ranks", "1,2,64", "--output", "r.json", "--picture", "r.svg"]
    assert run_command(arguments) == code

    captured = capsys.readouterr()
    assert captured.out.splitlines()[1] == "Incomplete: 6 of 18 launches were measured; nothing on 2, 64 ranks."
    assert captured.out.endswith("The result is in r.json\n")
    assert captured.err == ("Error: a launch failed\n" if code == 2 else "")
    assert json.loads(Path("r.json").read_text())["complete"] is False
    assert not Path("r.svg").exists()


def test_interruption_before_anything_was_measured_says_so(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    def interrupt(*arguments: object, **named: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("deep500.recipe.scaling.scale_recipe", interrupt)
    assert run_command(["scale", "digits_mlp", "--ranks", "1", "--output", "r.json"]) == 130
    captured = capsys.readouterr()
    assert (captured.out, captured.err.count("\n")) == ("", 1)
    assert "nothing was measured" in captured.err
    assert not Path("r.json").exists()
