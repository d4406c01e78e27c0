"""Largest absolute difference."""

from __future__ import annotations

from typing import Any

import numpy as np

from deep500.measure.metrics._differences import DifferenceMetric, absolute_difference, largest

__all__ = ["MaxError"]


class MaxError(DifferenceMetric):
    r"""Largest absolute difference to the reference, the maximum norm of the difference of all outputs.

    :math:`\max_k \max_i |y_{k,i} - \hat y_{k,i}|` over the elements of all outputs, 0 of none, in float64; complex
    numbers by their modulus; integers exactly. Equal values, equal NaNs and equal infinities among them, count 0; a
    NaN on one side only makes it NaN, any other infinity infinite.

    Example:
        >>> MaxError().measure(None, [1.0, 2.0], [1.5, 2.0])
        0.5
    """

    def measure(self, inputs: Any, outputs: Any, reference_outputs: Any = None) -> float:
        """Return the largest difference.

        Args:
            inputs: Not used.
            outputs: An array, a sequence of arrays, or a mapping from names to arrays.
            reference_outputs: The same, of equal shapes.

        Raises:
            MeasurementError: There is no reference.
            InvalidInputError: The outputs are no numbers, or do not have the names and shapes of the reference.
        """
        pairs = self.pairs(outputs, reference_outputs)
        return largest(np.array([largest(absolute_difference(pair.actual, pair.expected)) for pair in pairs]))
