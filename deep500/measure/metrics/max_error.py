"""Largest absolute difference."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from deep500.measure.metrics._differences import NormMetric, OutputPair, absolute_difference, largest

__all__ = ["MaxError"]


class MaxError(NormMetric):
    r"""Largest absolute difference to the reference, the maximum norm of the difference of all outputs.

    :math:`\max_k \max_i |y_{k,i} - \hat y_{k,i}|` over the elements of all outputs, 0 of none, in float64; complex
    numbers by their modulus; integers exactly. Equal values, equal NaNs and equal infinities among them, count 0; a
    NaN on one side only makes it NaN, any other infinity infinite.

    Example:
        >>> MaxError().measure(None, [1.0, 2.0], [1.5, 2.0])
        0.5
    """

    def measure_pairs(self, pairs: Sequence[OutputPair]) -> float:
        """Return the largest difference for outputs with their references."""
        return largest(np.array([largest(absolute_difference(pair.actual, pair.expected)) for pair in pairs]))
