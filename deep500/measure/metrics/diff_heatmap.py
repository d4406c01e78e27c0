"""Picture of the differences."""

from __future__ import annotations

from typing import Any

from deep500.measure.metrics._differences import absolute_difference
from deep500.measure.metrics._heatmaps import HeatmapMetric

__all__ = ["DiffHeatmap"]


class DiffHeatmap(HeatmapMetric):
    """Heat map of the absolute differences to the reference; the value is the largest difference.

    Each output has a panel with a scale of its own: the last two dimensions, and the mean over the others; one
    dimension is broken into rows. NaN and infinities are magenta. Differences are those of
    :class:`~deep500.measure.metrics.max_error.MaxError`.

    Example:
        >>> DiffHeatmap().measure(None, [[1.0, 2.0]], [[1.0, 4.0]])
        2.0
    """

    colours = "|output − reference|"

    def measure(self, inputs: Any, outputs: Any, reference_outputs: Any = None) -> float:
        """Return the largest difference, and write the picture where one was asked for.

        Args:
            inputs: Not used.
            outputs: An array, a sequence of arrays, or a mapping from names to arrays.
            reference_outputs: The same, of equal shapes.

        Raises:
            MeasurementError: There is no reference.
            InvalidInputError: The outputs are no numbers, or do not have the names and shapes of the reference.
            FileWriteError: The picture cannot be written.
        """
        pairs = self.pairs(outputs, reference_outputs)
        return self.finish({pair.name: absolute_difference(pair.actual, pair.expected) for pair in pairs})
