"""Compression whose error is not lost: what a step leaves out is added to the next gradient."""

from __future__ import annotations

import abc
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from deep500.core.errors import CheckpointError
from deep500.distributed.communication import gather_bytes
from deep500.distributed.communicator import Communicator
from deep500.distributed.flat_buffers import FlatBuffer
from deep500.distributed.scheme import Scheme, StepContext

__all__ = ["ErrorFeedback", "block_starts", "gathered_mean", "spread"]


class ErrorFeedback(Scheme):
    r"""A scheme that sends less than the gradient, and keeps the rest.

    .. math::
        c_t = g_t + e_t, \qquad \bar g_t = \frac{1}{p} \sum_i C(c_t^{(i)}), \qquad e_{t+1} = c_t - C(c_t)

    So what was sent and what is kept add up to the sum of all gradients.

    Attributes:
        residuals: What this rank has not sent yet, :math:`e`, by dtype, ``[elements of the flat buffer]``.

    Source: F. Seide et al., "1-Bit Stochastic Gradient Descent", Interspeech 2014; S. P. Karimireddy et al., "Error
    Feedback Fixes SignSGD", ICML 2019.
    """

    kept: ClassVar[tuple[str, ...]] = ("residuals",)

    def __init__(self) -> None:
        """Start with nothing left out."""
        self.residuals: dict[str, NDArray[Any]] = {}

    def bind(self, context: StepContext) -> None:
        """Make residuals of zeros; see :meth:`Scheme.bind`."""
        super().bind(context)
        self.residuals = {buffer.dtype: np.zeros_like(buffer.array) for buffer in context.gradients}

    def after_backward(self, context: StepContext) -> None:
        """Exchange each buffer's compressed values, and keep what compression left out."""
        for buffer in context.gradients:
            buffer.array += self.residuals[buffer.dtype]
            mean, sent = self.exchange(buffer, context)
            np.subtract(buffer.array, sent, out=self.residuals[buffer.dtype])
            buffer.array[...] = mean

    def check(self, state: Mapping[str, Any]) -> None:
        """Check that a snapshot is of a scheme like this one, with residuals of this network; see :meth:`Scheme.check`.

        Raises:
            CheckpointError: It is not.
        """
        super().check(state)
        saved = {dtype: np.shape(residual) for dtype, residual in state["kept"]["residuals"].items()}
        here = {dtype: residual.shape for dtype, residual in self.residuals.items()}
        if saved != here:
            raise CheckpointError(
                f"The checkpoint's scheme has residuals of the sizes {saved}; this network's are {here}. Restore it "
                f"with the network that was trained."
            )

    @abc.abstractmethod
    def exchange(self, buffer: FlatBuffer, context: StepContext) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the mean over all ranks of what each sent, and what this rank sent.

        Args:
            buffer: The values to send as well as can be; not changed.
            context: See :class:`StepContext`.
        """


def block_starts(count: int, block: int) -> NDArray[np.intp]:
    """Return where blocks of a number of values begin; the last may be shorter."""
    return np.arange(0, count, _within(block, count))


def spread(values: NDArray[Any], count: int, block: int) -> NDArray[Any]:
    """Return the value of each element's block, ``[count]``."""
    return np.repeat(values, _within(block, count))[:count]


def _within(block: int, count: int) -> int:
    """Return the size of a block that has no more values than there are: what lies beyond takes no memory."""
    return min(block, max(count, 1))


def gathered_mean(communicator: Communicator, decode: Any, *parts: NDArray[Any], like: NDArray[Any]) -> NDArray[Any]:
    """Gather what every rank sends, and return the mean of what ``decode`` makes of it, summed in the order of ranks.

    Args:
        communicator: What carries the messages.
        decode: Called with the parts of one rank; returns an array like ``like``.
        *parts: What this rank sends.
        like: An array of the result's dtype and shape.
    """
    total = np.zeros_like(like)
    for received in gather_bytes(communicator, *parts):
        total += decode(*received)
    total /= communicator.size
    return total
