"""Allreduce in two stages."""

from __future__ import annotations

from deep500.core.counts import check_count
from deep500.core.errors import TrainingError
from deep500.distributed.communicator import Communicator
from deep500.distributed.flat_buffers import Bucket
from deep500.distributed.scheme import Scheme, StepContext

__all__ = ["Hierarchical"]


class Hierarchical(Scheme):
    r"""The mean gradient, in stages: within each group, among the groups' first ranks, and back within each group.

    It is the gradient of :class:`~deep500.distributed.schemes.allreduce.AllReduce`, with sums in another order. With a
    group a machine, only one rank of each machine uses the network between them.

    Attributes:
        group_size: Number of ranks a group; the last group may be smaller. ``None``: the ranks of a machine, which must
            have consecutive numbers.

    Source: X. Jia et al., "Highly Scalable Deep Learning Training System with Mixed-Precision", 2018, section 4.2.
    """

    def __init__(self, group_size: int | None = None) -> None:
        """Choose the groups.

        Args:
            group_size: Number of ranks a group; ``None`` for a group a machine.

        Raises:
            TrainingError: It is no such number.
        """
        is_given = group_size is not None
        self.group_size = check_count("group_size", group_size, least=1, error=TrainingError) if is_given else None
        self._group: Communicator | None = None
        self._leaders: Communicator | None = None

    def bind(self, context: StepContext) -> None:
        """Form the groups; see :meth:`Scheme.bind`."""
        super().bind(context)
        whole = context.communicator
        # Ranks of a machine are consecutive, so their first one is as far back as the local number says.
        first = whole.rank - whole.local_rank if self.group_size is None else whole.rank - whole.rank % self.group_size
        self._group = whole.split(first, whole.rank)
        self._leaders = whole.split(0 if whole.rank == first else None, whole.rank)

    def on_bucket(self, bucket: Bucket, context: StepContext) -> None:
        """Sum a bucket over the groups, and divide by the number of ranks."""
        if self._group is None:
            raise TrainingError("Hierarchical was used before bind(); DistributedOptimizer calls it.")
        self._group.reduce(bucket.array, root=0)
        if self._leaders is not None:
            self._leaders.allreduce(bucket.array)
            bucket.array /= context.communicator.size
        self._group.broadcast(bucket.array, root=0)
