"""Spearman's correlation against SciPy, and its interval over users."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom, spearmanr
from scipy.stats import t as student

from deep500.fleet.trace.association import correlations, spearman
from deep500.fleet.trace.factors import find_factors
from deep500.fleet.trace.generating import generate_outcomes
from deep500.fleet.trace.observed import observe
from deep500.measure.statistics import holm


def test_it_is_that_of_scipy() -> None:
    generator = np.random.default_rng(0)
    x = generator.integers(0, 12, 300).astype(float)
    y = x + generator.normal(0, 8, 300)
    found = spearman(x, y, np.arange(300))
    expected = spearmanr(x, y)
    assert found is not None
    assert found.rho == pytest.approx(expected.statistic, rel=1e-9)
    assert found.low is not None
    assert found.high is not None
    assert found.low < found.rho < found.high
    assert found.p_value == pytest.approx(expected.pvalue, rel=0.9)


@pytest.mark.parametrize("slope", [0.0, 0.6])
def test_intervals_cover_where_users_are_alike(slope: float) -> None:
    """Pairs of users' own values and their tasks': the truth is from a large sample."""
    covered, wrong = 0, 0
    truth = _draw(np.random.default_rng(99), 40_000, slope)[2]
    for seed in range(150):
        x, y, _ = _draw(np.random.default_rng(seed), 50, slope)
        found = spearman(x, y, np.repeat(np.arange(50), 6))
        assert found is not None
        assert found.low is not None
        assert found.high is not None
        assert found.p_value is not None
        covered += found.low <= truth <= found.high
        wrong += found.p_value < 0.05
    assert covered >= binom.ppf(0.001, 150, 0.95)
    assert slope > 0 or wrong <= binom.ppf(0.999, 150, 0.05)


def _draw(generator: np.random.Generator, users: int, slope: float) -> tuple[np.ndarray, np.ndarray, float]:
    own, other = generator.normal(size=(2, users)).repeat(6, axis=1)
    x = own + generator.normal(size=users * 6) * 0.5
    y = slope * x + other + generator.normal(size=users * 6) * 0.5
    return x, y, float(spearmanr(x, y).statistic)


def test_what_cannot_be_told() -> None:
    assert spearman(np.ones(10), np.arange(10.0), np.arange(10)) is None
    assert spearman(np.arange(2.0), np.arange(2.0), np.arange(2)) is None
    found = spearman(np.arange(10.0), np.array([1.0, 3, 2, 5, 4, 7, 6, 9, 8, 10]), np.zeros(10, dtype=int))
    assert found is not None
    assert found.p_value is None


def test_all_of_a_trace_are_corrected_together() -> None:
    trace = observe(generate_outcomes(800, 4))
    found = correlations(trace, find_factors(trace)[0])
    assert len(found) == 12  # four numbers, three questions
    p_values = [row.p_value or 0.0 for row in found]
    np.testing.assert_allclose([row.adjusted_p for row in found], holm(p_values).adjusted)
    assert {row.against for row in found if row.factor == "size"} == {
        "failing rather than passing",
        "time to failure of failed tasks",
        "time to success of passed tasks",
    }


@pytest.mark.parametrize("ties", [False, True])
def test_the_error_is_that_of_leaving_out_each_user(ties: bool) -> None:
    generator = np.random.default_rng(4)
    x = generator.normal(size=200)
    y = x + generator.normal(size=200) * 0.5
    if ties:
        x, y = np.round(x), np.round(y * 2)
    users = np.repeat(np.arange(100), 2)
    found = spearman(x, y, users)
    assert found is not None
    assert found.low is not None
    assert found.high is not None
    without = np.array([spearmanr(x[users != user], y[users != user]).statistic for user in range(100)])
    wanted = np.sqrt(99 / 100 * ((without - without.mean()) ** 2).sum())
    wide = (np.arctanh(found.high) - np.arctanh(found.low)) / 2 * (1 - found.rho**2)
    assert wide / student.ppf(0.975, 99) == pytest.approx(wanted, rel=0.05)
