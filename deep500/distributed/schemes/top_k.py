"""Sparse gradients."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deep500.core.errors import TrainingError
from deep500.core.texts import shown
from deep500.distributed.communication import gather_bytes
from deep500.distributed.flat_buffers import FlatBuffer
from deep500.distributed.scheme import StepContext
from deep500.distributed.schemes._error_feedback import ErrorFeedback

__all__ = ["TopK"]


class TopK(ErrorFeedback):
    r"""Each rank sends its k values of largest magnitude with their places, and keeps the others for later.

    .. math:: k = \lceil \rho n \rceil

    of the n values of a flat buffer. Places and values are gathered, which moves :math:`(p-1) k (b + 4)` bytes a rank
    with b bytes a value. Where that is not below the :math:`2 (p-1) n b / p` of a dense allreduce, the sparse vectors
    are added as dense ones.

    Attributes:
        density: The share :math:`\rho` that is sent.

    Source: D. Alistarh et al., "The Convergence of Sparsified Gradient Methods", NeurIPS 2018; C. Renggli et al.,
    "SparCML: High-Performance Sparse Communication for Machine Learning", SC19 (the switch to dense).
    """

    def __init__(self, density: float = 0.01) -> None:
        """Choose how much is sent.

        Args:
            density: Share of the values, above 0 up to 1.

        Raises:
            TrainingError: It is no such number.
        """
        super().__init__()
        if isinstance(density, bool) or not isinstance(density, (int, float)) or not 0.0 < density <= 1.0:
            raise TrainingError(f"density was given as {shown(density)}; accepted are numbers above 0 up to 1.")
        self.density = float(density)

    def exchange(self, buffer: FlatBuffer, context: StepContext) -> tuple[NDArray[Any], NDArray[Any]]:
        """Send the largest values; see :meth:`ErrorFeedback.exchange`."""
        values, communicator = buffer.array, context.communicator
        count = math.ceil(self.density * values.size)
        places = np.sort(np.argpartition(np.abs(values), values.size - count)[values.size - count :])
        sent, mean = np.zeros_like(values), np.zeros_like(values)
        sent[places] = values[places]
        if self.is_sparse(values, count, communicator.size):
            kind = np.int32 if values.size <= np.iinfo(np.int32).max else np.int64
            for where, what in gather_bytes(communicator, places.astype(kind), values[places]):
                mean[where] += what  # no place occurs twice in what one rank sent
            mean /= communicator.size
        else:
            mean[...] = sent
            communicator.allreduce(mean, "mean")
        return mean, sent

    def is_sparse(self, values: NDArray[Any], count: int, size: int) -> bool:
        """Return whether gathering some of the values moves less than adding all."""
        index_bytes = 4 if values.size <= np.iinfo(np.int32).max else 8
        return size * count * (values.itemsize + index_bytes) < 2 * values.nbytes
