"""The Cox model against lifelines: effects, errors over clusters, and the test of proportional effects."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from lifelines import CoxPHFitter
from lifelines.statistics import proportional_hazard_test

from deep500.core.errors import FleetError
from deep500.fleet.trace import cox
from deep500.fleet.trace.cox import fit_cox, proportionality


def sample(rows: int, seed: int, ties: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    x = np.stack([generator.normal(3.0, 2.0, rows), generator.integers(0, 2, rows)], axis=1).astype(float)
    durations = generator.exponential(20.0, rows) * np.exp(-0.3 * x[:, 0] + 0.5 * x[:, 1])
    durations = np.ceil(durations) if ties else durations
    order = np.argsort(durations, kind="stable")
    return durations[order], generator.random(rows)[order] < 0.7, x[order], generator.integers(0, 40, rows)


def frame(durations: np.ndarray, ended: np.ndarray, x: np.ndarray, clusters: np.ndarray) -> pd.DataFrame:
    return pd.DataFrame({"a": x[:, 0], "b": x[:, 1], "T": durations, "E": ended, "C": clusters})


@pytest.mark.parametrize("ties", [False, True])
def test_effects_and_errors_are_those_of_lifelines(ties: bool) -> None:
    durations, ended, x, clusters = sample(400, 1, ties)
    fit = fit_cox(durations, ended, x, ["a", "b"], clusters)
    rows = frame(durations, ended, x, clusters)
    plain = CoxPHFitter().fit(rows.drop(columns="C"), "T", "E")
    robust = CoxPHFitter().fit(rows, "T", "E", cluster_col="C")

    assert fit.converged
    np.testing.assert_allclose(fit.coefficients, plain.params_.to_numpy(), rtol=1e-5)
    np.testing.assert_allclose(fit.naive, plain.standard_errors_.to_numpy(), rtol=1e-4)
    # With ties, lifelines takes Breslow's residuals for Efron's model; the test below has no such mixture.
    expected = robust.standard_errors_.to_numpy() * np.sqrt(40 / 39)
    np.testing.assert_allclose(fit.robust, expected, rtol=1e-2 if ties else 1e-4)
    assert fit.log_likelihood == pytest.approx(plain.log_likelihood_, rel=1e-8)
    assert (fit.rows, fit.events, fit.clusters) == (400, int(ended.sum()), 40)


def test_the_test_of_proportional_effects_is_that_of_lifelines() -> None:
    durations, ended, x, clusters = sample(300, 2, ties=False)
    fit = fit_cox(durations, ended, x, ["a", "b"])
    rows = frame(durations, ended, x, clusters).drop(columns="C")
    expected = proportional_hazard_test(CoxPHFitter().fit(rows, "T", "E"), rows, time_transform="rank")

    for found, statistic, p_value in zip(proportionality(fit), expected.test_statistic, expected.p_value, strict=True):
        assert found.statistic == pytest.approx(statistic, rel=1e-3)
        assert found.p_value == pytest.approx(p_value, rel=1e-2)


def test_an_effect_that_turns_is_found() -> None:
    generator = np.random.default_rng(3)
    x = generator.integers(0, 2, (4000, 1)).astype(float)
    early = generator.exponential(1 / np.where(x[:, 0] > 0, 1.0, 0.4))
    late = 1.0 + generator.exponential(1 / np.where(x[:, 0] > 0, 0.4, 1.0))
    durations = np.where(early < 1, early, late)
    order = np.argsort(durations)
    turning = fit_cox(durations[order], np.ones(4000, dtype=bool), x[order], ["x"])
    steady = fit_cox(np.sort(early), np.ones(4000, dtype=bool), x[np.argsort(early)], ["x"])

    assert proportionality(turning)[0].p_value < 1e-10
    assert proportionality(steady)[0].p_value > 0.01


def test_many_rows_begin_at_a_sample_and_end_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    durations, ended, x, clusters = sample(3000, 5, ties=True)
    usual = fit_cox(durations, ended, x, ["a", "b"], clusters)
    monkeypatch.setattr(cox, "_MANY", 1000)
    monkeypatch.setattr(cox, "_FIRST", 10)
    other = fit_cox(durations, ended, x, ["a", "b"], clusters)

    np.testing.assert_allclose(usual.coefficients, other.coefficients, rtol=1e-6)
    np.testing.assert_allclose(usual.robust, other.robust, rtol=1e-6)


def test_influences_are_derivatives_by_weights() -> None:
    """Of Efron's weighted score in plain loops, as R's survival package defines it."""
    durations, ended, x, _ = sample(40, 7, ties=True)
    durations = np.ceil(durations / 3)
    fit = fit_cox(durations, ended, x, ["a", "b"], np.arange(40))

    def score(beta: np.ndarray, weights: np.ndarray) -> np.ndarray:
        total = (weights * ended) @ x
        risk = weights * np.exp(x @ beta)
        for time in np.unique(durations[ended]):
            at_risk, dying = durations >= time, (durations == time) & ended
            count = dying.sum()
            for place in range(count):
                share = risk * at_risk - place / count * risk * dying
                total = total - weights[dying].mean() * (share @ x) / share.sum()
        return total

    def slope(of: int, by_weight: bool) -> np.ndarray:
        ends = []
        for step in (1e-5, -1e-5):
            beta, weights = fit.coefficients.copy(), np.ones(40)
            (weights if by_weight else beta)[of] += step
            ends.append(score(beta, weights))
        return (ends[0] - ends[1]) / 2e-5

    information = -np.stack([slope(column, False) for column in range(2)])
    np.testing.assert_allclose(score(fit.coefficients, np.ones(40)), 0.0, atol=1e-5)
    np.testing.assert_allclose(fit.variance, np.linalg.inv(information), rtol=1e-5)
    expected = np.stack([slope(row, True) for row in range(40)]) @ np.linalg.inv(information)
    np.testing.assert_allclose(fit.influences, expected, rtol=1e-4, atol=1e-7)
    np.testing.assert_allclose(fit.influences.sum(axis=0), 0.0, atol=1e-6)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_covariate_that_tells_for_certain_has_no_effect_in_numbers(sign: float) -> None:
    """Its likelihood rises without end, and an interval around wherever the search stops is none."""
    durations, noise = np.arange(1.0, 201.0), np.random.default_rng(0).normal(size=200)
    ended = noise > 0.3
    x = np.stack([np.random.default_rng(1).normal(size=200), sign * ended], axis=1)
    for clusters in (None, np.arange(200) % 20):
        with pytest.raises(FleetError, match="No number tells the effect of told: it says for certain"):
            fit_cox(durations, ended, x, ["noise", "told"], clusters)
    x[np.flatnonzero(ended)[3], 1] = 0.0
    assert np.isfinite(fit_cox(durations, ended, x, ["noise", "told"]).coefficients).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("nothing ended", "No row ended"),
        ("unsorted", "ascend"),
        ("constant", "'b' is the same in all rows"),
        ("twice", "say the same"),
    ],
)
def test_mistakes(change: str, message: str) -> None:
    durations, ended, x, _ = sample(60, 9, ties=False)
    if change == "nothing ended":
        ended = np.zeros(60, dtype=bool)
    if change == "unsorted":
        durations = durations[::-1].copy()
    if change == "constant":
        x[:, 1] = 2.0
    if change == "twice":
        x[:, 1] = 3 * x[:, 0] + 1
    with pytest.raises(FleetError, match=message):
        fit_cox(durations, ended, x, ["a", "b"])


def test_the_trend_of_an_effect_is_tested_over_clusters() -> None:
    """Rows that say the same over again are no more evidence; every row as its own cluster is as good as none."""
    durations, ended, x, _ = sample(400, 11, ties=False)
    single = fit_cox(durations, ended, x, ["a", "b"], np.arange(400))
    plain = fit_cox(durations, ended, x, ["a", "b"])
    for found, wanted in zip(proportionality(single), proportionality(plain), strict=True):
        assert found.statistic == pytest.approx(wanted.statistic, rel=0.3, abs=0.05)

    again = np.repeat(np.arange(400), 8)
    many = fit_cox(durations[again], ended[again], x[again], ["a", "b"], again)
    for found, wanted in zip(proportionality(many), proportionality(single), strict=True):
        assert found.statistic == pytest.approx(
            wanted.statistic, rel=0.1, abs=0.02
        )  # eight times that without clusters


def test_sums_of_trends_are_those_of_schoenfelds_residuals() -> None:
    durations, ended, x, clusters = sample(300, 12, ties=True)
    problem = cox._Problem(durations, ended, x)
    problem.evaluate(np.array([0.3, -0.2]))
    trend = problem.trend()
    assert trend[problem.at].sum() == pytest.approx(0.0, abs=1e-9)
    wanted = (trend[problem.at][:, None] * problem.schoenfeld()).sum(axis=0)
    np.testing.assert_allclose(problem.scores(clusters, trend).sum(axis=0), wanted, rtol=1e-9, atol=1e-9)
