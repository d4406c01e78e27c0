"""Messages' times as lines in pieces, fitted to measurements and checked on sizes that the fit has not seen."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from deep500.core.errors import MeasurementError
from deep500.distributed.simulation.cost_model import CostModel

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = ["Calibration", "PiecewiseAlphaBeta", "Segment", "calibrate", "fit_pieces"]

#: Fewest sizes of a piece; a line through two has no error to judge it by.
_LEAST_SIZES = 3

#: Mean squared relative errors below this are the clock's, and no reason for another piece.
_LEAST_ERROR = 1e-8


@dataclass(frozen=True)
class Segment:
    """The time of messages up to a size, ``alpha + size / bandwidth``.

    Attributes:
        up_to_bytes: The largest size; infinite for the last piece.
        alpha_s: What a message takes whatever its size; of later pieces it may be negative.
        beta_s_per_byte: What each byte takes.
    """

    up_to_bytes: float
    alpha_s: float
    beta_s_per_byte: float


@dataclass(frozen=True)
class PiecewiseAlphaBeta(CostModel):
    r"""Messages of :math:`k` bytes take :math:`\alpha_i + \beta_i k`, with i the piece that k lies in.

    The latency is that of the first piece; what a message takes beyond it keeps the link busy.

    Source: R. W. Hockney, "The communication challenge for MPP", Parallel Computing 20(3), 1994, in pieces.

    Attributes:
        segments: The pieces, from small messages to large ones.
        reduction_s_per_byte: What adding a received byte takes.
        overhead_s: 0: the processor's part cannot be told from one-way times.
        gap_s: 0, likewise.
    """

    segments: tuple[Segment, ...]
    reduction_s_per_byte: float = 0.0
    overhead_s: float = 0.0
    gap_s: float = 0.0

    @property
    def latency_s(self) -> float:  # type: ignore[override] # it follows from the pieces
        """The alpha of the first piece."""
        return self.segments[0].alpha_s

    @property
    def breaks_bytes(self) -> list[float]:
        """Sizes at which one piece ends and the next begins."""
        return [segment.up_to_bytes for segment in self.segments[:-1]]

    def times_s(self, size_bytes: ArrayLike) -> NDArray[np.float64]:
        """Return the times of messages of these sizes."""
        sizes = np.asarray(size_bytes, dtype=np.float64)
        pieces = np.searchsorted(self.breaks_bytes, sizes)
        alphas = np.array([segment.alpha_s for segment in self.segments])
        betas = np.array([segment.beta_s_per_byte for segment in self.segments])
        return np.asarray(alphas[pieces] + betas[pieces] * sizes)

    def streaming_s(self, size_bytes: ArrayLike) -> NDArray[np.float64]:
        """Return what messages take beyond the latency."""
        return np.maximum(self.times_s(size_bytes) - self.latency_s, 0.0)


@dataclass(frozen=True, eq=False)
class Calibration:
    """A fitted model and how well it tells the times of sizes that it was not fitted to.

    Attributes:
        model: The model.
        fitted_bytes: Sizes that it was fitted to.
        held_out_bytes: Sizes that it was checked on.
        relative_errors: ``|predicted / measured - 1|`` at each held-out size.
    """

    model: PiecewiseAlphaBeta
    fitted_bytes: NDArray[np.float64]
    held_out_bytes: NDArray[np.float64]
    relative_errors: NDArray[np.float64]

    @property
    def median_relative_error(self) -> float:
        """Median of the relative errors at the held-out sizes."""
        return float(np.median(self.relative_errors))

    @property
    def largest_relative_error(self) -> float:
        """Largest relative error at the held-out sizes."""
        return float(np.max(self.relative_errors))


def calibrate(
    size_bytes: ArrayLike,
    times_s: ArrayLike,
    *,
    maximum_pieces: int = 4,
    reduction_s_per_byte: float = 0.0,
    quantile: float = 0.5,
) -> Calibration:
    """Fit a piecewise model to two thirds of the sizes and check it on the others.

    Every third size is held out, in order of size, but neither the smallest nor the largest. Several times of one size
    count as their median, or another quantile.

    Args:
        size_bytes: Sizes of messages.
        times_s: What each took, one way.
        maximum_pieces: Most pieces; see :func:`fit_pieces` for how many it becomes.
        reduction_s_per_byte: What adding a received byte takes, taken over into the model.
        quantile: Of the times of one size; on a machine that others use as well, a lower one than the median tells of
            the network rather than of them.

    Raises:
        MeasurementError: Sizes and times do not pair, are not positive, or are of too few different sizes.
    """
    sizes, times = _quantiles(size_bytes, times_s, quantile)
    if len(sizes) < _LEAST_SIZES + 2:
        raise MeasurementError(
            f"A calibration received {len(sizes)} different sizes of messages; it needs {_LEAST_SIZES + 2} or more, to "
            "fit lines to some and check them on others. Measure more sizes, from 1 byte to the largest buffer."
        )
    held_out = np.arange(len(sizes)) % 3 == 2
    held_out[-1] = False
    model = fit_pieces(sizes[~held_out], times[~held_out], maximum_pieces, reduction_s_per_byte)
    errors = np.abs(model.times_s(sizes[held_out]) / times[held_out] - 1)
    return Calibration(model, sizes[~held_out], sizes[held_out], errors)


def fit_pieces(
    size_bytes: ArrayLike, times_s: ArrayLike, maximum_pieces: int = 4, reduction_s_per_byte: float = 0.0
) -> PiecewiseAlphaBeta:
    """Fit lines in pieces that make the sum of squared relative errors least, for the best number of pieces.

    The best division of the sizes is found by dynamic programming; the number of pieces is that with the least
    criterion of Liu, Wu and Zidek, which is stricter than Schwarz's since the ends of pieces are searched for.

    Source: R. Bellman, R. Roth, "Curve fitting by segmented straight lines", JASA 64, 1969; J. Liu, S. Wu,
    J. V. Zidek, "On segmented multivariate regression", Statistica Sinica 7, 1997.

    Raises:
        MeasurementError: See :func:`calibrate`.
    """
    sizes, times = _quantiles(size_bytes, times_s, 0.5)
    number = len(sizes)
    if maximum_pieces < 1 or number < _LEAST_SIZES:
        raise MeasurementError(
            f"{maximum_pieces} pieces were to be fitted to {number} different sizes; accepted is 1 piece or more to "
            f"{_LEAST_SIZES} sizes or more."
        )
    lines = {
        (first, last): _line(sizes[first:last], times[first:last], is_first=first == 0)
        for first in range(number)
        for last in range(first + _LEAST_SIZES, number + 1)
    }
    best: list[dict[int, tuple[float, list[int]]]] = [{0: (0.0, [0])}]
    for _ in range(min(maximum_pieces, number // _LEAST_SIZES)):
        reached: dict[int, tuple[float, list[int]]] = {}
        for (first, last), (error, _, _) in lines.items():
            if first in best[-1]:
                before, ends = best[-1][first]
                if last not in reached or before + error < reached[last][0]:
                    reached[last] = (before + error, [*ends, last])
        best.append(reached)
    whole = [(pieces, *reached[number]) for pieces, reached in enumerate(best) if pieces and number in reached]
    _, _, ends = min(whole, key=lambda found: _criterion(number, found[0], found[1]))
    fitted = [lines[first, last][1:] for first, last in itertools.pairwise(ends)]
    limits = [_break(sizes[end - 1], sizes[end], *fitted[i : i + 2]) for i, end in enumerate(ends[1:-1])]
    segments = (Segment(limit, *line) for limit, line in zip([*limits, math.inf], fitted))
    return PiecewiseAlphaBeta(tuple(segments), reduction_s_per_byte)


def _criterion(number: int, pieces: int, error: float) -> float:
    parameters = 3 * pieces - 1  # two of each line, and where it ends
    freedom = number - parameters
    if freedom < 1:
        return math.inf
    penalty = 0.299 * float(math.log(number) ** 2.1)
    return number * math.log(max(error / freedom, _LEAST_ERROR)) + parameters * penalty


def _line(sizes: NDArray[np.float64], times: NDArray[np.float64], *, is_first: bool) -> tuple[float, float, float]:
    """Return the squared relative error, alpha and beta of the best line; beta, and the first alpha, not negative."""
    design = np.stack([1 / times, sizes / times], axis=1)
    scale = np.linalg.norm(design, axis=0)
    alpha, beta = np.linalg.lstsq(design / scale, np.ones(len(sizes)), rcond=None)[0] / scale
    if beta < 0:
        alpha, beta = design[:, 0].sum() / (design[:, 0] ** 2).sum(), 0.0
    elif is_first and alpha < 0:
        alpha, beta = 0.0, design[:, 1].sum() / (design[:, 1] ** 2).sum()
    error = float(((design @ np.array([alpha, beta]) - 1) ** 2).sum())
    return error, float(alpha), float(beta)


def _break(low: float, high: float, before: tuple[float, float], after: tuple[float, float]) -> float:
    """Return where the next line takes over: where both cross, or half way (of the logarithm) where there is a jump."""
    if before[1] != after[1]:
        crossing = (after[0] - before[0]) / (before[1] - after[1])
        if low <= crossing < high:
            return crossing
    return math.sqrt(low * high)


def _quantiles(
    size_bytes: ArrayLike, times_s: ArrayLike, quantile: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    sizes, times = np.asarray(size_bytes, dtype=np.float64), np.asarray(times_s, dtype=np.float64)
    if sizes.shape != times.shape or sizes.ndim != 1:
        raise MeasurementError(
            f"Received sizes of the shape {sizes.shape} and times of {times.shape}; accepted are one-dimensional ones "
            "of the same length."
        )
    if not (np.isfinite(sizes).all() and np.isfinite(times).all() and (sizes > 0).all() and (times > 0).all()):
        raise MeasurementError(
            "Received sizes or times that are not positive and finite; measure messages of 1 byte or more."
        )
    if not 0 <= quantile <= 1:
        raise MeasurementError(f"Received the quantile {quantile!r}; accepted are numbers from 0 to 1.")
    different = np.unique(sizes)
    return different, np.array([np.quantile(times[sizes == size], quantile) for size in different])
