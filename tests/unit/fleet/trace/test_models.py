"""The estimators find what was planted: intervals cover the truth as often as they say."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import polars as pl
import pytest
from scipy.integrate import quad
from scipy.stats import binom
from scipy.stats import t as student

from deep500.fleet import OutcomeTable
from deep500.fleet.trace.cox import fit_cox, proportionality
from deep500.fleet.trace.factors import find_factors
from deep500.fleet.trace.generating import CauseHazard, Hazards, generate_outcomes
from deep500.fleet.trace.hazards import TYPE_SHARES
from deep500.fleet.trace.models import _split, cause_models
from deep500.fleet.trace.observed import FAILED, PASSED, observe
from deep500.fleet.trace.rates import rates, task_hours
from deep500.fleet.trace.survival import cluster_interval, incidence_at, risk_table
from deep500.measure.statistics import holm

TYPES = list(TYPE_SHARES)


def effects(jobs: int, users: int, seeds: range) -> Iterator[bool]:
    """Yield whether each effect of each cause of each seed lies within its interval."""
    hazards = Hazards(cancelled_per_h=0.01)
    truth = hazards.truth()
    for seed in seeds:
        trace = observe(generate_outcomes(jobs, seed, hazards, users))
        models, _ = cause_models(trace, find_factors(trace)[0])
        assert [model.cause for model in models] == ["failed", "passed"]
        for model in models:
            planted = truth[model.cause]["marginal"]
            assert len(model.effects) == 8
            for effect in model.effects:
                name, _, kind = effect.covariate.partition("=")
                if kind:
                    rate = planted["log_rate_of_type"]
                    wanted = rate[kind] - rate[effect.unit.removeprefix("against ")]
                else:
                    wanted = planted["log_ratio_per_doubling"][name]
                yield effect.low <= math.exp(wanted) <= effect.high


def shares(jobs: int, users: int, seeds: range, time_h: float) -> Iterator[bool]:
    """Yield whether the shares that failed, passed and ended lie within their intervals: users share a factor."""
    alone = (dict.fromkeys(TYPES, scale) for scale in (8.0, 2.5))
    failed_scale, passed_scale = alone
    same = dict.fromkeys(TYPES, 0.8)
    hazards = Hazards(
        CauseHazard(failed_scale, same, stability=0.85), CauseHazard(passed_scale, same, stability=0.85),
        cancelled_per_h=0.02, days=20.0,
    )  # fmt: skip
    power = 0.8 * 0.85

    def survival(t: float) -> float:
        return math.exp(-((t / 8.0) ** power) - (t / 2.5) ** power)

    # t = s ** (1 / power) takes the steep beginning out of the integral.
    def share(scale: float) -> float:
        return quad(lambda s: survival(s ** (1 / power)) / scale**power, 0, time_h**power)[0]

    wanted = {FAILED: share(8.0), PASSED: share(2.5)}
    assert sum(wanted.values()) == pytest.approx(1 - survival(time_h))
    for seed in seeds:
        trace = observe(generate_outcomes(jobs, seed, hazards, users))
        table = risk_table(trace.duration_s, trace.event)
        for cause, value in wanted.items():
            estimate, error, clusters = incidence_at(table, trace.event, trace.user, cause, time_h * 3600.0)
            low, high = cluster_interval(estimate, error, clusters, 0.95) or (0.0, 0.0)
            yield low <= value <= high
        merged = np.minimum(trace.event, 1).astype(np.int8)
        both = risk_table(trace.duration_s, merged, 1)
        estimate, error, clusters = incidence_at(both, merged, trace.user, 1, time_h * 3600.0)
        low, high = cluster_interval(estimate, error, clusters, 0.95) or (0.0, 0.0)
        yield low <= 1 - survival(time_h) <= high


def times_to_failure(jobs: int, seeds: range) -> Iterator[bool]:
    """Yield whether the mean time to failure lies within its interval: constant rates, all users alike."""
    for seed in seeds:
        trace = observe(generate_outcomes(jobs, seed, Hazards.constant(12.0, 3.0, days=4.0, cancelled_per_h=0.05)))
        low, high = rates(trace, task_hours(trace), np.arange(len(trace)), 0.95, 100).mttf_exact
        yield low <= 12.0 <= high


def assert_covers(found: Iterator[bool], confidence: float, inflation: float = 1.0) -> None:
    """Check that the share is at least the confidence but for what chance takes, one time in a thousand.

    ``inflation`` is by how many times fewer trials count, since those of one seed are not independent.
    """
    hits = list(found)
    trials = len(hits) / inflation
    least = binom.ppf(0.001, round(trials), confidence) / round(trials)
    assert np.mean(hits) >= least, f"{np.mean(hits):.3f} of {len(hits)}, at least {least:.3f} were needed"


def test_effects_are_covered() -> None:
    assert_covers(effects(3000, 150, range(12)), 0.95, 2.0)


def test_shares_are_covered() -> None:
    assert_covers(shares(2000, 200, range(20), 3.0), 0.95, 3.0)


def test_mean_times_to_failure_are_covered() -> None:
    assert_covers(times_to_failure(500, range(60)), 0.95)


def test_an_effect_that_changes_is_split() -> None:
    """V100 fails early and seldom later: shapes differ, and the split tells it."""
    shapes = {**dict.fromkeys(TYPES, 1.2), "V100": 0.5}
    hazards = Hazards(CauseHazard(dict.fromkeys(TYPES, 6.0), shapes), CauseHazard(dict.fromkeys(TYPES, 6.0), shapes))
    trace = observe(generate_outcomes(6000, 1, hazards))
    model = cause_models(trace, find_factors(trace)[0])[0][0]
    assert not model.proportional
    assert model.split_s is not None
    split = {effect.covariate.partition("=")[2]: effect for effect in model.split}
    assert split["V100"].verdict == "changes"
    assert split["V100"].early[0] > 1 > split["V100"].late[0]
    assert split["P100"].verdict == "undecided"


def test_steady_effects_are_not_split() -> None:
    steady = 0
    for seed in range(10):
        hazards = Hazards(
            CauseHazard(dict.fromkeys(TYPES, 9.0), dict.fromkeys(TYPES, 0.8), {"plan_cpu": 0.2}),
            CauseHazard(dict.fromkeys(TYPES, 3.0), dict.fromkeys(TYPES, 0.9), {"plan_cpu": -0.2}),
        )
        trace = observe(generate_outcomes(1500, seed, hazards))
        steady += sum(model.proportional for model in cause_models(trace, find_factors(trace)[0])[0])
    assert steady >= binom.ppf(0.001, 20, 0.95)


def test_groups_without_enough_ends_are_named() -> None:
    trace = observe(generate_outcomes(400, 2, users=40))
    rare = trace.frame["gpu_type"].to_list()
    rare[:4] = ["H100"] * 4
    trace.frame.replace_column(trace.frame.get_column_index("gpu_type"), pl.Series("gpu_type", rare))
    models, notes = cause_models(trace, find_factors(trace)[0])
    assert any("H100: fewer than 10 failed or passed" in note for note in notes)
    assert all("H100" not in effect.covariate for model in models for effect in model.effects)


def test_too_few_ends_make_no_model() -> None:
    trace = observe(generate_outcomes(60, 3))
    models, notes = cause_models(trace, find_factors(trace)[0])
    assert [model.cause for model in models] != ["failed", "passed"]
    assert any("There is no Cox model of failed" in note for note in notes)


@pytest.mark.slow
def test_effects_are_covered_at_large() -> None:
    assert_covers(effects(20_000, 500, range(60)), 0.95, 2.0)


@pytest.mark.slow
def test_shares_are_covered_at_large() -> None:
    assert_covers(shares(20_000, 1000, range(100), 3.0), 0.95, 3.0)


@pytest.mark.slow
def test_mean_times_to_failure_are_covered_at_large() -> None:
    assert_covers(times_to_failure(5000, range(200)), 0.95)


def test_a_covariate_that_others_tell_is_left_out() -> None:
    """CPUs are planned by GPUs here, four for each: the model is of one of them, and says so."""
    table = generate_outcomes(1500, 3)
    frame = table.frame.with_columns((pl.col("plan_gpu") * 4).alias("plan_cpu"), pl.lit(3.0).alias("plan_mem"))
    trace = observe(OutcomeTable(frame))
    models, notes = cause_models(trace, find_factors(trace)[0])
    names = [effect.covariate for effect in models[0].effects]
    assert "plan_gpu" in names
    assert "plan_cpu" not in names
    assert "No covariate, since constant or told by the others: plan_cpu, plan_mem." in notes


def test_early_and_late_are_models_of_their_own_and_their_change_is_over_users() -> None:
    """Users of whom each has an effect of its own: what one does early and late goes together."""
    generator = np.random.default_rng(5)
    user = np.repeat(np.arange(60), 30)
    x = generator.integers(0, 2, (1800, 1)).astype(float)
    duration = generator.exponential(np.exp(-generator.normal(0.0, 1.0, 60)[user] * x[:, 0]))
    order = np.argsort(duration)
    duration, x, user = duration[order], x[order], user[order]
    ended = duration < np.quantile(duration, 0.9)
    at, (found,) = _split(fit_cox(duration, ended, x, ["x"], user), (duration, ended, x, user), 0.95)

    def both(kept: np.ndarray) -> tuple[float, float]:
        early = fit_cox(np.minimum(duration, at)[kept], (ended & (duration <= at))[kept], x[kept], ["x"])
        late = kept & (duration > at)
        return float(early.coefficients[0]), float(fit_cox(duration[late], ended[late], x[late], ["x"]).coefficients[0])

    assert at == pytest.approx(np.median(duration[ended]))
    early, late = both(np.ones(1800, dtype=bool))
    assert math.log(found.early[0]) == pytest.approx(early)
    assert math.log(found.late[0]) == pytest.approx(late)
    assert math.log(found.change[0]) == pytest.approx(late - early)
    without = np.array([np.subtract(*both(user != one)[::-1]) for one in range(60)])
    wanted = math.sqrt(59 / 60 * ((without - without.mean()) ** 2).sum())
    wide = math.log(found.change[2] / found.change[1]) / 2
    assert wide / student.ppf(0.975, 59) == pytest.approx(wanted, rel=0.1)


def test_users_who_differ_lessen_what_is_found() -> None:
    """A model of all users finds the stability times what was planted for each."""
    planted = CauseHazard(dict.fromkeys(TYPES, 5.0), dict.fromkeys(TYPES, 1.0), {"plan_cpu": 0.5}, stability=0.5)
    hazards = Hazards(planted, planted)
    truth = hazards.truth()["failed"]["marginal"]["log_ratio_per_doubling"]
    assert truth == {"plan_gpu": 0.0, "plan_cpu": 0.25, "plan_mem": 0.0, "size": 0.0}
    found = []
    for seed in range(8):
        trace = observe(generate_outcomes(3000, seed, hazards, users=300))
        for model in cause_models(trace, find_factors(trace)[0])[0]:
            found += [math.log(effect.ratio) for effect in model.effects if effect.covariate == "plan_cpu"]
    error = np.std(found) / math.sqrt(len(found))
    assert abs(np.mean(found) - 0.25) < 4 * error < 0.08


def test_each_effect_has_its_own_test_of_being_steady() -> None:
    trace = observe(generate_outcomes(1500, 8, Hazards(missing=0.0)))
    size = [factor for factor in find_factors(trace)[0] if factor.factor.name in ("size", "plan_mem")]
    model = cause_models(trace, size)[0][0]
    x = np.stack([np.log2(factor.values) for factor in size if factor.values is not None], axis=1)
    tests = proportionality(fit_cox(trace.duration_s, trace.event == FAILED, x, ["plan_mem", "size"], trace.user))
    assert [effect.covariate for effect in model.effects] == ["plan_mem", "size"]
    np.testing.assert_allclose([effect.proportional_p for effect in model.effects], [t.p_value for t in tests])
    adjusted = holm([t.p_value for t in tests]).adjusted
    np.testing.assert_allclose([effect.proportional_adjusted_p for effect in model.effects], adjusted)


def test_tasks_without_a_gpu_are_counted_and_not_in_the_model() -> None:
    """The logarithm of no GPU is no number."""
    frame = generate_outcomes(1500, 3, Hazards(missing=0.0)).frame
    none = pl.Series([row % 5 == 0 for row in range(frame.height)])
    trace = observe(OutcomeTable(frame.with_columns(pl.when(none).then(0.0).otherwise("plan_gpu").alias("plan_gpu"))))
    models, notes = cause_models(trace, find_factors(trace)[0])
    assert [model.tasks for model in models] == [frame.height - none.sum()] * 2
    assert f"{none.sum()} tasks of which a covariate is missing or not above 0 are not in the Cox models." in notes
    assert all(np.isfinite(effect.ratio) for model in models for effect in model.effects)


@pytest.mark.parametrize("users", [1, 4])
def test_with_few_users_tasks_are_taken_as_independent(users: int) -> None:
    """One user alone has no errors over users, and no p-value is none."""
    table = generate_outcomes(800, 3, Hazards(missing=0.0))
    names = pl.Series([f"u{row % users}" for row in range(len(table))])
    trace = observe(OutcomeTable(table.frame.with_columns(group=names, user=names)))
    models, notes = cause_models(trace, find_factors(trace)[0])
    assert [model.users for model in models] == [users] * 2
    assert all(0 < effect.low < effect.ratio < effect.high for model in models for effect in model.effects)
    assert all(0 <= effect.p_value <= 1 for model in models for effect in model.effects)
    assert any("take tasks as independent" in note for note in notes)


def test_factors_that_say_nearly_the_same_are_named() -> None:
    frame = generate_outcomes(1500, 3, Hazards(missing=0.0)).frame
    near = pl.Series(1 + 0.01 * np.random.default_rng(0).random(frame.height))
    trace = observe(OutcomeTable(frame.with_columns(plan_mem=pl.col("plan_gpu") * near)))
    notes = cause_models(trace, find_factors(trace)[0])[1]
    assert any(note.startswith("Hardly to be told apart") and "plan_gpu, plan_mem" in note for note in notes)
    trace = observe(OutcomeTable(frame))
    assert not any("told apart" in note for note in cause_models(trace, find_factors(trace)[0])[1])


def test_a_factor_that_tells_the_outcome_is_no_effect_in_numbers() -> None:
    frame = generate_outcomes(800, 3, Hazards(missing=0.0)).frame
    told = pl.when(pl.col("status") == "failed").then(100.0).otherwise(25.0)
    trace = observe(OutcomeTable(frame.with_columns(plan_gpu=told)))
    models, notes = cause_models(trace, find_factors(trace)[0])
    assert models == []
    assert sum("No number tells the effect of plan_gpu" in note for note in notes) == 2
