"""Euclidean norm of the differences."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from deep500.measure.metrics._differences import NormMetric, OutputPair, absolute_difference, euclidean_norm

__all__ = ["L2Error"]


class L2Error(NormMetric):
    r"""Root of the sum of the squared differences to the reference, the 2-norm of the difference of all outputs.

    :math:`\sqrt{\sum_k \sum_i |y_{k,i} - \hat y_{k,i}|^2}` over the elements of all outputs, in float64 and scaled, so
    that no square overflows; complex numbers by their modulus; integers exactly before they are squared. Equal values,
    equal NaNs and equal infinities among them, count 0; a NaN on one side only makes it NaN, any other infinity
    infinite.

    Example:
        >>> L2Error().measure(None, {"y": [3.0, 1.0]}, {"y": [0.0, 5.0]})
        5.0
    """

    def measure_pairs(self, pairs: Sequence[OutputPair]) -> float:
        """Return the norm for outputs with their references."""
        norms = [euclidean_norm(absolute_difference(pair.actual, pair.expected)) for pair in pairs]
        return euclidean_norm(np.array(norms, np.float64))
