"""Picture of the variance over runs."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from deep500.core.counts import check_count
from deep500.core.errors import InvalidInputError, MeasurementError
from deep500.measure.metrics._differences import magnitude, named_arrays, signed_difference
from deep500.measure.metrics._heatmaps import HeatmapMetric

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["VarHeatmap"]


class VarHeatmap(HeatmapMetric):
    r"""Heat map of the outputs' variance over runs, so that what is not deterministic shows; the value is the largest.

    For each element of the outputs :math:`y_1, \dots, y_n` of :math:`n` runs

    .. math:: \frac{1}{n - 1} \sum_{i=1}^n |y_i - \bar y|^2,

    by Welford's method from the differences to the first run, which are exact for integers. Thus it is 0 if, and but
    for underflow only if, all runs gave equal values. A value that is NaN in every run is equal, one that is NaN in
    some has the variance NaN, and one that is infinite in some an infinite variance.

    Source: B. P. Welford, "Note on a Method for Calculating Corrected Sums of Squares and Products", Technometrics
    4(3), 1962.
    """

    colours = "variance over runs"

    def __init__(self, path: str | PathLike[str] | None = None, *, reruns: int = 10, log_scale: bool = False) -> None:
        """Say how often to run, and where to draw.

        Args:
            path: File of the picture, which ends with ``.png`` or ``.svg``; ``None`` draws none. An older one is
                replaced.
            reruns: Number of runs of the test for this metric.
            log_scale: Whether the colours have a logarithmic scale; 0 then has the colour of "less".

        Raises:
            InvalidInputError: An argument is not accepted; a variance needs two runs.
        """
        super().__init__(path, log_scale=log_scale)
        self._reruns = check_count("reruns", reruns, least=2)
        self._runs = 0
        self._moments: dict[str, _Moments] = {}

    @property
    def reruns(self) -> int:
        """Number of runs of the test for this metric."""
        return self._reruns

    def end(self, outputs: Any) -> None:
        """Take in the outputs of a run.

        Raises:
            InvalidInputError: They are no numbers.
            MeasurementError: Their names or shapes are not those of the first run.
        """
        arrays = named_arrays("output", outputs)
        if not self._runs:
            self._moments = {name: _Moments(array) for name, array in arrays.items()}
        expected = {name: moments.first.shape for name, moments in self._moments.items()}
        found = {name: array.shape for name, array in arrays.items()}
        if found != expected:
            raise MeasurementError(
                f"VarHeatmap compares runs, but run {self._runs + 1} returned {_listed(found)}, and the first run "
                f"{_listed(expected)}."
            )
        self._runs += 1
        for name, array in arrays.items():
            self._moments[name].take(array, self._runs)

    def measure(self, inputs: Any = None, outputs: Any = None, reference_outputs: Any = None) -> float:
        """Return the largest variance, and write the picture where one was asked for.

        Raises:
            InvalidInputError: There were fewer than two runs.
            FileWriteError: The picture cannot be written.
        """
        if self._runs < 2:
            raise InvalidInputError(f"A variance needs two runs; VarHeatmap has seen {self._runs}.")
        return self.finish({name: moments.variance(self._runs) for name, moments in self._moments.items()})

    def measure_summary(self, inputs: Any = None, outputs: Any = None, reference_outputs: Any = None) -> str:
        """Return the largest variance, over how many runs it is, and where the picture is."""
        text = super().measure_summary(inputs, outputs, reference_outputs)
        return f"{text}, over {self._runs} runs"


@dataclass(init=False)
class _Moments:
    """The running mean and sum of squares of one output's differences to its first run."""

    first: NDArray[Any]

    def __init__(self, array: NDArray[Any]) -> None:
        self.first = np.array(array)  # a copy: the test may write its next outputs into the same memory
        dtype = np.complex128 if np.iscomplexobj(array) else np.float64
        self._mean = np.zeros(array.shape, dtype)
        self._squares = np.zeros(array.shape, np.float64)
        self._farthest = np.zeros(array.shape, np.float64)

    def take(self, array: NDArray[Any], run: int) -> None:
        difference = signed_difference(array, self.first)
        with np.errstate(all="ignore"):
            deviation = difference - self._mean
            self._mean = self._mean + deviation / run
            self._squares = self._squares + _real_product(deviation, difference - self._mean)
            self._farthest = np.maximum(self._farthest, magnitude(difference))

    def variance(self, runs: int) -> NDArray[np.float64]:
        variance = self._squares / (runs - 1)
        variance = np.where(np.isnan(variance), np.inf, variance)  # of finite values: a square beyond float64
        return np.where(np.isfinite(self._farthest), variance, self._farthest)


def _real_product(left: NDArray[Any], right: NDArray[Any]) -> NDArray[np.float64]:
    """Return the real part of left times the conjugate of right, which of numbers on one line is their product."""
    product: NDArray[np.float64] = left.real * right.real
    return product + left.imag * right.imag if np.iscomplexobj(left) else product


def _listed(shapes: dict[str, tuple[int, ...]]) -> str:
    return ", ".join(f"{name} of shape {shape}" for name, shape in list(shapes.items())[:5]) or "nothing"
