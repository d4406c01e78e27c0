from __future__ import annotations

import itertools
import math
import timeit

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deep500.core.errors import MeasurementError
from deep500.measure.statistics.steady_state import change_points, detectable_length, normal_scores, steady_state
from tests.unit.measure.statistics.simulation import autoregressive, bimodal

REPETITIONS = 150


def series(kind: str, size: int) -> np.ndarray:
    rng = np.random.default_rng(size)
    shape = (REPETITIONS, size)
    return {
        "normal": lambda: rng.normal(size=shape),
        "lognormal": lambda: rng.lognormal(size=shape),
        "t2": lambda: rng.standard_t(2, shape),
        "bimodal": lambda: bimodal(rng, shape),
        "AR 0.5": lambda: autoregressive(rng, *shape, 0.5),
        "two values": lambda: rng.integers(0, 2, shape).astype(float),
    }[kind]()


def noise(seed: int, size: int) -> np.ndarray:
    return np.random.default_rng(seed).lognormal(0, 0.1, size)


def best_partition(samples: np.ndarray, penalty: float) -> tuple[int, ...]:
    """Return the change points of least cost among all partitions into segments of two samples or more."""
    scores, size = normal_scores(samples), len(samples)

    def cost(changes: tuple[int, ...]) -> float:
        parts = np.split(scores, changes)
        return sum(float(((part - part.mean()) ** 2).sum()) + penalty * math.log(size) for part in parts)

    candidates = [
        changes
        for count in range(size // 2)
        for changes in itertools.combinations(range(2, size - 1), count)
        if all(b - a >= 2 for a, b in itertools.pairwise((0, *changes, size)))
    ]
    return min(candidates, key=cost)


@pytest.mark.parametrize("size", [100, 500])
@pytest.mark.parametrize("kind", ["normal", "lognormal", "t2", "bimodal", "AR 0.5", "two values"])
def test_steady_series_raise_no_alarm(kind: str, size: int) -> None:
    assert [row for row in series(kind, size) if steady_state(row).start != 0] == []


@pytest.mark.parametrize(
    ("size", "warm_up", "factor"), [(100, 20, 2.0), (100, 40, 1.3), (500, 10, 2.0), (500, 20, 1.5), (500, 100, 1.15)]
)
def test_warm_up_is_found_where_it_ends(size: int, warm_up: int, factor: float) -> None:
    starts = []
    for seed in range(REPETITIONS):
        run = noise(seed, size)
        run[:warm_up] *= factor
        starts.append(steady_state(run).start)

    near = [start is not None and abs(start - warm_up) <= max(3, 0.1 * warm_up) for start in starts]
    assert np.mean(near) >= 0.97


def test_run_that_never_settles_has_no_steady_state() -> None:
    size = 500
    drift = [noise(seed, size) * np.linspace(1, 1.5, size) for seed in range(100)]
    late = [np.where(np.arange(size) < 300, 1.3, 1.0) * noise(seed, size) for seed in range(30)]

    assert (
        sum(steady_state(run).start is None for run in drift) >= 90
    )  # the newer half of a drift can hide in its noise
    assert {steady_state(run).start for run in late} == {None}
    assert steady_state(1 - 0.002 * np.linspace(0, 1, size)).start == 0  # a drift within the tolerance
    result = steady_state(late[0])
    assert "no steady state" in result.reason
    assert len(result.changes) == 1
    assert steady_state(late[0], least_share=0.3).start == pytest.approx(300, abs=5)


def test_levels_within_the_tolerance_are_one() -> None:
    run = np.where(np.arange(400) < 250, 1.005, 1.0) * np.random.default_rng(0).lognormal(0, 1e-3, 400)

    assert change_points(run) == (250,)
    assert steady_state(run).start == 0
    assert steady_state(run, tolerance=0.001).start is None


def test_small_change_behind_a_large_warm_up_is_found() -> None:
    run = noise(3, 600)
    run[:100] *= 50
    run[100:250] *= 1.12

    assert steady_state(run).start == pytest.approx(250, abs=15)


@given(seed=st.integers(0, 10_000), cut=st.integers(0, 14), penalty=st.sampled_from([0.3, 0.7, 1.5]))
def test_partition_is_the_best_of_all(seed: int, cut: int, penalty: float) -> None:
    run = np.random.default_rng(seed).normal(size=14)
    run[:cut] += 2

    assert change_points(run, penalty) == best_partition(run, penalty)


@given(seed=st.integers(0, 10_000))
def test_monotone_transformation_changes_nothing(seed: int) -> None:
    run = noise(seed, 80)
    run[:30] *= 1.4

    assert change_points(np.exp(run)) == change_points(run)
    assert change_points(-run) == change_points(run)
    assert change_points(run[::-1]) == tuple(80 - change for change in reversed(change_points(run)))


@pytest.mark.parametrize("size", [60, 100, 500])
def test_shortest_detectable_warm_up_is_as_stated(size: int) -> None:
    run = noise(0, size)
    shortest = detectable_length(size)
    assert shortest is not None

    run[:shortest] *= 100
    assert change_points(run) == (shortest,)
    run[shortest - 1] /= 100
    assert change_points(run) == ()
    assert steady_state(run).detectable == shortest


def test_few_samples_are_refused_with_the_number_needed() -> None:
    with pytest.raises(MeasurementError, match="among 52 samples at the earliest; there are 51"):
        steady_state(noise(0, 51))
    assert steady_state(noise(0, 52)).start == 0
    assert change_points(noise(0, 3)) == ()


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_samples_that_are_not_finite_are_refused(bad: float) -> None:
    with pytest.raises(MeasurementError, match="1 of 101 samples are NaN or infinite"):
        steady_state([*noise(0, 100), bad])


def test_500_samples_take_less_than_5_ms() -> None:
    run = noise(0, 500)

    assert min(timeit.repeat(lambda: steady_state(run), number=1, repeat=20)) < 5e-3


@given(st.lists(st.integers(-5, 5), min_size=2, max_size=60))
def test_scores_share_the_mean_rank_of_ties(values: list[int]) -> None:
    from scipy.special import ndtri
    from scipy.stats import rankdata

    expected = ndtri((rankdata(values) - 0.375) / (len(values) + 0.25))

    np.testing.assert_allclose(normal_scores(values), expected, rtol=1e-13, atol=1e-13)
