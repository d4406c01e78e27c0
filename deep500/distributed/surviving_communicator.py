"""The contract of a communicator that can go on without ranks that have failed."""

from __future__ import annotations

import abc

from deep500.distributed.communicator import Communicator

__all__ = ["SurvivingCommunicator"]


class SurvivingCommunicator(Communicator):
    """A communicator that can go on without ranks that have failed.

    After a failure its operations raise errors on some ranks, which then :meth:`revoke` it, so that they do on all.
    All that are left :meth:`agree` on what was done, and :meth:`shrink` to a world of their own. It stays the same
    object: :attr:`rank` and :attr:`size` change, while ``world_ranks`` has the numbers that ranks started with.

    Attributes:
        lost: The ranks that were lost so far, by the numbers that they started with.
    """

    lost: tuple[int, ...] = ()

    @abc.abstractmethod
    def is_broken(self) -> bool:
        """Return whether a rank is known to have failed, here or by another's :meth:`revoke`; waits for nobody."""

    @abc.abstractmethod
    def revoke(self) -> None:
        """Have every operation under way, on all ranks and in all groups that were split off, end with an error."""

    @abc.abstractmethod
    def agree(self, done: bool) -> bool:
        """Return whether no rank has failed and all say ``done``: the same on every rank that is left."""

    def shrink(self) -> tuple[int, ...]:
        """Go on with the ranks that are left, in their order, all together.

        Groups that were split off are of no use any more; split them off again.

        Returns:
            The ranks that were lost, by the numbers that they started with.
        """
        before = self.world_ranks
        self._shrink()
        lost = tuple(rank for rank in before if rank not in self.world_ranks)
        self.lost += lost
        return lost

    @abc.abstractmethod
    def _shrink(self) -> None:
        """Change rank, size and ``world_ranks`` to those of a world of the ranks that are left."""
