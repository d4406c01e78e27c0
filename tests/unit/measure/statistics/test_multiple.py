from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from deep500.core.errors import InvalidInputError, MeasurementError
from deep500.measure.statistics.multiple import compare_many, holm, launches_needed
from deep500.measure.statistics.quantiles import quantile_interval

SYSTEMS = {
    "a": [1.2, 3.4, 2.2, 2.9, 1.8, 2.5],
    "b": [2.0, 4.1, 3.3, 3.9, 2.8, 3.1, 3.3],
    "c": [5.0, 4.4, 4.9, 6.1, 5.2, 4.6],
}

p_values = st.lists(st.floats(0, 1), min_size=1, max_size=20)


def test_holm_is_that_of_its_usual_example() -> None:
    result = holm([0.01, 0.04, 0.03, 0.005])

    assert result.adjusted.tolist() == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert result.rejected.tolist() == [True, False, False, True]


@given(p=p_values, seed=st.integers(0, 99))
def test_holm_lies_between_no_correction_and_bonferroni_in_any_order(p: list[float], seed: int) -> None:
    result = holm(p)
    order = np.random.default_rng(seed).permutation(len(p))

    assert (result.adjusted >= p).all()
    assert (result.adjusted <= np.minimum(1, len(p) * np.array(p))).all()
    assert (np.diff(result.adjusted[np.argsort(p, kind="stable")]) >= 0).all()
    assert holm(np.array(p)[order]).adjusted.tolist() == result.adjusted[order].tolist()
    assert result.rejected.tolist() == (result.adjusted <= 0.05).tolist()


@pytest.mark.parametrize(
    ("p", "message"),
    [
        ([], "There are 0 p-values"),
        ([0.5, math.nan], "1 of 2 p-values"),
        ([1.1], "between 0 and 1"),
        ([-0.1], "go from"),
    ],
)
def test_what_is_no_p_value_is_refused(p: list[float], message: str) -> None:
    with pytest.raises(MeasurementError, match=message):
        holm(p)


def test_many_systems_are_compared_as_by_scipy_and_scikit_posthocs() -> None:
    # The pairs are those of scikit_posthocs.posthoc_dunn 0.17.1 with p_adjust=None and "holm".
    result = compare_many(SYSTEMS)
    kruskal = stats.kruskal(*SYSTEMS.values())

    assert (result.statistic, result.p_value) == pytest.approx((kruskal.statistic, kruskal.pvalue), rel=1e-12)
    assert [(pair.first, pair.second) for pair in result.pairs] == [("a", "b"), ("a", "c"), ("b", "c")]
    expected = [0.23526325563952055, 0.00039834353091904457, 0.012848350960916582]
    assert [pair.p_value for pair in result.pairs] == pytest.approx(expected, rel=1e-12)
    adjusted = [0.23526325563952055, 0.0011950305927571337, 0.025696701921833164]
    assert [pair.adjusted for pair in result.pairs] == pytest.approx(adjusted, rel=1e-12)
    assert [pair.different for pair in result.pairs] == [False, True, True]
    assert all(pair.z < 0 for pair in result.pairs)
    assert result.medians == {name: quantile_interval(row) for name, row in SYSTEMS.items()}


def test_monotone_transformation_changes_no_decision() -> None:
    result, transformed = compare_many(SYSTEMS), compare_many({name: np.exp(row) for name, row in SYSTEMS.items()})

    assert transformed.pairs == result.pairs
    assert transformed.p_value == result.p_value


def test_systems_that_are_alike_are_rarely_told_apart() -> None:
    rng = np.random.default_rng(0)
    alarms = [
        any(pair.different for pair in compare_many(dict(zip("abcde", rows))).pairs)
        for rows in rng.lognormal(size=(1000, 5, 10))
    ]

    assert np.mean(alarms) <= 0.05


@pytest.mark.parametrize(
    ("systems", "message"),
    [
        ({"a": [1.0] * 6, "b": [2.0] * 6}, "Three systems or more are needed, there are 2"),
        ({"a": [1.0] * 6, "b": [2.0] * 6, "c": [3.0] * 5}, "There are 5 samples of c; at least 6"),
        ({"a": [1.0] * 6, "b": [1.0] * 6, "c": [1.0] * 6}, "All 18 samples are 1"),
        ({"a": [1.0] * 6, "b": [1.0] * 6, "c": [math.nan] * 6}, "6 of 6 samples of c are NaN"),
    ],
)
def test_systems_that_cannot_be_compared_are_refused(systems: dict[str, list[float]], message: str) -> None:
    with pytest.raises(MeasurementError, match=message):
        compare_many(systems)


@pytest.mark.parametrize("comparisons", [1, 2, 3, 7, 40])
@pytest.mark.parametrize("level", [0.05, 0.01])
def test_launches_needed_are_the_fewest_that_can_decide(comparisons: int, level: float) -> None:
    needed = launches_needed(comparisons, level)

    def decided(launches: int) -> bool:
        ranks = np.arange(1.0, launches + 1)  # all on one side, the clearest there can be
        smallest = float(stats.wilcoxon(ranks, method="exact").pvalue)
        return bool(holm([smallest, *[1.0] * (comparisons - 1)], level).rejected[0])

    assert decided(needed)
    assert not decided(needed - 1)


@pytest.mark.parametrize("comparisons", [0, -1, 1.5, True])
def test_launches_needed_wants_a_count(comparisons: Any) -> None:
    with pytest.raises(InvalidInputError, match="comparisons was given as"):
        launches_needed(comparisons)
