"""Gradients of one bit a value."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from deep500.core.counts import check_count
from deep500.core.errors import TrainingError
from deep500.distributed.flat_buffers import FlatBuffer
from deep500.distributed.scheme import StepContext
from deep500.distributed.schemes._error_feedback import ErrorFeedback, block_starts, gathered_mean, spread

__all__ = ["OneBit"]


class OneBit(ErrorFeedback):
    """Each rank sends whether a value is negative, and for each block the means of the two kinds; it keeps the error.

    Of all pairs of values that a bit may stand for, the two means have the smallest squared error.

    Attributes:
        block: Number of values with means of their own.

    Source: F. Seide et al., "1-Bit Stochastic Gradient Descent and its Application to Data-Parallel Distributed
    Training of Speech DNNs", Interspeech 2014 (there a block is a column of a weight matrix).
    """

    def __init__(self, block: int = 512) -> None:
        """Choose the blocks.

        Args:
            block: Number of values with means of their own, from 1.

        Raises:
            TrainingError: It is no such number.
        """
        super().__init__()
        self.block = check_count("block", block, least=1, error=TrainingError)

    def exchange(self, buffer: FlatBuffer, context: StepContext) -> tuple[NDArray[Any], NDArray[Any]]:
        """Send bits and means; see :meth:`ErrorFeedback.exchange`."""
        parts = self.encode(buffer.array)

        def decode(*received: NDArray[Any]) -> NDArray[Any]:
            return self.decode(buffer.array.size, *received).astype(buffer.array.dtype)

        return gathered_mean(context.communicator, decode, *parts, like=buffer.array), decode(*parts)

    def encode(self, values: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.uint8]]:
        """Return the means of values from 0 and of those below, ``[blocks]`` each, and a bit a value that is below."""
        wide = values.astype(np.promote_types(values.dtype, np.float32))
        negative, starts = wide < 0, block_starts(values.size, self.block)
        means = []
        for members in (~negative, negative):
            count = np.add.reduceat(members.astype(wide.dtype), starts)
            means.append(np.add.reduceat(np.where(members, wide, 0), starts) / np.maximum(count, 1))
        return means[0], means[1], np.packbits(negative)

    def decode(self, count: int, from_0: NDArray[Any], below_0: NDArray[Any], bits: NDArray[Any]) -> NDArray[Any]:
        """Return the mean that stands for each value."""
        negative = np.unpackbits(bits, count=count).astype(bool)
        return np.where(negative, spread(below_0, count, self.block), spread(from_0, count, self.block))
