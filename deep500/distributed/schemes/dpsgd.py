"""Averaging of models with neighbours."""

from __future__ import annotations

from deep500.distributed.communication import mix
from deep500.distributed.scheme import Scheme, StepContext
from deep500.distributed.schemes._topologies import checked_topology, metropolis_weights

__all__ = ["DPSGD"]


class DPSGD(Scheme):
    r"""D-PSGD: the update by the own gradient starts from the weighted mean of the neighbours' parameters.

    .. math:: \theta_{t+1}^{(i)} = \sum_j W_{ij} \theta_t^{(j)} - \alpha \, u(g(\theta_t^{(i)}))

    with Metropolis weights :math:`W` and what the base optimizer makes of the gradient, :math:`u`. The mean over all
    ranks is that of averaged updates; the distance between ranks shrinks as W mixes.

    Attributes:
        topology: Who is whose neighbour: ``"ring"``, ``"torus"`` or ``"exponential"``.

    Source: X. Lian et al., "Can Decentralized Algorithms Outperform Centralized Algorithms?", NeurIPS 2017,
    algorithm 1; B. Ying et al., "Exponential Graph is Provably Efficient for Decentralized Deep Training", NeurIPS 2021
    (here with both directions of each edge, so that the weights are symmetric).
    """

    keeps_replicas_equal = False

    def __init__(self, topology: str = "ring") -> None:
        """Choose the neighbours.

        Args:
            topology: ``"ring"``, ``"torus"`` or ``"exponential"``.

        Raises:
            TrainingError: There is no such topology.
        """
        self.topology = checked_topology(topology)

    def after_backward(self, context: StepContext) -> None:
        """Mix the parameters before they are updated with the gradient that was taken at the own ones."""
        if context.is_update and context.communicator.size > 1:
            weights = metropolis_weights(self.topology, context.communicator.rank, context.communicator.size)
            for buffer in context.fetch_parameters():
                mix(context.communicator, buffer.array, weights)
            context.feed_parameters()
