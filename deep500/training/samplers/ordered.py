"""Samples in the data set's order."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from deep500.datasets.dataset import Dataset
from deep500.training.sampler import Sampler, Transformation
from deep500.training.training_event import SamplerEvent

__all__ = ["OrderedSampler"]


class OrderedSampler(Sampler):
    """Yields the samples in the data set's order, every epoch the same.

    It is the sampler of test sets, so by default the last minibatch is kept although it may be smaller: a test that
    leaves samples out measures something else. (The published Deep500 dropped it.)
    """

    def __init__(
        self,
        dataset: Dataset,
        batch_size: int,
        drop_last_batch: bool = False,
        events: Iterable[SamplerEvent] | None = None,
        transformations: Iterable[Transformation] | None = None,
        *,
        seed: int = 0,
    ) -> None:
        """Start epoch 0; see :class:`Sampler`. The seed is for the transformations only."""
        super().__init__(dataset, batch_size, seed, drop_last_batch, events, transformations)

    def order(self, epoch: int) -> NDArray[np.int64]:
        """Return 0, 1, 2, ..."""
        return np.arange(len(self.dataset), dtype=np.int64)
