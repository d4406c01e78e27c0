from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest

from deep500.core.errors import CheckpointError, RecipeError
from deep500.measure.metrics.wallclock_time import WallclockTime
from deep500.recipe.checkpoints import parse_interval
from deep500.recipe.recipe import Recipe
from deep500.recipe.result import RecipeResult
from deep500.recipe.runner import execute_recipe
from deep500.training.metrics.test_accuracy import TestAccuracy
from deep500.training.metrics.training_accuracy import TrainingAccuracy
from deep500.training.training_event import RunnerEvent
from tests.unit.recipe.support import check_schema, run_python, signalled, small_parts, write_recipe


class Dying(RunnerEvent):
    """Fails once after a number of steps, in the first process of a run."""

    at = 0

    def after_step(self, step: int, runner: Any, training_stats: Any, outputs: Any, loss: Any) -> None:
        if step + 1 == Dying.at:
            raise MemoryError("planted")


def execute(at: int = 0, options: dict[str, Any] | None = None, **changes: Any) -> RecipeResult:
    Dying.at = at
    metrics = [(TestAccuracy(), 0.0), (TrainingAccuracy(), None), (WallclockTime(), None)]
    return execute_recipe(Recipe(*small_parts(events=[Dying], **changes), metrics), **(options or {}))


def without_times(result: RecipeResult) -> Any:
    content = result.to_dict()
    statistics = content["statistics"]
    passes = [p for epoch in statistics["epochs"] for p in (epoch["training"], epoch["test"])]
    for record in (statistics, *passes):
        for key in ("duration_s", "training_s", "testing_s"):
            record.pop(key, None)
    kept = ("configuration_hash", "initial_weights_hash", "first_epoch_batches_hash", "statistics", "complete")
    return {key: content[key] for key in kept}, content["metrics"][:2]


@pytest.mark.parametrize("at", range(1, 13))
def test_result_of_a_resumed_run_covers_the_whole_training(tmp_path: Path, at: int) -> None:
    options = {"checkpoint": tmp_path / "c", "checkpoint_every": "1steps"}
    with pytest.raises(MemoryError):
        execute(at, options)
    again = {"resume": tmp_path / "c", "output": tmp_path / "r.json"}
    if at == 1:  # it died before the first checkpoint
        with pytest.raises(CheckpointError, match="holds no checkpoint"):
            execute(0, again)
        return
    result, whole = execute(0, again), execute()

    assert without_times(result) == without_times(whole)
    assert result.passed
    assert [entry["step"] for entry in result.resumed] == [at - 1]
    content = json.loads((tmp_path / "r.json").read_text())
    assert content["resumed"][0]["checkpoint"] == f"step-{at - 1:09d}"
    check_schema(content)
    finished = execute(0, again)
    assert without_times(finished) == without_times(whole)
    assert finished.resumed == result.resumed
    assert finished.statistics["training_s"] == result.statistics["training_s"]


def test_time_of_earlier_processes_counts(tmp_path: Path) -> None:
    with pytest.raises(MemoryError):
        execute(8, {"checkpoint": tmp_path / "c", "checkpoint_every": 2})
    result = execute(0, {"resume": tmp_path / "c"})

    time_s = result.metrics[2].value
    assert time_s is not None
    assert time_s >= result.statistics["training_s"]


def test_another_recipe_is_refused(tmp_path: Path) -> None:
    execute(0, {"checkpoint": tmp_path / "c"})
    for changes, told in (
        ({"batch_size": 4}, "batch_size was 8, now it is 4"),
        ({"seed": 9}, "seed was 0, now it is 9"),
        ({"epochs": 3}, "epochs was 2, now it is 3"),
        ({"optimizer_kwargs": {"learning_rate": 0.3}}, "optimizer_kwargs.learning_rate was 0.1, now it is 0.3"),
    ):
        with pytest.raises(CheckpointError, match=f"of another training: .*{told}"):
            execute(0, {"resume": tmp_path / "c"}, **changes)


def test_folders(tmp_path: Path) -> None:
    both = {"checkpoint": tmp_path / "c", "resume": tmp_path / "c"}
    assert execute(0, both).resumed == []  # nothing there yet: it begins
    assert execute(0, both).complete
    with pytest.raises(RecipeError, match=r"holds checkpoints already\. Go on with them"):
        execute(0, {"checkpoint": tmp_path / "c"})
    with pytest.raises(CheckpointError, match="does not exist"):
        execute(0, {"resume": tmp_path / "none"})
    with pytest.raises(RecipeError, match="without a folder"):
        execute(0, {"checkpoint_every": 3})


@pytest.mark.parametrize("text", ["0", "-1", "1.5", "", "steps", "3 weeks", True, "1" * 30])
def test_intervals_that_are_not_accepted(text: Any) -> None:
    with pytest.raises(RecipeError, match="accepted are a number of steps or epochs"):
        parse_interval(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [(None, {"every_epochs": 1}), (5, {"every_steps": 5}), ("7", {"every_steps": 7}), ("2epochs", {"every_epochs": 2})],
)
def test_intervals(text: Any, expected: dict[str, int]) -> None:
    assert parse_interval(text) == expected


@pytest.mark.parametrize(
    ("sent", "code"), [pytest.param(signal.SIGINT, 130, marks=pytest.mark.slow), (signal.SIGTERM, 143)]
)
def test_command_makes_a_checkpoint_on_a_signal_and_goes_on(tmp_path: Path, sent: signal.Signals, code: int) -> None:
    import sys

    write_recipe(tmp_path, epochs=400)
    command = [sys.executable, "-m", "deep500", "run", "mine.py", "--set", "batch_size=16"]
    command += ["--checkpoint", "c", "--checkpoint-every", "100epochs", "--output", "r.json"]
    done = signalled(command, sent, tmp_path)

    assert done.returncode == code, done.stderr
    assert f"{sent.name}: a checkpoint is written after this step" in done.stderr
    assert "interrupted; it goes on with --resume c" in done.stdout
    assert json.loads((tmp_path / "r.json").read_text())["complete"] is False
    options = ("--set", "batch_size=16", "--resume", "c", "--output", "r.json")
    again = run_python("-m", "deep500", "run", "mine.py", *options, cwd=tmp_path, OMP_NUM_THREADS="1")
    assert again.returncode == 0, again.stderr
    content = json.loads((tmp_path / "r.json").read_text())
    assert (content["complete"], len(content["statistics"]["epochs"]), len(content["resumed"])) == (True, 400, 1)
    finished = run_python("-m", "deep500", "run", "mine.py", *options, cwd=tmp_path, OMP_NUM_THREADS="1")
    assert finished.returncode == 0
    assert "The training has ended already" in finished.stdout
    other = run_python("-m", "deep500", "run", "mine.py", "--resume", "c", cwd=tmp_path)
    assert other.returncode == 2
    assert "batch_size was 16, now it is 32" in other.stderr


@pytest.mark.parametrize("option", ["checkpoint", "resume"])
@pytest.mark.parametrize("text", ["", " "])
def test_an_empty_text_is_not_the_current_folder(option: str, text: str) -> None:
    with pytest.raises(RecipeError, match=f"--{option} was given as an empty text"):
        execute(options={option: text})


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "link").symlink_to(tmp_path / "nothing")
    for name in ("file", "link"):
        with pytest.raises(RecipeError, match="is no folder"):
            execute(options={"checkpoint": tmp_path / name})
