from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from deep500.core.errors import FileWriteError, TrainingError
from deep500.training.events import curves
from deep500.training.events.curves import CurvesEvent, curves_figure
from deep500.training.metrics.training_accuracy import TrainingAccuracy
from deep500.training.optimizers.gradient_descent import GradientDescent
from deep500.training.statistics import EpochRecord, PassRecord, TrainingStatistics
from deep500.training.training_event import RunnerEvent
from tests.unit.training.support import make_trainer


def lines(figure: Any) -> dict[str, Any]:
    return {line.get_label(): line for axes in figure.axes for line in axes.lines}


def test_what_is_drawn_is_what_was_measured() -> None:
    trainer = make_trainer(GradientDescent)
    stats = trainer.run_loop(2, [TrainingAccuracy()], evaluate_every_steps=2, test_before=True)
    figure = curves_figure(stats, "a training")

    drawn = lines(figure)
    losses = [loss for record in stats.epochs if record.training for loss in record.training.step_losses]
    np.testing.assert_array_equal(drawn["training, each minibatch"].get_xdata(), np.arange(1, 9))
    np.testing.assert_array_equal(drawn["training, each minibatch"].get_ydata(), losses)
    np.testing.assert_array_equal(drawn["test"].get_xdata(), [0, 2, 4, 6, 8])
    assert [axes.get_ylabel() for axes in figure.axes][1] == "accuracy [%]"
    assert figure.axes[-1].get_xlabel().startswith("steps")


@pytest.mark.parametrize("name", ["c.png", "c.svg", "c.SVG"])
def test_both_formats_are_written(tmp_path: Path, name: str) -> None:
    make_trainer(GradientDescent).run_loop(2, [CurvesEvent(tmp_path / name)])

    content = (tmp_path / name).read_bytes()
    assert content.startswith(b"\x89PNG" if name.endswith("png") else b"<?xml")
    assert list(tmp_path.iterdir()) == [tmp_path / name]  # nothing unfinished is left


def test_titles_are_texts_and_no_markup(tmp_path: Path) -> None:
    path = tmp_path / "c.svg"
    make_trainer(GradientDescent).run_loop(1, [CurvesEvent(path, title="<script>alert(1)</script> $\\frac{$ \x1b[1m")])

    assert "<script>" not in path.read_text()


def statistics(losses: list[float]) -> TrainingStatistics:
    stats = TrainingStatistics(1, 1, steps=len(losses))
    stats.epochs.append(EpochRecord(0, PassRecord(len(losses), len(losses), 1.0, 0.0, None, losses), None, len(losses)))
    return stats


def test_losses_that_are_not_finite_are_counted() -> None:
    figure = curves_figure(statistics([1.0, float("nan"), float("inf"), 2.0]), "t")

    assert figure.axes[0].get_title(loc="left") == "2 losses are not finite and not drawn"


def test_of_very_many_steps_means_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(curves, "_MOST_POINTS", 10)
    drawn = lines(curves_figure(statistics([float(n) for n in range(100)]), "t"))

    np.testing.assert_array_equal(drawn["training, each minibatch"].get_xdata(), np.arange(10, 101, 10))
    np.testing.assert_array_equal(drawn["training, each minibatch"].get_ydata(), np.arange(4.5, 100, 10))
    assert "training, mean of 2 steps" in drawn


def test_a_wide_range_is_logarithmic() -> None:
    assert curves_figure(statistics([100.0, 1.0]), "t").axes[0].get_yscale() == "log"
    assert curves_figure(statistics([3.0, 1.0]), "t").axes[0].get_yscale() == "linear"
    assert curves_figure(statistics([-3.0, 100.0]), "t").axes[0].get_yscale() == "linear"


class Interrupt(RunnerEvent):
    def after_step(self, step: int, runner: Any, training_stats: Any, outputs: Any, loss: Any) -> None:
        if step == 2:
            raise KeyboardInterrupt


def test_an_interrupted_training_is_drawn(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        make_trainer(GradientDescent).run_loop(2, [CurvesEvent(tmp_path / "c.png"), Interrupt()])

    assert (tmp_path / "c.png").exists()


def test_it_is_drawn_after_so_many_epochs(tmp_path: Path) -> None:
    class Look(RunnerEvent):
        seen: list[bool] = []  # noqa: RUF012

        def after_epoch(self, epoch: int, runner: Any, training_stats: Any) -> None:
            self.seen.append((tmp_path / "c.png").exists())

    make_trainer(GradientDescent).run_loop(3, [CurvesEvent(tmp_path / "c.png", every_epochs=2), Look()])
    assert Look.seen == [False, True, True]


@pytest.mark.parametrize("name", ["nowhere/c.png", "folder.png"])
def test_a_path_that_cannot_be_written_ends_it_before_it_begins(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder.png").mkdir()
    trainer = make_trainer(GradientDescent)
    with pytest.raises(FileWriteError):
        trainer.run_loop(1, [CurvesEvent(tmp_path / name)])
    assert trainer.statistics is not None
    assert trainer.statistics.steps == 0


def test_a_folder_that_goes_is_told_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()

    class Remove(RunnerEvent):
        def before_epoch(self, epoch: int, runner: Any, training_stats: Any) -> None:
            if folder.exists():
                folder.rmdir()

    stats = make_trainer(GradientDescent).run_loop(3, [CurvesEvent(folder / "c.png", every_epochs=1), Remove()])
    assert stats.complete
    assert caplog.text.count("The curves cannot be drawn into") == 1


@pytest.mark.parametrize("arguments", [("c.jpg",), (3,), ("c.png", 0)])
def test_arguments_are_checked(arguments: Any) -> None:
    with pytest.raises(TrainingError, match="accepted are"):
        CurvesEvent(*arguments)
