from __future__ import annotations

import errno
import logging
import os
import signal
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from deep500.core.errors import CheckpointError, FileWriteError
from deep500.training.checkpoints import writer as writer_module
from deep500.training.checkpoints.loading import checkpoint_folders, load_latest
from deep500.training.events.checkpoint import CheckpointEvent
from deep500.training.optimizers.gradient_descent import GradientDescent
from deep500.training.statistics import Outcome
from deep500.training.training_event import RunnerEvent
from tests.unit.training.support import make_trainer


def steps_of(folder: Path) -> list[int]:
    return [int(path.name.removeprefix("step-")) for path in checkpoint_folders(folder)]


@pytest.mark.parametrize(
    ("interval", "expected"),
    [
        ({}, [4, 8, 12]),
        ({"every_epochs": 2}, [8, 12]),
        ({"every_steps": 5}, [5, 10, 12]),
        ({"every_steps": 4}, [4, 8, 12]),
    ],
)
def test_intervals(tmp_path: Path, interval: dict[str, int], expected: list[int]) -> None:
    event = CheckpointEvent(tmp_path, keep=9, **interval)
    make_trainer(GradientDescent).run_loop(3, [event])

    assert steps_of(tmp_path) == expected
    assert event.written == checkpoint_folders(tmp_path)[-1]
    assert load_latest(tmp_path).state["statistics"]["outcome"] == "completed"


def test_last_checkpoint_is_of_the_finished_training(tmp_path: Path) -> None:
    trainer = make_trainer(GradientDescent)
    trainer.run_loop(2, [CheckpointEvent(tmp_path)])
    again = make_trainer(GradientDescent)
    again.restore(load_latest(tmp_path).state)
    stats = again.run_loop(2, [CheckpointEvent(tmp_path)])

    assert stats.outcome is Outcome.COMPLETED
    assert again.executor.network.weights_hash() == trainer.executor.network.weights_hash()


class Signalling(RunnerEvent):
    """Sends the process signals at one place."""

    def __init__(self, hook: str, number: int, times: int = 1, at: int = 2) -> None:
        self.hook, self.number, self.times, self.left = hook, number, times, at
        self.went_on = False

    def send(self, hook: str) -> None:
        if hook == self.hook:
            self.left -= 1
            if self.left == 0:
                for _ in range(self.times):
                    os.kill(os.getpid(), self.number)
                self.went_on = True

    def before_step(self, *arguments: Any) -> None:
        self.send("before_step")

    def after_test_batch(self, *arguments: Any) -> None:
        self.send("after_test_batch")


@pytest.fixture
def terminating() -> Any:
    """Let SIGTERM raise KeyboardInterrupt, as the command does."""

    def raise_it(number: int, frame: Any) -> None:
        raise KeyboardInterrupt

    previous = signal.signal(signal.SIGTERM, raise_it)
    yield raise_it
    signal.signal(signal.SIGTERM, previous)


@pytest.mark.parametrize(("hook", "expected"), [("before_step", 2), ("after_test_batch", 4)])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signal_makes_a_checkpoint_and_ends_the_training(
    tmp_path: Path, number: signal.Signals, hook: str, expected: int, terminating: Any
) -> None:
    handlers = [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)]
    sender = Signalling(hook, number)
    trainer = make_trainer(GradientDescent)
    with pytest.raises(KeyboardInterrupt):
        trainer.run_loop(3, [sender, CheckpointEvent(tmp_path, every_epochs=5)])

    assert sender.went_on
    assert steps_of(tmp_path) == [expected]
    assert trainer.statistics is not None
    assert trainer.statistics.outcome is Outcome.INTERRUPTED
    assert [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)] == handlers
    whole, again = make_trainer(GradientDescent), make_trainer(GradientDescent)
    again.restore(load_latest(tmp_path).state)
    again.run_loop(3, [])
    whole.run_loop(3, [])
    assert again.executor.network.weights_hash() == whole.executor.network.weights_hash()


def test_second_signal_acts_at_once(tmp_path: Path) -> None:
    sender = Signalling("before_step", signal.SIGINT, times=2)
    with pytest.raises(KeyboardInterrupt):
        make_trainer(GradientDescent).run_loop(3, [sender, CheckpointEvent(tmp_path)])

    assert not sender.went_on
    assert steps_of(tmp_path) == []


def test_outside_of_the_main_thread_signals_are_left_alone(tmp_path: Path) -> None:
    found: list[Any] = []
    thread = threading.Thread(
        target=lambda: found.append(make_trainer(GradientDescent).run_loop(1, [CheckpointEvent(tmp_path)]))
    )
    thread.start()
    thread.join()

    assert found[0].complete
    assert steps_of(tmp_path) == [4]


def test_full_disk_does_not_end_the_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    original = writer_module._write_file
    calls: list[str] = []

    def failing(path: Path, content: bytes) -> None:
        calls.append(path.name)
        if 3 < len(calls) < 6:
            raise OSError(errno.ENOSPC, "No space left on device")
        original(path, content)

    monkeypatch.setattr(writer_module, "_write_file", failing)
    event = CheckpointEvent(tmp_path, keep=9)
    with caplog.at_level(logging.WARNING):
        stats = make_trainer(GradientDescent).run_loop(4, [event])

    assert (stats.outcome, event.failures) == (Outcome.COMPLETED, 2)
    assert steps_of(tmp_path) == [4, 16]
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []
    messages = [record.getMessage() for record in caplog.records]
    assert len(messages) == 2
    assert (
        "No space left on device. The training goes on without the checkpoint of step 8; the last one is" in messages[0]
    )


def test_diverged_training_is_stopped_and_does_not_replace_what_was_kept(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    trainer = make_trainer(GradientDescent)

    class Breaking(RunnerEvent):
        def after_step(self, step: int, runner: Any, training_stats: Any, outputs: Any, loss: Any) -> None:
            if step == 9:
                name = trainer.executor.network.get_params()[0]
                trainer.executor.network.feed_tensor(name, np.full_like(trainer.executor.fetch(name), np.nan))

    with caplog.at_level(logging.WARNING):
        stats = trainer.run_loop(9, [Breaking(), CheckpointEvent(tmp_path)])

    assert (stats.outcome, stats.steps) == (Outcome.STOPPED, 12)
    assert steps_of(tmp_path) == [4, 8]
    assert any("The training diverged" in record.getMessage() for record in caplog.records)


def test_what_cannot_work_is_found_out_before_the_first_step(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    trainer = make_trainer(GradientDescent)
    with pytest.raises(FileWriteError):
        trainer.run_loop(1, [CheckpointEvent(tmp_path / "file")])
    assert trainer.statistics is not None
    assert trainer.statistics.steps == 0


@pytest.mark.parametrize("wrong", [{"every_steps": 0}, {"every_epochs": 1.5}, {"keep": 0}, {"every_steps": True}])
def test_arguments_that_are_not_accepted(tmp_path: Path, wrong: dict[str, Any]) -> None:
    with pytest.raises(CheckpointError, match="was given as"):
        CheckpointEvent(tmp_path, **wrong)
