"""Difference relative to the reference."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from deep500.core.tensor_descriptor import numpy_dtype
from deep500.measure.metrics._differences import (
    DifferenceMetric,
    OutputPair,
    absolute_difference,
    euclidean_norm,
    largest,
    magnitude,
    widened,
)
from deep500.measure.tolerance import tolerance, unit_roundoff

__all__ = ["RelativeError"]


class RelativeError(DifferenceMetric):
    r"""Largest relative difference of an output to its reference, held against what its dtype allows.

    For each output :math:`k`

    .. math:: e_k = \frac{\lVert y_k - \hat y_k \rVert_2}{\lVert \hat y_k \rVert_2}

    in float64, with the norm of the reference over its finite elements, so that an infinity hides nothing; 0/0 is 0,
    anything else over 0 infinite. The value is :math:`\max_k e_k`. NaN and infinities count as in
    :class:`~deep500.measure.metrics.l2_error.L2Error`.

    What is acceptable is the relative :func:`~deep500.measure.tolerance.tolerance` for the coarser dtype of output and
    reference and the length of the reductions. It bounds the error relative to the size of the terms; an output whose
    elements are all nearly cancelled sums may exceed it by right, which :class:`MaxError` and a scale show.
    """

    def __init__(self, reduction_length: int = 1, *, dtype: Any = None, accumulator: Any = None) -> None:
        """Say what the outputs were computed by.

        Args:
            reduction_length: Number of products in the longest sum, or of roundings on the longest path.
            dtype: Dtype that they were computed in, where it is not that of the arrays.
            accumulator: Dtype that was summed in; see :func:`~deep500.measure.tolerance.tolerance`.

        Raises:
            InvalidInputError: An argument is not accepted.
            MeasurementError: No tolerance is meaningful for them.
        """
        self._length = reduction_length
        self._dtype = dtype
        self._accumulator = accumulator
        self._tolerance_of(np.float64 if dtype is None else dtype)  # refused here, not after hours of work

    def measure(self, inputs: Any, outputs: Any, reference_outputs: Any = None) -> float:
        """Return the largest relative error of an output, 0 of no outputs.

        Args:
            inputs: Not used.
            outputs: An array, a sequence of arrays, or a mapping from names to arrays.
            reference_outputs: The same, of equal shapes.

        Raises:
            MeasurementError: There is no reference.
            InvalidInputError: The outputs are no numbers, or do not have the names and shapes of the reference.
        """
        errors = [_relative_error(pair) for pair in self.pairs(outputs, reference_outputs)]
        return largest(np.array(errors, np.float64))

    def passes(self, outputs: Any, reference_outputs: Any) -> bool:
        """Whether the relative error of every output is at most what is acceptable for its dtype.

        Raises:
            MeasurementError: There is no reference, or no meaningful tolerance for a dtype.
            InvalidInputError: The outputs are no numbers, or do not have the names and shapes of the reference.
        """
        return all(entry.passes for entry in self._compared(outputs, reference_outputs))

    def acceptable(self, outputs: Any, reference_outputs: Any) -> float:
        """Return the largest relative error that is acceptable for every output: that of the finest dtype; 0 of none.

        Raises:
            MeasurementError: There is no reference, or no meaningful tolerance for a dtype.
            InvalidInputError: The outputs are no numbers, or do not have the names and shapes of the reference.
        """
        return min((entry.acceptable for entry in self._compared(outputs, reference_outputs)), default=0.0)

    def measure_summary(self, inputs: Any, outputs: Any, reference_outputs: Any = None) -> str:
        """Return the value with what is acceptable, and the worst output where one does not pass."""
        entries = self._compared(outputs, reference_outputs)
        if not entries:
            return "0 (no outputs)"
        worst = max(entries, key=lambda entry: (not entry.passes, math.isnan(entry.error), entry.error))
        verdict = "acceptable" if worst.passes else f"not acceptable: {worst.name},"
        length = f", reductions of {self._length}" if self._length > 1 else ""
        return f"{worst.error:.3g} ({verdict} up to {worst.acceptable:.3g} in {worst.dtype}{length})"

    def _compared(self, outputs: Any, reference_outputs: Any) -> list[_Compared]:
        compared = []
        for pair in self.pairs(outputs, reference_outputs):
            dtype = self._dtype or max(pair.actual.dtype, pair.expected.dtype, key=unit_roundoff)
            allowed = self._tolerance_of(dtype)
            compared.append(_Compared(pair.name, _relative_error(pair), allowed, numpy_dtype(dtype).name))
        return compared

    def _tolerance_of(self, dtype: Any) -> float:
        return tolerance(dtype, self._length, accumulator=self._accumulator).relative


@dataclass(frozen=True, slots=True)
class _Compared:
    """One output's relative error and what is acceptable for its dtype."""

    name: str
    error: float
    acceptable: float
    dtype: str

    @property
    def passes(self) -> bool:
        return self.error <= self.acceptable


def _relative_error(pair: OutputPair) -> float:
    difference = euclidean_norm(absolute_difference(pair.actual, pair.expected))
    sizes = magnitude(widened(pair.expected))
    size = euclidean_norm(sizes[np.isfinite(sizes)])
    if size > 0:
        return difference / size
    return difference if difference == 0 or math.isnan(difference) else math.inf
