"""The synchronous parameter server."""

from __future__ import annotations

from deep500.core.counts import check_count
from deep500.core.errors import TrainingError
from deep500.core.texts import shown
from deep500.distributed.flat_buffers import Bucket
from deep500.distributed.scheme import Scheme, StepContext

__all__ = ["ParameterServer"]


class ParameterServer(Scheme):
    r"""One rank collects all gradients, its own among them, and gives back what all update with.

    .. math:: \bar g_t = \frac{1}{p} \sum_{i=1}^{p} g_t^{(i)}

    The server returns the mean gradient, which is as large as the parameters that the update makes of it; so every rank
    has the base optimizer's state, and each can be restored by itself.

    Attributes:
        root: The rank that serves, and trains as well.

    Source: M. Li et al., "Scaling Distributed Machine Learning with the Parameter Server", OSDI 2014; synchronous.
    """

    def __init__(self, root: int = 0) -> None:
        """Name the server.

        Args:
            root: The rank that serves.

        Raises:
            TrainingError: It is no rank.
        """
        self.root = check_count("root", root, least=0, error=TrainingError)

    def bind(self, context: StepContext) -> None:
        """Check that the server is there; see :meth:`Scheme.bind`.

        Raises:
            TrainingError: There is no such rank.
        """
        super().bind(context)
        if self.root >= context.communicator.size:
            raise TrainingError(
                f"root was given as {shown(self.root)}; accepted are the ranks 0 to {context.communicator.size - 1}."
            )

    def on_bucket(self, bucket: Bucket, context: StepContext) -> None:
        """Collect a bucket at the server, and give back the mean."""
        context.communicator.reduce(bucket.array, self.root, "mean")
        context.communicator.broadcast(bucket.array, self.root)
