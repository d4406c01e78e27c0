"""The asynchronous parameter server."""

from __future__ import annotations

from collections.abc import Sequence

from deep500.distributed.schemes._server import Server

__all__ = ["AsynchronousParameterServer"]


class AsynchronousParameterServer(Server):
    r"""Each gradient updates the server's parameters when it comes, however old those are that it was computed at.

    .. math:: \theta_{t+1} = \theta_t - \alpha \, u(g(\theta_{t - \tau_t}))

    No gradient is lost or counted twice. The order in which gradients come differs from run to run; :attr:`log` has it,
    and a run that is given the log has the same bits. See :class:`Server` for who serves, and for ``finish()``.

    Source: J. Dean et al., "Large Scale Distributed Deep Networks" (Downpour SGD), NeurIPS 2012.
    """

    def __init__(self, replay: Sequence[Sequence[int]] | None = None) -> None:
        """Choose the order of updates.

        Args:
            replay: The log of another run, whose order is followed; ``None`` for the order in which gradients come.

        Raises:
            TrainingError: The log is none.
        """
        super().__init__(None, replay)
