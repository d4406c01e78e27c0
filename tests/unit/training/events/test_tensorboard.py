from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from deep500.core.errors import FileWriteError, MissingDependencyError, TrainingError
from deep500.core.requirement import Requirement
from deep500.training.events.schedule import ScheduleEvent
from deep500.training.events.tensorboard import TensorBoardEvent
from deep500.training.metrics.training_accuracy import TrainingAccuracy
from deep500.training.optimizers.gradient_descent import GradientDescent
from tests.unit.training.events.test_csv_log import Stop
from tests.unit.training.support import make_trainer

needs_library = pytest.mark.skipif(
    importlib.util.find_spec("tensorboardX") is None, reason="tensorboardX is not installed"
)


def scalars(folder: Path) -> dict[str, list[tuple[int, float]]]:
    """Return what TensorBoard's own reader finds."""
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    reader = accumulator.EventAccumulator(str(folder), size_guidance={"scalars": 0})
    reader.Reload()
    return {tag: [(e.step, e.value) for e in reader.Scalars(tag)] for tag in reader.Tags()["scalars"]}


@needs_library
def test_tensorboards_reader_finds_what_was_measured(tmp_path: Path) -> None:
    rate = ScheduleEvent("learning_rate", lambda step: 0.25 * (step + 1))
    stats = make_trainer(GradientDescent).run_loop(2, [rate, TrainingAccuracy(), TensorBoardEvent(tmp_path / "run")])

    found = scalars(tmp_path / "run")
    losses = [loss for record in stats.epochs if record.training for loss in record.training.step_losses]
    assert [step for step, _ in found["loss/training"]] == list(range(1, 9))
    assert [value for _, value in found["loss/training"]] == pytest.approx(losses)
    assert [value for _, value in found["hyperparameters/learning_rate"]] == [0.25 * n for n in range(1, 9)]
    assert found["loss/test"] == [(e.step, pytest.approx(e.result.loss)) for e in stats.all_evaluations]
    assert [step for step, _ in found["accuracy_percent/training"]] == [4, 8]
    assert "speed/samples_per_s" in found


@needs_library
def test_a_training_that_goes_on_takes_the_place_of_what_came_after(tmp_path: Path) -> None:
    stop = Stop(3, 6)
    make_trainer(GradientDescent).run_loop(2, [TensorBoardEvent(tmp_path), stop])
    trainer = make_trainer(GradientDescent)
    trainer.restore(stop.snapshot)
    trainer.run_loop(2, [TensorBoardEvent(tmp_path)])

    assert [step for step, _ in scalars(tmp_path)["loss/training"]] == list(range(1, 9))


@needs_library
def test_a_folder_that_cannot_be_made_ends_it_before_it_begins(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    trainer = make_trainer(GradientDescent)
    with pytest.raises(FileWriteError, match="TensorBoard's files cannot be written to"):
        trainer.run_loop(1, [TensorBoardEvent(tmp_path / "file")])
    assert trainer.statistics is not None
    assert trainer.statistics.steps == 0


@needs_library
def test_a_failure_later_is_told_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: Any, *arguments: Any, **named: Any) -> None:
        raise OSError("No space left on device")

    monkeypatch.setattr("tensorboardX.SummaryWriter.add_scalar", fail)
    stats = make_trainer(GradientDescent).run_loop(3, [TensorBoardEvent(tmp_path)])

    assert stats.complete
    assert caplog.text.count("The TensorBoard files cannot be written any more: No space left on device.") == 1


def test_without_the_library_the_training_does_not_begin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TensorBoardEvent, "requirement", Requirement("no_such_module", "tensorboard", ()))
    trainer = make_trainer(GradientDescent)
    with pytest.raises(MissingDependencyError, match=r"pip install 'deep500\[tensorboard\]'"):
        trainer.run_loop(1, [TensorBoardEvent(tmp_path)])
    assert trainer.statistics is not None
    assert trainer.statistics.steps == 0


@pytest.mark.parametrize("name", ["tensorboard", "mlflow", "wandb"])
def test_the_library_is_imported_when_a_training_begins(name: str) -> None:
    script = (
        f"import sys, deep500.training.events.{name} as m; from deep500.training.catalogue import EVENTS; "
        f"EVENTS.get('{name}'); assert not {{'tensorboardX', 'mlflow', 'wandb'}} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


@pytest.mark.parametrize("arguments", [(3,), ("",), ("folder", 0)])
def test_arguments_are_checked(arguments: Any) -> None:
    with pytest.raises(TrainingError, match="accepted are"):
        TensorBoardEvent(*arguments)
