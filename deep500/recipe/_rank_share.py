"""This rank's part of any sampler."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from deep500.core.stateful import State
from deep500.distributed.communicator import Communicator
from deep500.distributed.samplers._rank_sampler import RankSampler
from deep500.training.sampler import Sampler, Transformation

__all__ = ["RankShare"]


class RankShare(RankSampler):
    """Serves this rank its part of each minibatch of another sampler, whatever the order of that one is.

    The minibatches of all ranks together are those of the other sampler, which one process would train on: sample i of
    a minibatch is rank i mod p's. A sampler that leaves out a last minibatch of fewer samples does so here too. One
    that does not is padded, so that all ranks make steps with minibatches of equal size (:class:`RankSampler`).

    Attributes:
        served: The sampler of all ranks.
    """

    def __init__(
        self, served: Sampler, communicator: Communicator, transformations: Iterable[Transformation] = ()
    ) -> None:
        """Take a part.

        Args:
            served: The sampler of all ranks, whose minibatches have a multiple of their number of samples.
            communicator: Says which rank this is.
            transformations: What changes this rank's minibatches; it draws from streams of the rank's own.

        Raises:
            TrainingError: No minibatch would be left.
        """
        self.served = served
        super().__init__(
            served.dataset,
            served.batch_size // communicator.size,
            communicator,
            served.seed,
            served.drop_last_batch,
            served.events,
            transformations,
            padding="drop" if served.drop_last_batch else "repeat",
        )
        served.events = []  # they listen to this sampler, and do not go to workers
        divides = served.samples_an_epoch % self.size == 0
        self.each_sample_once = served.each_sample_once and (divides or self.padding == "drop")

    def own(self, epoch: int) -> NDArray[np.int64]:
        """Return every p-th sample of the served sampler's order."""
        return self.served.order(epoch)[self.rank :: self.size]

    def own_count(self) -> int:
        """Return the number of samples that :meth:`own` returns."""
        return len(range(self.rank, self.served.samples_an_epoch, self.size))

    @property
    def samples_an_epoch(self) -> int:
        """Number of samples of this rank an epoch, with padding."""
        count = self.served.samples_an_epoch
        return count // self.size if self.padding == "drop" else -(-count // self.size)

    def identity(self) -> State:
        """Return what the served sampler depends on too; see :meth:`Sampler.identity`."""
        return {**super().identity(), "served": self.served.identity()}
