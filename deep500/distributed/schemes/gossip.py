"""Averaging of models in random pairs."""

from __future__ import annotations

from deep500.core.random import check_seed, random_stream
from deep500.datasets.shuffling import shuffled_order
from deep500.distributed.communication import mix
from deep500.distributed.scheme import Scheme, StepContext

__all__ = ["Gossip"]


class Gossip(Scheme):
    r"""After each update ranks meet in random pairs, and both take the mean of their parameters.

    .. math:: \theta^{(i)}, \theta^{(j)} \leftarrow \tfrac12 (\theta^{(i)} + \theta^{(j)})

    All ranks draw the same pairs, anew for each update; with an odd number one rank stays alone. The mean of all ranks'
    parameters is left as it is, and every pair meets in the long run.

    Attributes:
        seed: Of the pairs.

    Source: S. Boyd et al., "Randomized Gossip Algorithms", IEEE Transactions on Information Theory 52, 2006;
    M. Blot et al., "Gossip training for deep learning", 2016.
    """

    keeps_replicas_equal = False

    def __init__(self, seed: int = 0) -> None:
        """Choose the seed of the pairs."""
        self.seed = check_seed(seed)

    def partner(self, update: int, rank: int, size: int) -> int:
        """Return whom a rank meets after an update; itself where it stays alone."""
        order = shuffled_order(random_stream(self.seed, "gossip", update), size).tolist()
        place = order.index(rank) ^ 1  # places 0 and 1 are a pair, 2 and 3 the next
        return int(order[place]) if place < size else rank

    def after_update(self, context: StepContext) -> None:
        """Meet one other rank."""
        rank = context.communicator.rank
        partner = self.partner(context.updates_done, rank, context.communicator.size)
        if partner != rank:
            for buffer in context.fetch_parameters():
                mix(context.communicator, buffer.array, {rank: 0.5, partner: 0.5})
            context.feed_parameters()
