"""Sum of the absolute differences."""

from __future__ import annotations

from typing import Any

from deep500.measure.metrics._differences import DifferenceMetric, absolute_difference

__all__ = ["L1Error"]


class L1Error(DifferenceMetric):
    r"""Sum of the absolute differences to the reference, the 1-norm of the difference of all outputs.

    :math:`\sum_k \sum_i |y_{k,i} - \hat y_{k,i}|` over the elements of all outputs, in float64; complex numbers by
    their modulus; integers exactly. Equal values, equal NaNs and equal infinities among them, count 0; a NaN on one
    side only makes it NaN, any other infinity infinite.

    Example:
        >>> L1Error().measure(None, [[1.0, 2.0], [3.0]], [[1.5, 2.0], [1.0]])
        2.5
    """

    def measure(self, inputs: Any, outputs: Any, reference_outputs: Any = None) -> float:
        """Return the sum.

        Args:
            inputs: Not used.
            outputs: An array, a sequence of arrays, or a mapping from names to arrays.
            reference_outputs: The same, of equal shapes.

        Raises:
            MeasurementError: There is no reference.
            InvalidInputError: The outputs are no numbers, or do not have the names and shapes of the reference.
        """
        pairs = self.pairs(outputs, reference_outputs)
        return sum((float(absolute_difference(pair.actual, pair.expected).sum()) for pair in pairs), 0.0)
