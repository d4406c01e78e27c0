"""A gallery of what the network gets wrong."""

from __future__ import annotations

import heapq
import math
from collections.abc import Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from deep500.core.counts import check_count
from deep500.core.errors import TrainingError
from deep500.core.stateful import State
from deep500.core.texts import escaped, shown
from deep500.training.events._picture import PictureEvent
from deep500.training.sampler import Sampler
from deep500.training.statistics import TrainingStatistics
from deep500.training.trainer import Trainer

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["WrongPredictionsEvent"]

_COLUMNS = 5

#: Longest name of a class that is drawn whole.
_LONGEST_NAME = 18


class WrongPredictionsEvent(PictureEvent):
    """Draws the images that the network was surest about and got wrong, with what it said and what is right.

    They are those of the last test, drawn in the end. How sure the network was is the softmax of its scores. Images are
    ``[C, H, W]`` with one or three channels, or ``[H, W]``; each is drawn from its own smallest value (black) to its
    largest.

    Attributes:
        wrong: Number of images that the last test had wrong.
        total: Number of images that it had.
    """

    needs_whole_test = True

    what = "wrong predictions"

    def __init__(self, path: str | PathLike[str], count: int = 25, class_names: Sequence[str] | None = None) -> None:
        """Set where to, and how many.

        Args:
            path: The file; its name ends with ``.png`` or ``.svg``.
            count: Most images of the picture.
            class_names: Names of the classes; by default the data set's, or their numbers.

        Raises:
            TrainingError: An argument is not accepted.
        """
        super().__init__(path)
        self.count = check_count("count", count, least=1, error=TrainingError)
        if class_names is not None and (
            isinstance(class_names, str) or not all(isinstance(n, str) for n in class_names)
        ):
            raise TrainingError(f"class_names was given as {shown(class_names)}; accepted are lists of texts.")
        self._given_names = None if class_names is None else tuple(class_names)
        self._names: tuple[str, ...] | None = self._given_names
        self._reset()

    def _reset(self) -> None:
        self.wrong = self.total = 0
        self._worst: list[tuple[float, int, int, int, NDArray[Any]]] = []
        self._batch: Mapping[str, Any] = {}
        self._nodes: tuple[str, str] | None = None

    def before_training(self, runner: Trainer, training_stats: TrainingStatistics) -> None:
        """Start anew.

        Raises:
            TrainingError: There is no test set, its samples are no images, or no classes are told apart.
        """
        super().before_training(runner, training_stats)
        self._reset()
        why = runner.why_no_accuracy(runner.validation_sampler)
        if why is not None or runner.validation_sampler is None:
            raise TrainingError(f"Wrong predictions are to be drawn, and no classes are told apart: {why}.")
        dataset = runner.validation_sampler.dataset
        shape = dataset.sample_shape
        if not (len(shape) == 2 or (len(shape) == 3 and shape[0] in (1, 3))):
            raise TrainingError(
                f"Wrong predictions are to be drawn, and the samples have the shape {list(shape)}; accepted are images "
                f"[C, H, W] with one or three channels, or [H, W]."
            )
        names = getattr(dataset, "class_names", None)
        self._names = self._given_names or (tuple(map(str, names)) if names else None)

    def before_test_set(self, runner: Trainer, training_stats: TrainingStatistics, sampler: Sampler) -> None:
        """Start anew."""
        self._reset()
        dataset = sampler.dataset
        if runner.why_no_accuracy(sampler) is None and dataset.label_node is not None:
            self._nodes = (dataset.input_node, dataset.label_node)

    def before_test_batch(self, runner: Trainer, training_stats: TrainingStatistics, inputs: Mapping[str, Any]) -> None:
        """Keep the minibatch for a moment."""
        self._batch = inputs

    def after_test_batch(self, runner: Trainer, training_stats: TrainingStatistics, outputs: Mapping[str, Any]) -> None:
        """Look for what is wrong."""
        batch, self._batch = self._batch, {}
        if self._nodes is None or runner.network_output is None:
            return
        scores = np.asarray(runner.executor.to_numpy(outputs[runner.network_output]))
        labels = np.asarray(batch[self._nodes[1]])
        if scores.ndim != 2 or labels.ndim != 1:
            return  # a class for each pixel or symbol is no class of the image
        scores = scores.astype(np.float64)
        predicted = scores.argmax(axis=1)
        first = self.total
        self.total += len(labels)
        wrong = np.flatnonzero(predicted != labels)
        self.wrong += len(wrong)
        for row in wrong:
            sure = _softmax_of(scores[row], int(predicted[row]))
            if len(self._worst) < self.count or sure > self._worst[0][0]:
                image = np.array(batch[self._nodes[0]][row])
                # The number keeps the order of equal ones, and images from being compared.
                entry = (sure, -(first + int(row)), int(predicted[row]), int(labels[row]), image)
                (heapq.heappush if len(self._worst) < self.count else heapq.heapreplace)(self._worst, entry)

    def after_training(self, runner: Trainer, training_stats: TrainingStatistics) -> None:
        """Draw."""
        if self.total:
            self._draw(self._figure)

    def state(self) -> State:
        """Return a snapshot; see :class:`deep500.core.stateful.Stateful`."""
        names = ("sure", "number", "predicted", "label", "image")
        entries = [dict(zip(names, entry, strict=True)) for entry in self._worst]
        return {"wrong": self.wrong, "total": self.total, "worst": entries}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a snapshot."""
        self.wrong, self.total = int(state["wrong"]), int(state["total"])
        self._worst = [
            (float(e["sure"]), int(e["number"]), int(e["predicted"]), int(e["label"]), np.asarray(e["image"]))
            for e in state["worst"]
        ]
        heapq.heapify(self._worst)

    def _figure(self) -> Figure:
        from matplotlib.figure import Figure

        entries = sorted(self._worst, reverse=True)
        columns = min(_COLUMNS, max(len(entries), 1))
        rows = max(1, math.ceil(len(entries) / columns))
        figure = Figure(figsize=(max(1.7 * columns, 5.0), 2.15 * rows + 0.7), layout="constrained")
        for axes in figure.subplots(rows, columns, squeeze=False).ravel():
            axes.set_axis_off()
        for axes, (sure, number, predicted, label, image) in zip(figure.axes, entries):
            pixels = _pixels(image)
            axes.imshow(pixels, cmap="gray", interpolation="nearest")
            text = f"{self._name(predicted)}, {100 * sure:.0f} %\nright: {self._name(label)}"
            axes.set_title(text, fontsize=8, parse_math=False)
            axes.text(
                0.5, -0.03, f"no. {-number}", fontsize=6, color="#666666", ha="center", va="top",
                transform=axes.transAxes,
            )  # fmt: skip
        share = 100.0 * self.wrong / self.total
        shown_ones = f"; the {len(entries)} it was surest about" if len(entries) < self.wrong else ""
        figure.suptitle(f"{self.wrong} of {self.total} wrong ({share:.2f} %){shown_ones}", fontsize=10)
        return figure

    def _name(self, label: int) -> str:
        name = self._names[label] if self._names is not None and 0 <= label < len(self._names) else str(label)
        name = escaped(name)
        return name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…"


def _softmax_of(scores: NDArray[np.float64], index: int) -> float:
    with np.errstate(all="ignore"):
        share = float(1.0 / np.exp(scores - scores[index]).sum())
    return share if math.isfinite(share) else 0.0


def _pixels(image: NDArray[Any]) -> NDArray[np.float64]:
    """Return an image ``[H, W]`` or ``[H, W, 3]`` with values from 0 to 1."""
    pixels = image.astype(np.float64)
    if pixels.ndim == 3:
        pixels = pixels[0] if pixels.shape[0] == 1 else pixels.transpose(1, 2, 0)
    pixels = np.nan_to_num(pixels)
    span = float(np.ptp(pixels))
    return np.asarray((pixels - pixels.min()) / span if span else np.zeros_like(pixels))
