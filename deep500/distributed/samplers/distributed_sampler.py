"""All samples over all ranks, dealt out anew each epoch."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from deep500.distributed.samplers._rank_sampler import RankSampler

__all__ = ["DistributedSampler"]


class DistributedSampler(RankSampler):
    """Deals the samples of each epoch's order out to the ranks, one after another.

    The order is that of ``ShuffleSampler`` with the same seed. So the minibatches of all ranks together are those of
    one process with as many times the batch size. See :class:`RankSampler` for the padding.
    """

    def own(self, epoch: int) -> NDArray[np.int64]:
        """Return the samples number ``rank``, ``rank + size``, ... of the epoch's order."""
        return self.shuffled(len(self.dataset), epoch)[self.rank :: self.size]

    def own_count(self) -> int:
        """Return the number of samples that are dealt to this rank."""
        return len(range(self.rank, len(self.dataset), self.size))
