"""Kaplan-Meier, Aalen-Johansen and log-rank against lifelines, closed forms and sums by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lifelines import AalenJohansenFitter, KaplanMeierFitter
from lifelines.statistics import multivariate_logrank_test
from scipy.stats import binom

from deep500.fleet.trace.cox import fit_cox
from deep500.fleet.trace.survival import (
    cluster_interval,
    incidence,
    incidence_at,
    kaplan_meier,
    log_rank,
    risk_table,
)


def sample(rows: int, seed: int = 0, ties: bool = False) -> tuple[np.ndarray, np.ndarray, np.random.Generator]:
    """Return durations in ascending order and what ended them, a quarter each censored and failed."""
    generator = np.random.default_rng(seed)
    durations = generator.exponential(10.0, rows)
    durations = np.sort(np.ceil(durations) if ties else durations)
    return durations, generator.choice(3, rows, p=(0.25, 0.25, 0.5)).astype(np.int8), generator


def test_kaplan_meier_by_hand() -> None:
    durations = np.array([1.0, 2.0, 2.0, 3.0, 5.0])
    events = np.array([1, 1, 0, 0, 1], dtype=np.int8)
    curve = kaplan_meier(risk_table(durations, events))

    assert curve.times.tolist() == [1.0, 2.0, 3.0, 5.0]
    np.testing.assert_allclose(curve.value, [4 / 5, 4 / 5 * 3 / 4, 3 / 5, 0.0])
    np.testing.assert_allclose(curve.variance[1], 0.6**2 * (1 / (5 * 4) + 1 / (4 * 3)))
    assert curve.at(2.5) == pytest.approx(0.6)
    assert math.isnan(curve.at(0.5))


@pytest.mark.parametrize("ties", [False, True])
def test_kaplan_meier_is_that_of_lifelines(ties: bool) -> None:
    durations, events, _ = sample(400, ties=ties)
    curve = kaplan_meier(risk_table(durations, events), (1,))
    fitter = KaplanMeierFitter().fit(durations, events == 1)
    expected = fitter.survival_function_at_times(curve.times).to_numpy()
    low, high = curve.band(0.95)
    band = fitter.confidence_interval_survival_function_.loc[curve.times].to_numpy()
    inside = (expected > 0) & (expected < 1)

    np.testing.assert_allclose(curve.value, expected, atol=1e-12)
    np.testing.assert_allclose(low[inside], band[inside, 0], rtol=1e-6)
    np.testing.assert_allclose(high[inside], band[inside, 1], rtol=1e-6)


def test_aalen_johansen_is_that_of_lifelines_without_ties() -> None:
    durations, events, _ = sample(200)
    table = risk_table(durations, events)
    for cause in (1, 2):
        fitter = AalenJohansenFitter().fit(durations, events, event_of_interest=cause)
        expected = fitter.cumulative_density_.iloc[:, 0].loc[table.times].to_numpy()
        variance = fitter.variance_.loc[table.times].to_numpy()
        curve = incidence(table, cause)
        np.testing.assert_allclose(curve.value, expected, atol=1e-12)
        known = np.isfinite(variance)  # lifelines has none where the last row ends
        assert known.sum() >= len(table.times) - 1
        np.testing.assert_allclose(curve.variance[known], variance[known], rtol=1e-6, atol=1e-12)
        assert np.isfinite(curve.variance).all()


def test_ties_are_kept_as_they_are() -> None:
    durations = np.array([1.0, 1.0, 1.0, 2.0, 2.0, 3.0])
    events = np.array([1, 2, 0, 1, 1, 2], dtype=np.int8)
    table = risk_table(durations, events)

    np.testing.assert_allclose(incidence(table, 1).value, [1 / 6, 1 / 6 + 4 / 6 * 2 / 3, 1 / 6 + 4 / 9])
    np.testing.assert_allclose(incidence(table, 2).value, [1 / 6, 1 / 6, 1 / 6 + 4 / 6 * 1 / 3])


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 2)), min_size=1, max_size=30))
def test_shares_add_up_to_one(rows: list[tuple[int, int]]) -> None:
    rows.sort()
    durations = np.array([float(row[0]) for row in rows])
    events = np.array([row[1] for row in rows], dtype=np.int8)
    table = risk_table(durations, events)
    parts = kaplan_meier(table).value + incidence(table, 1).value + incidence(table, 2).value

    np.testing.assert_allclose(parts, 1.0)
    for time in (0.0, 3.0, 6.0):
        for cause in (1, 2):
            value, error, _ = incidence_at(table, events, np.arange(len(rows)), cause, time)
            assert 0 <= value <= 1 + 1e-12
            assert np.isfinite(error)


@pytest.mark.parametrize("ties", [False, True])
def test_with_rows_as_clusters_the_error_is_greenwoods(ties: bool) -> None:
    durations, events, _ = sample(300, seed=3, ties=ties)
    merged = (events > 0).astype(np.int8)
    table = risk_table(durations, merged, 1)
    curve = kaplan_meier(table, (1,))
    for time in (2.0, 10.0, 25.0):
        value, error, clusters = incidence_at(table, merged, np.arange(300), 1, time)
        index = int(np.searchsorted(curve.times, time, side="right")) - 1
        assert clusters == 300
        assert value == pytest.approx(1 - curve.value[index])
        assert error**2 == pytest.approx(curve.variance[index], rel=1e-9)


def test_the_influences_are_derivatives_by_weights() -> None:
    durations, events, _ = sample(40, seed=5, ties=True)
    time, step = 8.0, 1e-6

    def weighted(weights: np.ndarray) -> float:
        """The Aalen-Johansen estimate for cause 1 with weights, in plain loops."""
        share, total = 1.0, 0.0
        for t in np.unique(durations[durations <= time]):
            n = weights[durations >= t].sum()
            total += share * weights[(durations == t) & (events == 1)].sum() / n
            share *= 1 - weights[(durations == t) & (events > 0)].sum() / n
        return total

    derivatives = []
    for row in range(40):
        up, down = np.ones(40), np.ones(40)
        up[row] += step
        down[row] -= step
        derivatives.append((weighted(up) - weighted(down)) / (2 * step))
    value, error, _ = incidence_at(risk_table(durations, events), events, np.arange(40), 1, time)

    assert value == pytest.approx(weighted(np.ones(40)))
    assert error == pytest.approx(math.sqrt(sum(d**2 for d in derivatives)), rel=1e-5)


def test_log_rank_is_that_of_lifelines() -> None:
    durations, events, generator = sample(500, seed=2, ties=True)
    groups = generator.integers(0, 4, 500)
    for cause in (1, 2):
        found = log_rank(durations, events == cause, groups)
        expected = multivariate_logrank_test(durations, groups, events == cause)
        assert found is not None
        assert found.statistic == pytest.approx(expected.test_statistic, rel=1e-9)
        assert found.p_value == pytest.approx(expected.p_value, rel=1e-7)
        assert found.degrees == 3
        assert found.robust_statistic is None


def test_log_rank_over_clusters_is_the_robust_score_test() -> None:
    durations, events, generator = sample(400, seed=8)
    groups = generator.integers(0, 2, 400)
    clusters = generator.integers(0, 50, 400)
    found = log_rank(durations, events == 1, groups, clusters)
    assert found is not None
    assert found.robust_statistic is not None

    share = np.array([(groups[row:] == 0).mean() for row in range(400)])
    hazard = np.array([1 / (400 - row) for row in range(400)]) * (events == 1)
    mine = groups == 0
    residual = [
        (events[row] == 1) * (mine[row] - share[row]) - ((mine[row] - share[: row + 1]) * hazard[: row + 1]).sum()
        for row in range(400)
    ]
    sums = np.bincount(clusters, weights=residual)
    assert found.robust_statistic == pytest.approx(sum(residual) ** 2 / ((sums**2).sum() * 50 / 49), rel=1e-9)


def test_log_rank_needs_groups_and_ends() -> None:
    durations, events, _ = sample(50)
    assert log_rank(durations, events == 1, np.zeros(50, dtype=int)) is None
    assert log_rank(durations, np.zeros(50, dtype=bool), np.arange(50) % 2) is None


def test_users_alike_within_make_wide_errors() -> None:
    """Copies of one row tell no more than the row."""
    durations, events, _ = sample(200, seed=11)
    times, ends, clusters = np.repeat(durations, 5), np.repeat(events, 5), np.repeat(np.arange(200), 5)
    _, error, _ = incidence_at(risk_table(durations, events), events, np.arange(200), 1, 10.0)
    table = risk_table(times, ends)
    _, together, count = incidence_at(table, ends, clusters, 1, 10.0)
    _, apart, _ = incidence_at(table, ends, np.arange(1000), 1, 10.0)

    assert count == 200
    assert together == pytest.approx(error, rel=0.02)
    assert apart < 0.5 * together


def test_intervals_that_cannot_be_told() -> None:
    assert cluster_interval(0.5, 0.1, 4, 0.95) is None
    assert cluster_interval(0.0, 0.0, 100, 0.95) is None
    low, high = cluster_interval(0.5, 0.1, 100, 0.95) or (0, 0)
    assert 0 < low < 0.5 < high < 1


def test_intervals_of_incidence_cover() -> None:
    """200 samples of 30 clusters whose members share a rate: of 95 % intervals, at least what chance leaves."""
    covered, apart = 0, 0
    truth = 0.5 * (1 - 1 / (1 + 2 * 0.5) ** 2)  # rates 0.5 W each with W gamma of shape 2, mean 1, at time 2
    for seed in range(200):
        generator = np.random.default_rng(seed)
        clusters = np.repeat(np.arange(60), 8)
        rate = generator.gamma(2.0, 0.5, 60)[clusters]
        durations = generator.exponential(1 / rate)
        events = np.where(durations > 6, 0, generator.integers(1, 3, 480)).astype(np.int8)
        durations = np.minimum(durations, 6.0)
        order = np.argsort(durations)
        table = risk_table(durations[order], events[order])
        for which, members in ((0, clusters[order]), (1, np.arange(480))):
            value, error, count = incidence_at(table, events[order], members, 1, 2.0)
            low, high = cluster_interval(value, error, count, 0.95) or (0, 0)
            covered += which == 0 and low <= truth <= high
            apart += which == 1 and low <= truth <= high
    assert covered >= binom.ppf(0.001, 200, 0.95)
    assert apart < covered


def test_the_log_rank_score_is_that_of_a_cox_model_of_nothing() -> None:
    durations, events, generator = sample(3000, seed=4)
    groups = generator.integers(0, 2, 3000)
    found = log_rank(durations, events == 1, groups)
    fit = fit_cox(durations, events == 1, groups[:, None].astype(float), ["group"])
    assert found is not None
    assert found.statistic == pytest.approx(float((fit.coefficients / fit.naive)[0]) ** 2, rel=0.02)


def test_groups_of_users_who_differ_are_not_taken_for_different() -> None:
    """Users have rates of their own and each belongs to one group: taken as independent, tasks differ too often."""
    robust, plain = 0, 0
    for seed in range(200):
        generator = np.random.default_rng(seed)
        users = np.repeat(np.arange(80), 10)
        durations = generator.exponential(1 / generator.gamma(2.0, 0.5, 80)[users])
        ended = durations < 4
        order = np.argsort(durations)
        groups = generator.permutation(np.arange(80) % 2)[users]
        found = log_rank(np.minimum(durations, 4.0)[order], ended[order], groups[order], users[order])
        assert found is not None
        assert found.robust_p_value is not None
        robust += found.robust_p_value < 0.05
        plain += found.p_value < 0.05
    assert robust <= binom.ppf(0.999, 200, 0.05)
    assert plain > 2 * binom.ppf(0.999, 200, 0.05)
