from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from deep500.core.errors import TrainingError
from deep500.training.events import step_time_boxes
from deep500.training.events.step_time_boxes import StepTimeBoxesEvent
from deep500.training.optimizers.gradient_descent import GradientDescent
from deep500.training.training_event import RunnerEvent, SamplerEvent
from tests.unit.training.support import LinearExecutor, make_trainer


class Clock(RunnerEvent, SamplerEvent):
    """Makes reading take 2 s and a step 5 s of a clock of its own; a test takes 1000 s."""

    def __init__(self) -> None:
        self.now_ns = 10**9

    def after_sampling(self, sampler: Any, samples: Any) -> None:
        self.now_ns += 2 * 10**9

    def after_step(self, step: int, runner: Any, training_stats: Any, outputs: Any, loss: Any) -> None:
        self.now_ns += 5 * 10**9

    def before_test_batch(self, runner: Any, training_stats: Any, inputs: Any) -> None:
        self.now_ns += 1000 * 10**9


def test_steps_and_waits_are_told_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock, event = Clock(), StepTimeBoxesEvent(tmp_path / "b.png")
    monkeypatch.setattr("deep500.measure.clock.now_ns", lambda: clock.now_ns)
    make_trainer(GradientDescent).run_loop(2, [clock, event], evaluate_every_steps=2)

    assert event.steps_s == [pytest.approx([5.0] * 4)] * 2
    # That after a test is not timed.
    assert event.waits_s == [pytest.approx([2.0] * 3)] * 2
    assert (tmp_path / "b.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(("synchronize", "times"), [(True, 4), (False, 0)])
def test_it_waits_for_the_device_if_it_is_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, synchronize: bool, times: int
) -> None:
    def waits(event: StepTimeBoxesEvent | None) -> int:
        calls: list[int] = []
        executor = LinearExecutor()
        monkeypatch.setattr(executor, "synchronize", lambda: calls.append(1))
        make_trainer(GradientDescent, executor=executor, tested=False).run_loop(1, [event] if event else [])
        return len(calls)

    assert waits(StepTimeBoxesEvent(tmp_path / "b.png", synchronize)) - waits(None) == times


def test_of_many_epochs_several_share_a_box(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(step_time_boxes, "_MOST_BOXES", 3)
    figure = step_time_boxes._figure([[0.1, 0.2]] * 7, [[0.001]] * 7, "t")

    assert [label.get_text() for label in figure.axes[1].get_xticklabels()] == ["1–3", "4–6", "7"]
    assert "[ms" in figure.axes[0].get_ylabel()
    assert "wait for data" in figure.axes[1].get_ylabel()


def test_it_goes_on_where_it_was(tmp_path: Path) -> None:
    event, other = StepTimeBoxesEvent(tmp_path / "b.png"), StepTimeBoxesEvent(tmp_path / "b.png")
    make_trainer(GradientDescent).run_loop(2, [event])
    other.restore(event.state())

    assert other.steps_s == event.steps_s
    assert [len(times) for times in other.waits_s] == [4, 4]
    assert all(isinstance(times, np.ndarray) for times in event.state()["steps_s"])


def test_no_times_draw_nothing(tmp_path: Path) -> None:
    make_trainer(GradientDescent).run_loop(0, [StepTimeBoxesEvent(tmp_path / "b.png")])

    assert not (tmp_path / "b.png").exists()


@pytest.mark.parametrize("arguments", [("b.txt",), ("b.png", 1)])
def test_arguments_are_checked(arguments: Any) -> None:
    with pytest.raises(TrainingError, match="accepted are"):
        StepTimeBoxesEvent(*arguments)
