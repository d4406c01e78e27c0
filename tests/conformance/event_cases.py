"""For each event that is registered: how the suite makes one, and what it must show after a training."""

from __future__ import annotations

import csv
import importlib.util
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deep500.training import events

__all__ = ["EVENT_CASES", "STEPS", "EventCase"]

#: Steps of the suite's training: 2 epochs of 60 samples in minibatches of 16.
STEPS = 8


@dataclass(frozen=True)
class EventCase:
    """One event.

    Attributes:
        make: Makes one that writes into a folder.
        check: Checks it after the training, in the same folder.
        module: The library that it needs besides.
    """

    make: Callable[[Path], Any]
    check: Callable[[Any, Path], None]
    module: str | None = None

    @property
    def is_installed(self) -> bool:
        return self.module is None or importlib.util.find_spec(self.module) is not None


def _picture(name: str) -> Callable[[Any, Path], None]:
    def check(event: Any, folder: Path) -> None:
        assert (folder / name).stat().st_size > 1000

    return check


def _csv(event: Any, folder: Path) -> None:
    with open(folder / "log.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [int(row["step"]) for row in rows] == list(range(1, STEPS + 1))
    assert all(float(row["loss"]) > 0 for row in rows)


def _jsonl(event: Any, folder: Path) -> None:
    rows = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    assert [row["kind"] for row in rows] == [*["step"] * 4, "test", "epoch"] * 2


def _checkpoint(event: Any, folder: Path) -> None:
    assert event.failures == 0
    assert event.written is not None


def _schedule(event: Any, folder: Path) -> None:
    assert event.value is not None
    assert 0 < event.value < 0.1


def _early(event: Any, folder: Path) -> None:
    assert event.best is not None


def _target(event: Any, folder: Path) -> None:
    assert event.reached == (event.training_s is not None)


def _files(event: Any, folder: Path) -> None:
    assert list((folder / "board").iterdir())


def _run_id(event: Any, folder: Path) -> None:
    assert event.run_id


def _mlflow(folder: Path) -> Any:
    return events.MLflowEvent(tracking_uri=f"sqlite:///{folder / 'runs.db'}")


def _nothing(event: Any, folder: Path) -> None:
    """Check nothing: it shows itself on a terminal only, or its own tests look at it."""


EVENT_CASES: dict[str, EventCase] = {
    "batch_hash": EventCase(lambda _: events.BatchHashEvent(), lambda event, _: _is_true(event.complete)),
    "checkpoint": EventCase(lambda f: events.CheckpointEvent(f / "checkpoints", every_steps=3), _checkpoint),
    "csv_log": EventCase(lambda f: events.CSVLogEvent(f / "log.csv", "step"), _csv),
    "curves": EventCase(lambda f: events.CurvesEvent(f / "curves.svg"), _picture("curves.svg")),
    "early_stopping": EventCase(lambda _: events.EarlyStoppingEvent("test_loss", 5, restore_best=True), _early),
    "jsonl_log": EventCase(lambda f: events.JSONLLogEvent(f / "log.jsonl"), _jsonl),
    "mlflow": EventCase(_mlflow, _run_id, "mlflow"),
    "nan_guard": EventCase(lambda _: events.NaNGuardEvent(3), lambda event, _: _is_true(event.culprit is None)),
    "progress_bar": EventCase(lambda _: events.TerminalBarEvent(), _nothing),
    "schedule": EventCase(lambda _: events.ScheduleEvent("learning_rate", "cosine"), _schedule),
    "step_time_boxes": EventCase(lambda f: events.StepTimeBoxesEvent(f / "boxes.png"), _picture("boxes.png")),
    "target_accuracy": EventCase(lambda _: events.TargetAccuracyEvent(1.0, stop=False), _target),
    "tensorboard": EventCase(lambda f: events.TensorBoardEvent(f / "board"), _files, "tensorboardX"),
    "time_limit": EventCase(lambda _: events.TimeLimitEvent(3600.0), lambda event, _: _is_true(event.elapsed_s > 0)),
    "wandb": EventCase(lambda f: events.WandbEvent(mode="offline", folder=f), _run_id, "wandb"),
    "wrong_predictions": EventCase(lambda f: events.WrongPredictionsEvent(f / "wrong.png", 6), _picture("wrong.png")),
}


def _is_true(value: bool) -> None:
    assert value
