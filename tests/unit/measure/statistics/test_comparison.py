from __future__ import annotations

import math
import timeit
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from deep500.core.errors import MeasurementError
from deep500.measure.metric import Direction
from deep500.measure.statistics import _pairwise
from deep500.measure.statistics.comparison import Comparison, Verdict, paired_log_ratio, unpaired_log_ratio
from deep500.measure.statistics.quantiles import quantile_interval

Compare = Callable[..., Comparison]

COMPARISONS: list[Compare] = [paired_log_ratio, unpaired_log_ratio]

times = st.floats(1e-3, 1e3)
pairs = st.lists(st.tuples(times, times), min_size=6, max_size=40)


def samples(seed: int, size: int, factor: float = 1.0) -> np.ndarray:
    return factor * np.random.default_rng(seed).lognormal(0, 0.1, size)


def log_ends(result: Comparison) -> list[float]:
    return np.log([result.ratio.estimate, result.ratio.low, result.ratio.high]).tolist()


def test_paired_interval_is_that_of_the_book() -> None:
    # M. Hollander, D. A. Wolfe, "Nonparametric Statistical Methods", 1973, table 3.1: Hamilton depression scale factor.
    first = np.array([1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30])
    second = np.array([0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29])

    result = paired_log_ratio(np.exp(first), np.exp(second))

    assert log_ends(result) == pytest.approx([0.46, 0.010, 0.786], abs=1e-9)
    assert result.ratio.coverage == pytest.approx(0.961, abs=5e-4)
    assert result.p_value == pytest.approx(0.0390625)
    assert result.verdict is Verdict.SLOWER


def test_unpaired_differences_are_those_of_the_book() -> None:
    # Hollander and Wolfe, table 4.1: permeability of membranes, 10 and 5 samples; the estimate and its 96 % interval.
    first = np.array([0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46])
    second = np.array([1.15, 0.88, 0.90, 0.74, 1.21])
    differences = _pairwise.differences(first, second)

    assert differences.median() == pytest.approx(0.305)
    assert (differences.ranked(9), differences.ranked(42)) == (pytest.approx(-0.15), pytest.approx(0.76))


@pytest.mark.parametrize("size", [6, 9, 20, 50])
def test_paired_p_value_is_that_of_scipy(size: int) -> None:
    for seed in range(20):
        a, b = samples(seed, size, 1.05), samples(seed + 100, size)
        expected = stats.wilcoxon(np.log(a / b), method="exact").pvalue
        assert paired_log_ratio(a, b).p_value == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(("size_a", "size_b"), [(6, 6), (6, 11), (30, 20), (50, 7)])
def test_unpaired_p_value_is_that_of_scipy(size_a: int, size_b: int) -> None:
    for seed in range(20):
        a, b = samples(seed, size_a, 1.05), samples(seed + 100, size_b)
        expected = stats.mannwhitneyu(a, b, method="exact").pvalue
        assert unpaired_log_ratio(a, b).p_value == pytest.approx(expected, rel=1e-9)


def test_many_samples_use_the_normal_approximation_of_scipy() -> None:
    a, b = samples(0, 300, 1.02), samples(1, 300)
    paired, unpaired = paired_log_ratio(a, b), unpaired_log_ratio(a, b)

    wilcoxon = stats.wilcoxon(np.log(a / b), method="asymptotic", correction=True).pvalue
    assert paired.p_value == pytest.approx(wilcoxon, rel=1e-9)
    assert unpaired.p_value == pytest.approx(stats.mannwhitneyu(a, b, method="asymptotic").pvalue, rel=1e-9)
    assert not paired.ratio.exact
    assert paired_log_ratio(a[:50], b[:50]).ratio.exact


@pytest.mark.parametrize("compare", COMPARISONS)
@pytest.mark.parametrize("size", [6, 31, 64])
def test_counting_pairs_gives_what_holding_them_gives(
    monkeypatch: pytest.MonkeyPatch, compare: Compare, size: int
) -> None:
    a, b = samples(0, size, 1.01), np.round(samples(1, size), 2)
    held = compare(a, b)
    monkeypatch.setattr(_pairwise, "MAXIMUM_HELD", 0)
    counted = compare(a, b)

    assert log_ends(counted) == pytest.approx(log_ends(held), abs=1e-14)
    assert counted.p_value == held.p_value


@pytest.mark.parametrize("compare", COMPARISONS)
@given(values=pairs)
def test_swapping_the_systems_inverts_the_ratio(compare: Compare, values: list[tuple[float, float]]) -> None:
    a, b = np.array(values).T
    there, back = compare(a, b), compare(b, a)
    opposite = {Verdict.FASTER: Verdict.SLOWER, Verdict.SLOWER: Verdict.FASTER}

    assert log_ends(back) == pytest.approx([-log_ends(there)[k] for k in (0, 2, 1)], abs=1e-9)
    assert back.p_value == pytest.approx(there.p_value)
    assert (back.a, back.b) == (there.b, there.a)
    if abs(there.ratio.low - 1) > 1e-9 and abs(there.ratio.high - 1) > 1e-9:
        assert back.verdict is opposite.get(there.verdict, there.verdict)


@pytest.mark.parametrize("compare", COMPARISONS)
@given(values=pairs, unit=st.floats(1e-6, 1e6), seed=st.integers(0, 99))
def test_order_and_unit_do_not_matter(
    compare: Compare, values: list[tuple[float, float]], unit: float, seed: int
) -> None:
    a, b = np.array(values).T
    shuffled_a, shuffled_b = np.random.default_rng(seed).permutation(values).T * unit

    result, other = compare(a, b), compare(shuffled_a, shuffled_b)

    assert log_ends(other) == pytest.approx(log_ends(result), abs=1e-9)


@pytest.mark.parametrize("compare", COMPARISONS)
@given(values=pairs, confidence=st.sampled_from([0.9, 0.95]))
def test_p_value_and_interval_agree(compare: Compare, values: list[tuple[float, float]], confidence: float) -> None:
    result = compare(*np.array(values).T, confidence)

    assert (result.p_value <= 1 - confidence + 1e-12) is not result.ratio.contains(1.0)
    assert (result.verdict is Verdict.UNDECIDED) is result.ratio.contains(1.0)
    assert result.ratio.contains(result.ratio.estimate)
    assert result.ratio.coverage >= confidence


@pytest.mark.parametrize("compare", COMPARISONS)
def test_ratio_carries_its_base(compare: Compare) -> None:
    a, b = samples(0, 10, 2e-3), samples(1, 10, 1e-3)
    result = compare(a, b)

    assert result.a == quantile_interval(a)
    assert result.b == quantile_interval(b)
    assert result.ratio.estimate == pytest.approx(2, rel=0.1)


@pytest.mark.parametrize("compare", COMPARISONS)
def test_verdict_knows_which_values_are_better(compare: Compare) -> None:
    a, b = samples(0, 10, 2.0), samples(1, 10)

    assert compare(a, b).verdict is Verdict.SLOWER
    assert compare(b, a).verdict is Verdict.FASTER
    assert compare(a, b, direction=Direction.HIGHER).verdict is Verdict.FASTER
    assert compare(b, a, direction=Direction.HIGHER).verdict is Verdict.SLOWER
    assert compare(a, samples(2, 10, 2.0)).verdict is Verdict.UNDECIDED


@pytest.mark.parametrize("compare", COMPARISONS)
def test_equivalence_needs_a_margin_that_holds_the_interval(compare: Compare) -> None:
    b = 1 + np.linspace(-1e-3, 1e-3, 20)
    a = b[::-1] * 1.005

    assert compare(a, b).verdict is Verdict.SLOWER
    assert compare(a, b, margin=0.01).verdict is Verdict.EQUIVALENT
    assert compare(b, a, margin=0.01).verdict is Verdict.EQUIVALENT
    assert compare(a, b, margin=0.002).verdict is Verdict.SLOWER
    assert compare(samples(0, 6), samples(1, 6), margin=0.01).verdict is Verdict.UNDECIDED
    assert compare(b, b).verdict is Verdict.UNDECIDED
    assert compare(b, b, margin=0.01).verdict is Verdict.EQUIVALENT
    with pytest.raises(MeasurementError, match="margin is a positive"):
        compare(a, b, margin=0.0)


@pytest.mark.parametrize("compare", COMPARISONS)
@pytest.mark.parametrize("size", [6, 10, 30])
def test_a_system_compared_with_itself_differs_rarely(compare: Compare, size: int) -> None:
    rng = np.random.default_rng(size)
    pairs_of_runs = rng.lognormal(0, 0.2, (5000, 2, size))
    if compare is paired_log_ratio:
        pairs_of_runs *= np.linspace(1, 3, size)  # a drift of the machine that both see

    decided = np.mean([compare(a, b).verdict is not Verdict.UNDECIDED for a, b in pairs_of_runs])

    assert decided <= 0.07


def test_equivalence_is_claimed_rarely_at_the_edge_of_the_margin() -> None:
    rng = np.random.default_rng(0)
    runs = rng.lognormal(0, 0.02, (2000, 2, 10))
    claims = [paired_log_ratio(a * 1.05, b, margin=0.05).verdict is Verdict.EQUIVALENT for a, b in runs]

    assert 0.02 < np.mean(claims) <= 0.07


def test_true_ratio_is_covered() -> None:
    runs = np.random.default_rng(5).lognormal(0, 0.5, (5000, 2, 10))
    held = np.mean([paired_log_ratio(1.3 * a, b).ratio.contains(1.3) for a, b in runs])

    assert 0.94 <= held <= 0.98


@pytest.mark.parametrize("compare", COMPARISONS)
@pytest.mark.parametrize(
    ("a", "b", "message"),
    [
        ([], [], "There are 0 samples of the first system; at least 6"),
        ([1.0] * 5, [1.0] * 5, "There are 5 samples of the first system; at least 6"),
        ([1.0] * 6, [1.0] * 5, "There are 5 samples of the second system; at least 6"),
        ([1.0] * 6, [1.0] * 5 + [0.0], "1 of 6 samples of the second system are not positive"),
        ([-1.0] * 6, [1.0] * 6, "6 of 6 samples of the first system are not positive"),
        ([math.nan] + [1.0] * 6, [1.0] * 7, "1 of 7 samples of the first system are NaN"),
        ([math.inf] + [1.0] * 6, [1.0] * 7, "NaN or infinite"),
        ([[1.0] * 6], [[1.0] * 6], r"shape is \(1, 6\)"),
    ],
)
def test_samples_without_a_ratio_are_refused(compare: Compare, a: list[float], b: list[float], message: str) -> None:
    with pytest.raises(MeasurementError, match=message):
        compare(a, b)


def test_lengths_that_cannot_be_paired_are_refused() -> None:
    with pytest.raises(MeasurementError, match="7 samples cannot be paired with 6"):
        paired_log_ratio([1.0] * 7, [1.0] * 6)
    assert unpaired_log_ratio([1.0] * 7, [1.0] * 6).ratio.estimate == 1


@pytest.mark.parametrize("compare", COMPARISONS)
def test_high_confidence_needs_more(compare: Compare) -> None:
    with pytest.raises(MeasurementError, match=r"0\.99 .*needs at least 8"):
        compare([1.0] * 7, [1.0] * 7, 0.99)
    assert compare([1.0] * 8, [1.0] * 8, 0.99).ratio.coverage >= 0.99


def test_a_comparison_of_30_pairs_takes_less_than_a_millisecond() -> None:
    a, b = samples(0, 30), samples(1, 30)

    assert min(timeit.repeat(lambda: paired_log_ratio(a, b), number=10, repeat=10)) / 10 < 1e-3
