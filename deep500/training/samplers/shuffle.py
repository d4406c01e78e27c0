"""Samples in a new random order each epoch."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from deep500.core.random import random_stream
from deep500.datasets.dataset import Dataset
from deep500.datasets.shuffling import shuffled_order
from deep500.training.sampler import Sampler, Transformation
from deep500.training.training_event import SamplerEvent

__all__ = ["ShuffleSampler"]


class ShuffleSampler(Sampler):
    """Yields each sample once an epoch, in a random order that each epoch draws anew.

    It is the sampler of training sets, so by default a last minibatch of fewer samples is left out: its gradient would
    weigh its samples more, and every step has the same shape. The samples left out differ from epoch to epoch.
    """

    def __init__(
        self,
        dataset: Dataset,
        batch_size: int,
        seed: int = 0,
        drop_last_batch: bool = True,
        events: Iterable[SamplerEvent] | None = None,
        transformations: Iterable[Transformation] | None = None,
    ) -> None:
        """Start epoch 0; see :class:`Sampler`."""
        super().__init__(dataset, batch_size, seed, drop_last_batch, events, transformations)

    def order(self, epoch: int) -> NDArray[np.int64]:
        """Return a permutation drawn from ``random_stream(seed, "sampler", epoch)``."""
        return shuffled_order(random_stream(self.seed, "sampler", epoch), len(self.dataset))
