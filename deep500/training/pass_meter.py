"""Measuring one pass over a data set without slowing it down."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from deep500.measure.clock import Stopwatch
from deep500.networks.graph_executor import GraphExecutor
from deep500.training.accuracy import count_correct
from deep500.training.statistics import PassRecord

__all__ = ["PassMeter"]


class PassMeter:
    """Collects what one pass over a data set gives, from its first minibatch to its last.

    Losses are kept as the framework's own scalars and read at the end, so that no step waits for the device. Counting
    right classifications does wait, since outputs of a whole pass may be too large to keep.
    """

    def __init__(
        self, executor: GraphExecutor, loss: str, scores: str | None = None, label_node: str | None = None
    ) -> None:
        """Start the clock, when the device is idle.

        Args:
            executor: What runs the network.
            loss: Name of the loss.
            scores: Name of the output to count right classifications from; ``None`` not to count.
            label_node: Name under which minibatches hold the labels.
        """
        self._executor = executor
        self._loss = loss
        self._scores = scores
        self._label_node = label_node
        self._losses: list[Any] = []
        self._sizes: list[int] = []
        self._correct = 0
        self._counted = 0
        self._watch = Stopwatch(executor.synchronize)

    def add(self, batch: Mapping[str, Any], outputs: Mapping[str, Any]) -> None:
        """Take note of a minibatch that was run, and of its outputs.

        Raises:
            TrainingError: Scores and labels do not fit.
        """
        self._sizes.append(len(next(iter(batch.values()))))
        if self._loss in outputs:
            self._losses.append(outputs[self._loss])
        if self._scores is not None and self._label_node is not None:
            scores = self._executor.to_numpy(outputs[self._scores])
            correct, counted = count_correct(scores, np.asarray(batch[self._label_node]))
            self._correct += correct
            self._counted += counted

    def finish(self, *, complete: bool) -> PassRecord:
        """Stop the clock, when the device has finished, and return what was measured."""
        duration_s = self._watch.elapsed_s()
        losses = [float(self._executor.to_numpy(loss)) for loss in self._losses]
        samples = sum(self._sizes)
        loss = None
        if losses and len(losses) == len(self._sizes):
            # Weighted, so that a smaller last minibatch counts as its samples do.
            loss = _sum(value * size for value, size in zip(losses, self._sizes, strict=True)) / samples
        return PassRecord(
            batches=len(self._sizes),
            samples=samples,
            duration_s=duration_s,
            loss=loss,
            accuracy_percent=100.0 * self._correct / self._counted if self._counted else None,
            step_losses=losses,
            complete=complete,
        )


def _sum(values: Any) -> float:
    terms = list(values)
    # fsum refuses infinities of both signs, whose sum is NaN.
    return math.fsum(terms) if all(map(math.isfinite, terms)) else float(sum(terms))
