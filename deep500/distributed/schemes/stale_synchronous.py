"""The stale-synchronous parameter server."""

from __future__ import annotations

from collections.abc import Sequence

from deep500.core.counts import check_count
from deep500.core.errors import TrainingError
from deep500.distributed.schemes._server import Server

__all__ = ["StaleSynchronous"]


class StaleSynchronous(Server):
    r"""An asynchronous parameter server where no rank is more than a number of steps ahead of the slowest.

    .. math:: c_i - \min_j c_j \le S

    holds when rank i, which has made :math:`c_i` steps, begins another; until then it waits for its parameters. Ranks
    that have finished do not count. See :class:`Server` for who serves, the log, and ``finish()``.

    Attributes:
        bound: The number of steps S; 0 makes all wait for each other.

    Source: Q. Ho et al., "More Effective Distributed ML via a Stale Synchronous Parallel Parameter Server", NeurIPS
    2013.
    """

    def __init__(self, bound: int = 3, replay: Sequence[Sequence[int]] | None = None) -> None:
        """Choose the bound.

        Args:
            bound: By how many steps a rank may be ahead of the slowest, from 0.
            replay: The log of another run, whose order is followed; ``None`` for the order in which gradients come.

        Raises:
            TrainingError: An argument is not accepted.
        """
        self.bound = check_count("bound", bound, least=0, error=TrainingError)
        super().__init__(self.bound, replay)
