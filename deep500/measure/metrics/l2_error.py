"""Euclidean norm of the differences."""

from __future__ import annotations

from typing import Any

import numpy as np

from deep500.measure.metrics._differences import DifferenceMetric, absolute_difference, euclidean_norm

__all__ = ["L2Error"]


class L2Error(DifferenceMetric):
    r"""Root of the sum of the squared differences to the reference, the 2-norm of the difference of all outputs.

    :math:`\sqrt{\sum_k \sum_i |y_{k,i} - \hat y_{k,i}|^2}` over the elements of all outputs, in float64 and scaled, so
    that no square overflows; complex numbers by their modulus; integers exactly before they are squared. Equal values,
    equal NaNs and equal infinities among them, count 0; a NaN on one side only makes it NaN, any other infinity
    infinite.

    Example:
        >>> L2Error().measure(None, {"y": [3.0, 1.0]}, {"y": [0.0, 5.0]})
        5.0
    """

    def measure(self, inputs: Any, outputs: Any, reference_outputs: Any = None) -> float:
        """Return the norm.

        Args:
            inputs: Not used.
            outputs: An array, a sequence of arrays, or a mapping from names to arrays.
            reference_outputs: The same, of equal shapes.

        Raises:
            MeasurementError: There is no reference.
            InvalidInputError: The outputs are no numbers, or do not have the names and shapes of the reference.
        """
        pairs = self.pairs(outputs, reference_outputs)
        norms = [euclidean_norm(absolute_difference(pair.actual, pair.expected)) for pair in pairs]
        return euclidean_norm(np.array(norms, np.float64))
