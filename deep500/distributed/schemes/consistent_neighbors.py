"""Averaging of gradients with neighbours."""

from __future__ import annotations

from deep500.distributed.communication import mix
from deep500.distributed.scheme import Scheme, StepContext
from deep500.distributed.schemes._topologies import metropolis_weights

__all__ = ["ConsistentNeighbors"]


class ConsistentNeighbors(Scheme):
    r"""Ranks update with the mean of their own gradient and those of their two neighbours on the ring.

    .. math:: \bar g^{(i)} = \frac{1}{3} (g^{(i-1)} + g^{(i)} + g^{(i+1)})

    and the half of the sum of two ranks. Gradients are averaged, not models: ranks that are apart stay apart, and
    drift from four ranks on. :class:`~deep500.distributed.schemes.dpsgd.DPSGD` averages models, as the paper that the
    published code names does. That code counts the neighbour of two ranks twice; with other numbers it is the same.

    Source: the published Deep500's optimizer of this name; seed 002, "For Customizing: Distributed Optimization".
    """

    keeps_replicas_equal = False

    def after_backward(self, context: StepContext) -> None:
        """Average the gradients with the neighbours."""
        weights = metropolis_weights("ring", context.communicator.rank, context.communicator.size)
        for buffer in context.gradients:
            mix(context.communicator, buffer.array, weights)
