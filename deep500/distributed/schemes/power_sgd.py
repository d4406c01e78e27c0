"""Gradients of low rank."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from deep500.core.counts import check_count
from deep500.core.errors import TrainingError
from deep500.core.random import check_seed, random_stream
from deep500.datasets.draws import uniform
from deep500.distributed.flat_buffers import FlatBuffer
from deep500.distributed.scheme import StepContext
from deep500.distributed.schemes._error_feedback import ErrorFeedback

__all__ = ["PowerSGD"]


class PowerSGD(ErrorFeedback):
    r"""The mean gradient of each matrix is sent as the product of two thin ones, by a step of power iteration.

    .. math::
        P = \mathrm{orth}\Big(\frac{1}{p} \sum_i M_i Q_{t-1}\Big), \qquad
        Q_t = \frac{1}{p} \sum_i M_i^\top P, \qquad \bar M = P Q_t^\top

    A kernel of a convolution is a matrix with a row an output channel. A tensor that two thin matrices would not make
    smaller, such as a bias, is averaged as it is. Both sums are allreduces, whose cost does not grow with the ranks.

    Attributes:
        rank: Columns of the thin matrices.
        seed: Of the first Q.
        queries: Q of the last step by parameter, from which the next one starts.

    Source: T. Vogels, S. P. Karimireddy, M. Jaggi, "PowerSGD: Practical Low-Rank Gradient Compression for Distributed
    Optimization", NeurIPS 2019, algorithms 1 and 2.
    """

    kept = ("residuals", "queries")

    def __init__(self, rank: int = 2, seed: int = 0) -> None:
        """Choose how much is sent.

        Args:
            rank: Columns of the thin matrices, from 1.
            seed: Of the first Q.

        Raises:
            TrainingError: An argument is not accepted.
        """
        super().__init__()
        self.rank = check_count("rank", rank, least=1, error=TrainingError)
        self.seed = check_seed(seed)
        self.queries: dict[str, NDArray[Any]] = {}

    def exchange(self, buffer: FlatBuffer, context: StepContext) -> tuple[NDArray[Any], NDArray[Any]]:
        """Send products of thin matrices; see :meth:`ErrorFeedback.exchange`.

        What this rank sent counts as the mean itself: the residuals of all ranks together are what the mean lacks.
        """
        wide = np.promote_types(buffer.array.dtype, np.float32)
        matrices = {name: _matrix(view).astype(wide) for name, view in buffer.views.items() if self.is_thin(view)}
        dense = {name: view.astype(wide) for name, view in buffer.views.items() if name not in matrices}
        first = {name: matrix @ self._query(name, matrix) for name, matrix in matrices.items()}
        first = _means({**first, **dense}, context)
        bases = {name: np.linalg.qr(first[name])[0] for name in matrices}
        second = _means({name: matrix.T @ bases[name] for name, matrix in matrices.items()}, context)
        self.queries.update(second)
        mean, sent = np.empty_like(buffer.array), buffer.array.copy()
        for name, view in buffer.views.items():
            part = slice(buffer.starts[name], buffer.starts[name] + view.size)
            is_thin = name in matrices
            mean[part] = (bases[name] @ second[name].T if is_thin else first[name]).reshape(-1)
            if is_thin:  # what was sent as it is leaves nothing behind
                sent[part] = mean[part]
        return mean, sent

    def is_thin(self, view: NDArray[Any]) -> bool:
        """Return whether two thin matrices are smaller than a tensor."""
        rows, columns = _matrix(view).shape
        return bool(self.rank * (rows + columns) < rows * columns)

    def _query(self, name: str, matrix: NDArray[Any]) -> NDArray[Any]:
        if name not in self.queries:
            stream = random_stream(self.seed, "power_sgd", name)
            drawn = 2 * uniform(stream, matrix.shape[1], self.rank) - 1
            self.queries[name] = drawn.astype(matrix.dtype)
        return self.queries[name]


def _matrix(view: NDArray[Any]) -> NDArray[Any]:
    rows = view.shape[0] if view.ndim else 1
    return view.reshape(rows, view.size // max(rows, 1))


def _means(tensors: dict[str, NDArray[Any]], context: StepContext) -> dict[str, NDArray[Any]]:
    """Return the means over all ranks of tensors of one dtype, from one message."""
    if not tensors:
        return {}
    flat = np.concatenate([tensor.reshape(-1) for tensor in tensors.values()])
    context.communicator.allreduce(flat, "mean")
    ends = np.cumsum([tensor.size for tensor in tensors.values()])[:-1]
    parts = np.split(flat, ends)
    return {name: part.reshape(tensor.shape) for (name, tensor), part in zip(tensors.items(), parts, strict=True)}
