"""How evenly classes are drawn."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from deep500.core.counts import check_count
from deep500.core.errors import TrainingError
from deep500.measure.metric import Direction, MetricKind, TestMetric

__all__ = ["DatasetBias"]


class _ClassCounts(list[int]):
    """How often each class was drawn; as a number, how far that is from equal shares."""

    def __float__(self) -> float:
        total = sum(self)
        return sum(abs(count / total - 1 / len(self)) for count in self) / 2 if total else float("nan")


class DatasetBias(TestMetric):
    r"""How often each class is among the labels that a sampler yields, and how far that is from equal shares.

    It measures a list, the count of each class. As a number it is the total variation
    :math:`\frac{1}{2} \sum_i |n_i / n - 1 / k|`: 0 where all :math:`k` classes are drawn equally often, at most
    :math:`1 - 1 / k`.

    Example:
        >>> bias = DatasetBias(2, "label", reruns=0)
        >>> bias.end({"label": np.array([0, 0, 0, 1])})
        >>> counts = bias.measure(None, None)
        >>> list(counts), float(counts)
        ([3, 1], 0.25)
    """

    direction = Direction.LOWER
    kind = MetricKind.SCORE

    def __init__(self, num_classes: int, label_node: str = "label", reruns: int = 1000) -> None:
        """Start with no labels.

        Args:
            num_classes: Number of classes.
            label_node: Name under which minibatches hold the labels.
            reruns: Number of minibatches that are looked at; 0 for the one of the test itself.

        Raises:
            TrainingError: A number is not accepted.
        """
        self._label = label_node
        self._reruns = check_count("reruns", reruns, least=0, error=TrainingError)
        self.counts = np.zeros(check_count("num_classes", num_classes, least=1, error=TrainingError), np.int64)

    @property
    def reruns(self) -> int:
        """Number of minibatches."""
        return self._reruns

    @property
    def requires_inputs(self) -> bool:
        """False: it looks at the minibatches alone."""
        return False

    def end(self, outputs: Any) -> None:
        """Count the labels of a minibatch.

        Raises:
            TrainingError: It has no labels, or one that is no class.
        """
        if not isinstance(outputs, Mapping) or self._label not in outputs:
            received = ", ".join(outputs) if isinstance(outputs, Mapping) else type(outputs).__name__
            raise TrainingError(f"DatasetBias needs minibatches with the labels {self._label!r}; received {received}.")
        labels = np.ravel(np.asarray(outputs[self._label]))
        wrong = labels[(labels < 0) | (labels >= len(self.counts)) | (labels != np.floor(labels))]
        if wrong.size:
            raise TrainingError(f"A label is {wrong[0]}; DatasetBias was made for classes 0 to {len(self.counts) - 1}.")
        self.counts += np.bincount(labels.astype(np.int64), minlength=len(self.counts))

    def measure(self, inputs: Any, outputs: Any, reference_outputs: Any = None) -> _ClassCounts:  # type: ignore[override]
        """Return how often each class was drawn, which ``float`` turns into the bias."""
        return _ClassCounts(self.counts.tolist())

    def measure_summary(self, inputs: Any, outputs: Any, reference_outputs: Any = None) -> str:
        """Return bias and counts, for people."""
        counts = self.measure(inputs, outputs)
        return f"{float(counts):.3g} (drawn: {', '.join(map(str, counts))})"
