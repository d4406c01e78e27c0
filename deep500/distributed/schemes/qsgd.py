"""Randomly rounded gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from deep500.core.counts import check_count
from deep500.core.errors import TrainingError
from deep500.core.random import check_seed, random_stream
from deep500.datasets.draws import uniform
from deep500.distributed.scheme import Scheme, StepContext
from deep500.distributed.schemes._error_feedback import block_starts, gathered_mean, spread

__all__ = ["QSGD"]


class QSGD(Scheme):
    r"""Each value is rounded at random to one of a few levels of its block's norm, right in expectation.

    .. math::
        Q(v_i) = \|v\|_2 \, \mathrm{sgn}(v_i) \, \frac{1}{s} \lfloor s |v_i| / \|v\|_2 + u_i \rfloor, \qquad
        u_i \sim U[0, 1), \qquad E\,Q(v) = v

    with :math:`E \|Q(v) - v\|^2 \le \min(n / s^2, \sqrt n / s) \|v\|^2` for a block of n values. A byte a value is
    sent, and a norm a block; Elias coding is not done.

    Attributes:
        levels: Number of levels s.
        block: Number of values with a norm of their own.
        seed: Of the rounding; each rank and step draws anew.

    Source: D. Alistarh et al., "QSGD: Communication-Efficient SGD via Gradient Quantization and Encoding", NeurIPS
    2017, section 3.1 and lemma 3.1.
    """

    def __init__(self, levels: int = 127, block: int = 512, seed: int = 0) -> None:
        """Choose how coarse it is.

        Args:
            levels: Number of levels, from 1 to 127.
            block: Number of values with a norm of their own, from 1.
            seed: Of the rounding.

        Raises:
            TrainingError: An argument is not accepted.
        """
        self.levels = check_count("levels", levels, least=1, error=TrainingError)
        if self.levels > np.iinfo(np.int8).max:
            raise TrainingError(f"levels was given as {levels}; accepted are whole numbers from 1 to 127.")
        self.block = check_count("block", block, least=1, error=TrainingError)
        self.seed = check_seed(seed)

    def after_backward(self, context: StepContext) -> None:
        """Gather all ranks' rounded gradients, and average them."""
        rank = context.communicator.rank
        for buffer in context.gradients:
            stream = random_stream(self.seed, "qsgd", context.step, rank, buffer.dtype)
            parts = self.encode(buffer.array, stream)
            buffer.array[...] = gathered_mean(context.communicator, self.decode, *parts, like=buffer.array)

    def encode(self, values: NDArray[Any], stream: np.random.Generator) -> tuple[NDArray[Any], NDArray[np.int8]]:
        """Return the norm of each block, and the level of each value with its sign."""
        wide = values.astype(np.promote_types(values.dtype, np.float32))
        starts = block_starts(values.size, self.block)
        largest = np.maximum.reduceat(np.abs(wide), starts)  # squares of what is divided by it do not overflow
        scaled = wide / spread(np.where(largest > 0, largest, 1), values.size, self.block)
        roots = np.sqrt(np.add.reduceat(scaled * scaled, starts))
        share = np.abs(scaled) / spread(np.where(roots > 0, roots, 1), values.size, self.block)
        level = np.floor(self.levels * np.nan_to_num(share) + uniform(stream, values.size))
        levels = np.copysign(np.minimum(level, self.levels), wide).astype(np.int8)
        return (largest * roots).astype(wide.dtype), levels

    def decode(self, norms: NDArray[Any], levels: NDArray[np.int8]) -> NDArray[Any]:
        """Return the rounded values."""
        decoded: NDArray[Any] = spread(norms / self.levels, levels.size, self.block) * levels
        return decoded
