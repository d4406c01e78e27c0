"""Model averaging after every few steps."""

from __future__ import annotations

from deep500.core.counts import check_count
from deep500.core.errors import TrainingError
from deep500.distributed.scheme import Scheme, StepContext

__all__ = ["LocalSGD"]


class LocalSGD(Scheme):
    r"""Ranks update by themselves, and take the mean of their parameters after every ``period`` updates.

    .. math::
        \theta_t^{(i)} = \begin{cases} \frac{1}{p} \sum_j \tilde\theta_t^{(j)} & \tau \mid t \\
        \tilde\theta_t^{(i)} & \text{otherwise} \end{cases}

    with :math:`\tilde\theta` from the update by the own gradient. The base optimizer's state stays with each rank.
    With a period of 1 and a rule that is linear in gradients and state, such as SGD or momentum, it is the same as
    averaging gradients.

    Attributes:
        period: Number of updates :math:`\tau` between two averages.

    Source: S. U. Stich, "Local SGD Converges Fast and Communicates Little", ICLR 2019, algorithm 1.
    """

    keeps_replicas_equal = False

    def __init__(self, period: int = 8) -> None:
        """Choose the period.

        Args:
            period: Number of updates between two averages, from 1.

        Raises:
            TrainingError: It is no such number.
        """
        self.period = check_count("period", period, least=1, error=TrainingError)

    def after_update(self, context: StepContext) -> None:
        """Average the parameters when it is time."""
        if context.updates_done % self.period == 0:
            for buffer in context.fetch_parameters():
                context.communicator.allreduce(buffer.array, "mean")
            context.feed_parameters()
