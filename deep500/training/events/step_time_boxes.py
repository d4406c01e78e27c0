"""Box plots of the times that steps take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from deep500.core.stateful import State
from deep500.measure import clock
from deep500.training.events._picture import COLOURS, PictureEvent, make_logarithmic, plain, tidy
from deep500.training.hyperparameters import flag
from deep500.training.sampler import Sampler
from deep500.training.statistics import TrainingStatistics
from deep500.training.trainer import Trainer

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["StepTimeBoxesEvent"]

#: Most boxes of a picture; of more epochs, several share one.
_MOST_BOXES = 20

#: Times over so many times the smallest are drawn on a logarithmic axis.
_LOGARITHMIC = 20.0


class StepTimeBoxesEvent(PictureEvent):
    """Times every step, and the wait for its minibatch, and draws a box for each epoch.

    A box goes from the first to the third quartile, with a line at the median; its whiskers reach to the farthest times
    within 1.5 interquartile ranges, and all times beyond are drawn one by one: nothing is left out. The first step of a
    training, in which frameworks compile, is among them.

    A step is timed from after its minibatch was read until the device has finished it; listeners between are included,
    so that this event is best the last one. The wait is that from the end of a step to the next minibatch.

    Attributes:
        steps_s: Seconds of each step, a list for each epoch.
        waits_s: Seconds of each wait, a list for each epoch.
    """

    what = "step times"

    def __init__(self, path: str | PathLike[str], synchronize: bool = True) -> None:
        """Set where to.

        Args:
            path: The file; its name ends with ``.png`` or ``.svg``.
            synchronize: Whether to wait for the device after each step. Without, steps on a GPU overlap as usual, and
                what is timed is the host's part.

        Raises:
            TrainingError: An argument is not accepted.
        """
        super().__init__(path)
        self._synchronize = flag("synchronize", synchronize)
        self._reset()

    def _reset(self) -> None:
        self.steps_s: list[list[float]] = []
        self.waits_s: list[list[float]] = []
        self._start_ns: int | None = None
        self._end_ns: int | None = None

    def before_training(self, runner: Trainer, training_stats: TrainingStatistics) -> None:
        """Start anew."""
        super().before_training(runner, training_stats)
        self._reset()

    def before_training_set(self, runner: Trainer, training_stats: TrainingStatistics, sampler: Sampler) -> None:
        """Begin the epoch's lists."""
        self.steps_s.append([])
        self.waits_s.append([])
        self._end_ns = clock.now_ns()

    def before_step(
        self, step: int, runner: Trainer, training_stats: TrainingStatistics, inputs: Mapping[str, Any]
    ) -> None:
        """Start the clock."""
        self._start_ns = now_ns = clock.now_ns()
        if self._end_ns is not None:
            self.waits_s[-1].append((now_ns - self._end_ns) * 1e-9)

    def after_step(
        self, step: int, runner: Trainer, training_stats: TrainingStatistics, outputs: Mapping[str, Any], loss: Any
    ) -> None:
        """Stop the clock."""
        if self._synchronize:
            runner.executor.synchronize()
        self._end_ns = clock.now_ns()
        if self._start_ns is not None:
            self.steps_s[-1].append((self._end_ns - self._start_ns) * 1e-9)

    def before_test_set(self, runner: Trainer, training_stats: TrainingStatistics, sampler: Sampler) -> None:
        """Leave the time of a test between two steps out."""
        self._end_ns = None

    def after_training(self, runner: Trainer, training_stats: TrainingStatistics) -> None:
        """Draw."""
        if any(self.steps_s):
            title = (
                f"{runner.executor.network.name}, {runner.executor.framework} on {runner.executor.device}, batches of "
            )
            title += str(training_stats.train_batch_size)
            self._draw(lambda: _figure(self.steps_s, self.waits_s, title))

    def state(self) -> State:
        """Return a snapshot; see :class:`deep500.core.stateful.Stateful`."""
        return {name: [np.array(times, np.float64) for times in getattr(self, name)] for name in ("steps_s", "waits_s")}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a snapshot."""
        for name in ("steps_s", "waits_s"):
            setattr(self, name, [np.asarray(times).tolist() for times in state[name]])
        self._end_ns = None


def _figure(steps_s: Sequence[Sequence[float]], waits_s: Sequence[Sequence[float]], title: str) -> Figure:
    from matplotlib.figure import Figure

    epochs = [number for number, times in enumerate(steps_s) if times]
    block = -(-len(epochs) // _MOST_BOXES)
    groups = [epochs[first : first + block] for first in range(0, len(epochs), block)]
    labels = [str(g[0] + 1) if len(g) == 1 else f"{g[0] + 1}–{g[-1] + 1}" for g in groups]
    figure = Figure(figsize=(max(6.0, 2.0 + 0.55 * len(groups)), 6.0), layout="constrained")
    upper, lower = figure.subplots(2, 1, sharex=True)
    for axes, times, name in ((upper, steps_s, "step"), (lower, waits_s, "wait for data")):
        arrays = [np.concatenate([np.asarray(times[number], np.float64) for number in group]) for group in groups]
        _boxes(axes, arrays, labels, name)
    lower.set_xlabel("epoch" if block == 1 else "epochs")
    figure.suptitle(plain(title), fontsize=10)
    return figure


def _boxes(axes: Axes, times: Sequence[NDArray[np.float64]], labels: Sequence[str], name: str) -> None:
    everything = np.concatenate(times)
    unit, scale = next(
        (u, s) for u, s in (("s", 1.0), ("ms", 1e3), ("µs", 1e6)) if np.median(everything) * s >= 1 or s == 1e6
    )
    colour = COLOURS["training"]
    axes.boxplot(
        [one * scale for one in times],
        positions=list(range(len(times))),
        widths=0.6,
        patch_artist=True,
        boxprops={"facecolor": "#CFE3F1", "edgecolor": colour},
        whiskerprops={"color": colour},
        capprops={"color": colour},
        medianprops={"color": "black", "linewidth": 1.4},
        flierprops={"marker": ".", "markersize": 4, "markerfacecolor": COLOURS["test"], "markeredgewidth": 0},
    )
    axes.set_xticks(range(len(times)), labels, rotation=45 if max(map(len, labels)) > 4 else 0)
    positive = everything[everything > 0] * scale
    note = ""
    if positive.size and positive.max() > _LOGARITHMIC * positive.min():
        make_logarithmic(axes, float(positive.min()), float(positive.max()))
        note = ", logarithmic"
    else:
        axes.set_ylim(bottom=0)
    tidy(axes)
    axes.set_ylabel(f"{name} [{unit}{note}]")
    median = np.median(everything) * scale
    axes.set_title(f"median of {everything.size}: {median:.3g} {unit}", fontsize=8, loc="left")
