from __future__ import annotations

import csv
import os
from pathlib import Path
from typing import Any

import pytest

from deep500.core.errors import FileWriteError, TrainingError
from deep500.training.events.csv_log import CSVLogEvent
from deep500.training.events.schedule import ScheduleEvent
from deep500.training.optimizers.gradient_descent import GradientDescent
from deep500.training.training_event import RunnerEvent, StopTraining
from tests.unit.training.support import LinearExecutor, make_trainer


def rows(path: Path) -> list[dict[str, str]]:
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


class Stop(RunnerEvent):
    """Takes a snapshot after a step, and stops some steps later."""

    def __init__(self, snapshot_at: int, stop_at: int) -> None:
        self.snapshot_at, self.stop_at = snapshot_at, stop_at
        self.snapshot: Any = None

    def after_step(self, step: int, runner: Any, training_stats: Any, outputs: Any, loss: Any) -> None:
        if step + 1 == self.snapshot_at:
            self.snapshot = runner.state()
        if step + 1 == self.stop_at:
            raise StopTraining


def test_a_row_a_step(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    stats = make_trainer(GradientDescent).run_loop(
        2, [ScheduleEvent("learning_rate", lambda step: 0.1 * (step + 1)), CSVLogEvent(path, "step")]
    )

    found = rows(path)
    assert [int(row["step"]) for row in found] == list(range(1, 9))
    assert [int(row["epoch"]) for row in found] == [0] * 4 + [1] * 4
    assert [int(row["samples"]) for row in found] == list(range(7, 57, 7))
    losses = [loss for record in stats.epochs if record.training for loss in record.training.step_losses]
    assert [float(row["loss"]) for row in found] == losses
    assert [float(row["learning_rate"]) for row in found] == pytest.approx([0.1 * n for n in range(1, 9)])
    times = [float(row["elapsed_s"]) for row in found]
    assert times == sorted(times)


def test_a_row_an_epoch(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    stats = make_trainer(GradientDescent).run_loop(2, [CSVLogEvent(path)])

    first, second = rows(path)
    assert (first["epoch"], first["step"], second["epoch"], second["step"]) == ("0", "4", "1", "8")
    record = stats.epochs[1]
    assert record.training is not None
    assert record.test is not None
    assert float(second["training_loss"]) == record.training.loss
    assert second["training_accuracy_percent"] == ""
    assert float(second["test_accuracy_percent"]) == record.test.accuracy_percent
    assert float(second["training_s"]) == record.training.duration_s


def test_every_so_many_steps(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    make_trainer(GradientDescent).run_loop(2, [CSVLogEvent(path, "step", 3)])

    assert [row["step"] for row in rows(path)] == ["3", "6"]


def test_losses_are_read_in_blocks(tmp_path: Path) -> None:
    executor = LinearExecutor()
    reads: list[int] = []

    class Reads(RunnerEvent):
        def after_step(self, step: int, runner: Any, training_stats: Any, outputs: Any, loss: Any) -> None:
            reads.append(executor.scalars_read)

    trainer = make_trainer(GradientDescent, executor=executor, batch_size=1, tested=False)
    trainer.run_loop(1, [CSVLogEvent(tmp_path / "log.csv", "step"), Reads()])
    assert reads == [0] * 30


@pytest.mark.parametrize("every", ["step", "epoch"])
@pytest.mark.parametrize(("snapshot_at", "stop_at"), [(3, 3), (3, 7), (4, 6), (6, 8)])
def test_a_training_that_goes_on_appends(tmp_path: Path, every: str, snapshot_at: int, stop_at: int) -> None:
    """Rows of steps after the checkpoint, which are done again, are there once."""
    whole, path = tmp_path / "whole.csv", tmp_path / "log.csv"
    make_trainer(GradientDescent).run_loop(2, [CSVLogEvent(whole, every)])
    stop = Stop(snapshot_at, stop_at)
    make_trainer(GradientDescent).run_loop(2, [CSVLogEvent(path, every), stop])
    trainer = make_trainer(GradientDescent)
    trainer.restore(stop.snapshot)
    trainer.run_loop(2, [CSVLogEvent(path, every)])

    timeless = [{k: v for k, v in row.items() if not k.endswith("_s")} for row in rows(path)]
    assert timeless == [{k: v for k, v in row.items() if not k.endswith("_s")} for row in rows(whole)]


def test_a_new_training_replaces_an_older_log(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("something else\n" * 100)
    make_trainer(GradientDescent).run_loop(1, [CSVLogEvent(path)])

    assert len(rows(path)) == 1
    assert path.read_text().startswith("epoch,step,")


def test_a_log_that_is_gone_is_begun_anew_aloud(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path, stop = tmp_path / "log.csv", Stop(3, 3)
    make_trainer(GradientDescent).run_loop(2, [CSVLogEvent(path, "step"), stop])
    path.unlink()
    trainer = make_trainer(GradientDescent)
    trainer.restore(stop.snapshot)
    trainer.run_loop(2, [CSVLogEvent(path, "step")])

    assert "lines of earlier steps are missing" in caplog.text
    assert [row["step"] for row in rows(path)] == ["4", "5", "6", "7", "8"]


@pytest.mark.parametrize("name", ["nowhere/log.csv", ".", "/dev/null/x", "/dev/full"])
def test_a_path_that_cannot_be_written_ends_it_before_it_begins(tmp_path: Path, name: str) -> None:
    trainer = make_trainer(GradientDescent)
    with pytest.raises(FileWriteError, match="The CSV log cannot be written to"):
        trainer.run_loop(1, [CSVLogEvent(tmp_path / name)])
    assert trainer.statistics is not None
    assert trainer.statistics.steps == 0


def test_a_full_disk_is_told_once_and_the_training_goes_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    event = CSVLogEvent(tmp_path / "log.csv")

    class Full(RunnerEvent):
        def before_epoch(self, epoch: int, runner: Any, training_stats: Any) -> None:
            if epoch == 1:
                assert event._file is not None
                os.dup2(os.open("/dev/full", os.O_WRONLY), event._file.fileno())

    stats = make_trainer(GradientDescent).run_loop(4, [event, Full()])

    assert stats.complete
    assert caplog.text.count("The CSV log cannot be written any more: [Errno 28]") == 1
    assert len(rows(tmp_path / "log.csv")) == 1


def test_a_stopped_epoch_has_its_row(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    make_trainer(GradientDescent).run_loop(2, [CSVLogEvent(path), Stop(6, 6)])

    assert [row["step"] for row in rows(path)] == ["4", "6"]


@pytest.mark.parametrize("arguments", [(3,), ("",), ("a.csv", "batch"), ("a.csv", "step", 0)])
def test_arguments_are_checked(arguments: Any) -> None:
    with pytest.raises(TrainingError, match="accepted are"):
        CSVLogEvent(*arguments)
