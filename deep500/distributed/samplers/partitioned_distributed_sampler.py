"""A fixed part of the samples for each rank."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from deep500.distributed.samplers._rank_sampler import RankSampler

__all__ = ["PartitionedDistributedSampler"]


class PartitionedDistributedSampler(RankSampler):
    r"""Serves each rank the same consecutive samples in every epoch, in an order that each epoch draws anew.

    Rank r has the samples :math:`\lfloor r n / p \rfloor` to :math:`\lfloor (r + 1) n / p \rfloor - 1`, so that it
    reads no others: its part of the files may be all that it has. See :class:`RankSampler` for the padding; a rank
    without any sample, where there are fewer than ranks, repeats sample r mod n.
    """

    def own(self, epoch: int) -> NDArray[np.int64]:
        """Return the samples of this rank's part in the epoch's order."""
        return self._start(self.rank) + self.shuffled(self.own_count(), epoch, "part", self.rank)

    def own_count(self) -> int:
        """Return the number of samples of this rank's part."""
        return self._start(self.rank + 1) - self._start(self.rank)

    def _start(self, rank: int) -> int:
        return rank * len(self.dataset) // self.size
