"""Fits find the pieces that measurements were made from, and are judged on sizes that they have not seen."""

from __future__ import annotations

import math

import numpy as np
import pytest

from deep500.core.errors import MeasurementError
from deep500.distributed.simulation.calibration import PiecewiseAlphaBeta, Segment, calibrate, fit_pieces
from deep500.distributed.simulation.catalogue import ALGORITHMS
from deep500.distributed.simulation.clocks import Clocks
from deep500.distributed.simulation.closed_forms import closed_form

# A cache edge at 1 MiB and a protocol's switch at 16 KiB, as mpich shows them.
TRUE = PiecewiseAlphaBeta(
    (Segment(2**14, 1e-6, 1 / 5e9), Segment(2**20, 6e-6, 1 / 4e9), Segment(math.inf, -180e-6, 1 / 2.2e9))
)
SIZES = np.unique(np.round(2 ** np.arange(0, 26.1, 0.5)))


def measured(noise: float, repetitions: int = 15, seed: int = 3) -> tuple[np.ndarray, np.ndarray]:
    sizes = np.repeat(SIZES, repetitions)
    stream = np.random.default_rng(seed)
    return sizes, TRUE.times_s(sizes) * np.exp(noise * stream.standard_normal(len(sizes)))


def test_exact_times_give_the_pieces_back() -> None:
    calibration = calibrate(*measured(noise=0.0))

    assert calibration.median_relative_error < 1e-6
    assert len(calibration.model.segments) == 3
    for found, true in zip(calibration.model.segments, TRUE.segments):
        assert found.alpha_s == pytest.approx(true.alpha_s, rel=1e-4)
        assert found.beta_s_per_byte == pytest.approx(true.beta_s_per_byte, rel=1e-4)


@pytest.mark.parametrize("seed", range(5))
def test_breaks_are_found_under_noise(seed: int) -> None:
    calibration = calibrate(*measured(noise=0.05, seed=seed))

    assert calibration.median_relative_error < 0.05
    first, second = calibration.model.breaks_bytes
    assert 2**13 <= first <= 2**15
    assert 2**19 <= second <= 2**21


def test_one_line_misses() -> None:
    sizes, times = measured(noise=0.02)

    whole = calibrate(sizes, times, maximum_pieces=1)

    assert whole.largest_relative_error > 0.2
    assert whole.largest_relative_error > 5 * calibrate(sizes, times).largest_relative_error


def test_one_line_is_enough_for_a_line() -> None:
    sizes = np.repeat(SIZES, 9)
    times = (5e-6 + sizes / 3e9) * np.exp(0.03 * np.random.default_rng(1).standard_normal(len(sizes)))

    calibration = calibrate(sizes, times)

    assert len(calibration.model.segments) == 1
    assert calibration.model.latency_s == pytest.approx(5e-6, rel=0.05)


def test_held_out_sizes_are_not_fitted() -> None:
    sizes, times = measured(noise=0.0)
    calibration = calibrate(sizes, times)
    spoilt = times.copy()
    spoilt[np.isin(sizes, calibration.held_out_bytes)] *= 2

    again = calibrate(sizes, spoilt)

    assert not set(calibration.held_out_bytes) & set(calibration.fitted_bytes)
    assert again.model == calibration.model
    assert again.median_relative_error == pytest.approx(0.5, rel=1e-3)


def test_ends_are_fitted() -> None:
    for count in range(5, 30):
        calibration = calibrate(SIZES[:count], TRUE.times_s(SIZES[:count]))

        assert {SIZES[0], SIZES[count - 1]} <= set(calibration.fitted_bytes)


def test_outliers_do_not_count() -> None:
    sizes, times = measured(noise=0.0)
    times[::15] *= 100

    assert calibrate(sizes, times).median_relative_error < 1e-6


@pytest.mark.parametrize("size", [4, 7, 64])
def test_closed_forms_hold_for_pieces(size: int) -> None:
    for name in ("ring_allreduce", "rabenseifner_allreduce", "recursive_doubling_allreduce"):
        end = Clocks(TRUE, size).run(ALGORITHMS.get(name)(size, 64 * 50_000, 4))

        assert end == pytest.approx(closed_form(name)(TRUE, size, 64 * 50_000, 4), rel=1e-3)


def test_time_of_a_message_is_the_measured_one() -> None:
    assert [TRUE.message_s(size) for size in (1, 2**16, 2**22)] == pytest.approx(TRUE.times_s([1, 2**16, 2**22]))


@pytest.mark.parametrize(
    ("sizes", "times", "words"),
    [
        ([1, 2, 3], [1.0, 1.0, 1.0], "needs 5 or more"),
        ([1, 2], [1.0], "same length"),
        ([0, 1, 2, 3, 4], [1.0] * 5, "positive"),
        ([1, 2, 3, 4, 5], [1.0, 1.0, float("nan"), 1.0, 1.0], "positive"),
    ],
)
def test_measurements_that_cannot_be_fitted(sizes: list[int], times: list[float], words: str) -> None:
    with pytest.raises(MeasurementError, match=words):
        calibrate(sizes, times)


def test_lower_quantile_on_a_machine_in_use() -> None:
    sizes, times = measured(noise=0.0)
    times[np.arange(len(times)) % 15 < 10] *= 3  # two thirds of the repetitions met somebody else

    assert calibrate(sizes, times, quantile=0.1).model.segments[0].alpha_s == pytest.approx(1e-6, rel=1e-3)
    with pytest.raises(MeasurementError, match="0 to 1"):
        calibrate(sizes, times, quantile=2.0)


def test_no_piece() -> None:
    with pytest.raises(MeasurementError, match="1 piece or more"):
        fit_pieces([1, 2, 3], [1.0, 2.0, 3.0], maximum_pieces=0)
