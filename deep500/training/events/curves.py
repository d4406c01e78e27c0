"""Curves of loss and accuracy."""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from deep500.core.counts import check_count
from deep500.core.errors import TrainingError
from deep500.training.events._picture import COLOURS, PictureEvent, make_logarithmic, plain, tidy
from deep500.training.statistics import TrainingStatistics
from deep500.training.trainer import Trainer

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["CurvesEvent"]

#: The thick line is the mean over this share of all steps, but of no more than an epoch.
_SMOOTHED_SHARE = 0.02

#: Losses that span so much are drawn on a logarithmic axis.
_LOGARITHMIC = 20.0

#: Points of the thin line; of more steps, each point is the mean of several.
_MOST_POINTS = 4000

#: Epochs up to which each has a line where it ends.
_MOST_LINES = 40


class CurvesEvent(PictureEvent):
    """Draws loss and accuracy over the steps of the training, with those of the tests.

    The thin line is the loss of each minibatch, the thick one the mean over the last 2 % of the steps (an epoch at
    most). The picture is drawn in the end, also of a training that was interrupted, and if asked for after every few
    epochs. It is made from the trainer's statistics alone.
    """

    what = "curves"

    def __init__(self, path: str | PathLike[str], every_epochs: int | None = None, title: str | None = None) -> None:
        """Set where to.

        Args:
            path: The file; its name ends with ``.png`` or ``.svg``.
            every_epochs: Number of epochs after which the picture is drawn anew; ``None`` for the end only.
            title: Title of the picture; by default the network's name and the optimizer's class.

        Raises:
            TrainingError: An argument is not accepted.
        """
        super().__init__(path)
        if every_epochs is not None:
            check_count("every_epochs", every_epochs, least=1, error=TrainingError)
        self._every_epochs = every_epochs
        self._title = title

    def after_epoch(self, epoch: int, runner: Trainer, training_stats: TrainingStatistics) -> None:
        """Draw, when it is time."""
        if self._every_epochs is not None and (epoch + 1) % self._every_epochs == 0:
            self._draw_statistics(runner, training_stats)

    def after_training(self, runner: Trainer, training_stats: TrainingStatistics) -> None:
        """Draw."""
        self._draw_statistics(runner, training_stats)

    def _draw_statistics(self, runner: Trainer, stats: TrainingStatistics) -> None:
        if any(record.training and len(record.training.step_losses) for record in stats.epochs):
            title = self._title
            if title is None:
                kind = type(runner.optimizer).__name__
                title = f"{runner.executor.network.name}, {kind}, {runner.executor.framework}"
            self._draw(lambda: curves_figure(stats, title))


def curves_figure(stats: TrainingStatistics, title: str) -> Figure:
    """Return the figure: a panel for the loss, and one for the accuracy where it was counted."""
    from matplotlib.figure import Figure

    accuracies = _accuracies(stats)
    rows = 2 if any(len(points) for points in accuracies.values()) else 1
    figure = Figure(figsize=(8.0, 3.4 * rows + 0.4), layout="constrained")
    panels = figure.subplots(rows, 1, squeeze=False, sharex=True)[:, 0]
    _draw_losses(panels[0], stats)
    if rows == 2:
        _draw_accuracies(panels[1], accuracies)
    ends = [record.steps for record in stats.epochs if record.training is not None]
    for axes in panels:
        tidy(axes)
        for end in ends if len(ends) <= _MOST_LINES else ():
            axes.axvline(end, color="#bbbbbb", linewidth=0.6, linestyle=":", zorder=0)
        axes.legend(frameon=False, fontsize=8, loc="best")
    panels[-1].set_xlabel("steps" + (" (dotted: ends of epochs)" if 1 < len(ends) <= _MOST_LINES else ""))
    panels[-1].set_xlim(0, max(stats.steps, 1) * 1.02)
    figure.suptitle(plain(title), fontsize=10)
    return figure


def _draw_losses(axes: Axes, stats: TrainingStatistics) -> None:
    steps, losses = _step_losses(stats)
    width = _width(stats, len(losses))
    thin_steps, thin = _fewer(steps, losses)
    is_thin = width > 1
    axes.plot(
        thin_steps, thin, color=COLOURS["training"], linewidth=0.7 if is_thin else 1.4, alpha=0.4 if is_thin else 1,
        label="training, each minibatch",
    )  # fmt: skip
    if is_thin:
        smooth_steps, smooth = _fewer(steps, _running_mean(losses, width))
        axes.plot(
            smooth_steps, smooth, color=COLOURS["training"], linewidth=1.6, label=f"training, mean of {width} steps"
        )
    tests = [(one.step, one.result.loss) for one in stats.all_evaluations if one.result.loss is not None]
    if tests:
        axes.plot(*zip(*tests, strict=True), "o-", color=COLOURS["test"], linewidth=1.2, markersize=4, label="test")
    values = np.array([*losses, *(loss for _, loss in tests)], np.float64)
    finite = values[np.isfinite(values)]
    if finite.size and finite.min() > 0 and finite.max() > _LOGARITHMIC * finite.min():
        make_logarithmic(axes, float(finite.min()), float(finite.max()))
        axes.set_ylabel("loss (logarithmic)")
    else:
        axes.set_ylabel("loss")
    bad = int(values.size - finite.size)
    if bad:
        axes.set_title(f"{bad} losses are not finite and not drawn", fontsize=8, color="#B00000", loc="left")


def _draw_accuracies(axes: Axes, accuracies: dict[str, list[tuple[int, float]]]) -> None:
    for name, points in accuracies.items():
        if points:
            axes.plot(*zip(*points, strict=True), "o-", color=COLOURS[name], linewidth=1.2, markersize=4, label=name)
    values = [value for points in accuracies.values() for _, value in points]
    # The axis ends at 100 %; it starts at the data, since positions are compared and not lengths.
    low = min(values)
    margin = max(0.05 * (100.0 - low), 0.5)
    axes.set_ylim(max(low - margin, -margin), 100.0 + margin)
    axes.set_ylabel("accuracy [%]")
    best = max((value for _, value in accuracies["test"]), default=None)
    if best is not None:
        axes.axhline(best, color=COLOURS["test"], linewidth=0.8, linestyle="--", label=f"best test, {best:.2f} %")


def _accuracies(stats: TrainingStatistics) -> dict[str, list[tuple[int, float]]]:
    training: list[tuple[int, Any]] = [
        (record.steps, record.training.accuracy_percent) for record in stats.epochs if record.training is not None
    ]
    test: list[tuple[int, Any]] = [(one.step, one.result.accuracy_percent) for one in stats.all_evaluations]
    pairs = {"training": training, "test": test}
    return {name: [(step, value) for step, value in points if value is not None] for name, points in pairs.items()}


def _step_losses(stats: TrainingStatistics) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the steps, from 1, and their losses."""
    records = [record for record in stats.epochs if record.training is not None]
    steps = [np.arange(r.steps - len(r.training.step_losses), r.steps) + 1 for r in records if r.training]
    losses = [np.asarray(r.training.step_losses, np.float64) for r in records if r.training]
    return np.concatenate(steps).astype(np.float64), np.concatenate(losses)


def _width(stats: TrainingStatistics, count: int) -> int:
    longest = max(record.training.batches for record in stats.epochs if record.training is not None)
    return max(1, min(round(count * _SMOOTHED_SHARE), longest))


def _running_mean(values: NDArray[np.float64], width: int) -> NDArray[np.float64]:
    """Return the mean of each value and those before it, up to a number of them; those that are not finite left out."""
    is_finite = np.isfinite(values)
    sums = np.concatenate([[0.0], np.cumsum(np.where(is_finite, values, 0.0))])
    counts = np.concatenate([[0], np.cumsum(is_finite)])
    first = np.maximum(np.arange(1, len(values) + 1) - width, 0)
    number = counts[1:] - counts[first]
    return np.where(number > 0, (sums[1:] - sums[first]) / np.maximum(number, 1), np.nan)


def _fewer(steps: NDArray[np.float64], values: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return no more points than can be told apart: means of neighbours."""
    block = -(-len(values) // _MOST_POINTS)
    if block <= 1:
        return steps, values
    whole = len(values) // block * block
    return steps[:whole].reshape(-1, block)[:, -1], values[:whole].reshape(-1, block).mean(axis=1)
