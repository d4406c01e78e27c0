"""Sum of the absolute differences."""

from __future__ import annotations

from collections.abc import Sequence

from deep500.measure.metrics._differences import NormMetric, OutputPair, absolute_difference

__all__ = ["L1Error"]


class L1Error(NormMetric):
    r"""Sum of the absolute differences to the reference, the 1-norm of the difference of all outputs.

    :math:`\sum_k \sum_i |y_{k,i} - \hat y_{k,i}|` over the elements of all outputs, in float64; complex numbers by
    their modulus; integers exactly. Equal values, equal NaNs and equal infinities among them, count 0; a NaN on one
    side only makes it NaN, any other infinity infinite.

    Example:
        >>> L1Error().measure(None, [[1.0, 2.0], [3.0]], [[1.5, 2.0], [1.0]])
        2.5
    """

    def measure_pairs(self, pairs: Sequence[OutputPair]) -> float:
        """Return the sum for outputs with their references."""
        return sum((float(absolute_difference(pair.actual, pair.expected).sum()) for pair in pairs), 0.0)
