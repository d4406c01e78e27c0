from __future__ import annotations

import numpy as np
import pytest

from deep500.core.errors import MeasurementError
from deep500.measure.results.comparing import compare
from deep500.measure.results.document import Measurement
from deep500.measure.results.overheads import Overhead, median_overhead, overhead
from deep500.measure.results.summary import Basis
from deep500.measure.statistics.comparison import Verdict
from deep500.measure.statistics.quantiles import quantile_interval
from tests.unit.measure.results.support import all_of, measurement, metric, pair, system


def rounds(*ratios: float, base: float = 1.0) -> Measurement:
    """Return one launch of two systems, with these ratios of its rounds, whatever the base did."""
    random = np.random.default_rng(0)
    times = [float(base * value) for value in random.uniform(1.0, 5.0, len(ratios))]
    other = [time * ratio for time, ratio in zip(times, ratios)]
    return measurement(
        system([times], label="native"),
        system([other], label="wrapped", factors={"form": "wrapped"}),
        pairing="samples",
    )


def test_one_launch_has_the_exact_interval_of_the_rounds_ratios() -> None:
    ratios = [1.00, 1.01, 1.02, 1.03, 1.04, 1.05, 1.06]
    found = overhead(rounds(*ratios))

    assert found.ratio == pytest.approx(1.03)
    expected = quantile_interval(ratios)
    assert found.interval is not None
    assert (found.interval.low, found.interval.high) == pytest.approx((expected.low, expected.high))
    assert found.basis is Basis.IN_PROCESS
    assert found.base.estimate == float(np.median(rounds(*ratios).systems[0].metric().rows[0]))


@pytest.mark.parametrize(
    ("shift", "verdict"), [(0.02, Verdict.SLOWER), (-0.09, Verdict.FASTER), (-0.03, Verdict.UNDECIDED)]
)
def test_verdict_of_one_launch_is_that_of_its_interval(shift: float, verdict: Verdict) -> None:
    found = overhead(rounds(*(1.0 + shift + 0.01 * number for number in range(7))))

    assert found.verdict is verdict


def test_few_rounds_have_no_interval() -> None:
    found = overhead(rounds(1.1, 1.2, 1.3, 1.2, 1.2))

    assert (found.interval, found.basis, found.verdict) == (None, Basis.NONE, Verdict.UNDECIDED)
    assert found.ratio == pytest.approx(1.2)


def test_few_launches_have_no_interval() -> None:
    found = overhead(pair(1.1, launches=5))

    assert (found.interval, found.basis, found.verdict) == (None, Basis.NONE, Verdict.UNDECIDED)
    assert found.ratio == pytest.approx(1.1, rel=0.05)


def test_six_launches_are_compared_as_compare_does() -> None:
    taken = pair(1.1, launches=6)
    found, row = overhead(taken), compare(all_of(taken)).rows[0]

    assert (found.ratio, found.interval, found.verdict) == (row.ratio, row.interval, row.verdict)
    assert found.basis is Basis.LAUNCHES
    assert found.verdict is Verdict.SLOWER


def test_what_is_no_pair_is_refused() -> None:
    for taken in (pair(pairing="launches"), measurement(system())):
        with pytest.raises(MeasurementError, match="An overhead is that of one system over another"):
            overhead(taken)
    uneven = measurement(
        system(metrics=(metric([(1.0, 2.0, 3.0)]),), label="a"),
        system(metrics=(metric([(1.0, 2.0)]),), label="b"),
        pairing="samples",
    )
    with pytest.raises(MeasurementError, match="3 samples of the base and 2 of the other"):
        overhead(uneven)


def of(ratio: float, verdict: Verdict = Verdict.UNDECIDED) -> Overhead:
    one = overhead(pair(1.0, launches=6))
    return Overhead(one.base, one.other, ratio, None, Basis.NONE, verdict)


def test_median_over_problems_has_its_exact_interval() -> None:
    ratios = [1.02, 0.99, 1.01, 1.00, 1.05, 0.98, 1.03]
    found = median_overhead([of(ratio) for ratio in ratios])

    assert found.median == 1.01
    assert found.interval == quantile_interval(ratios)
    assert (found.faster, found.slower, found.undecided) == (0, 0, 7)


def test_verdicts_are_counted() -> None:
    verdicts = [Verdict.SLOWER, Verdict.SLOWER, Verdict.FASTER, Verdict.UNDECIDED]
    found = median_overhead([of(1.0 + 0.1 * number, verdict) for number, verdict in enumerate(verdicts)])

    assert (found.slower, found.faster, found.undecided) == (2, 1, 1)
    assert found.interval is None  # of 4 problems
    assert found.median == pytest.approx(1.15)
    with pytest.raises(MeasurementError, match="There are no overheads"):
        median_overhead([])


def test_interval_of_nothing_holds_1_as_often_as_it_says() -> None:
    """A and A of one process: 95 % intervals exclude 1 in at most 5 % of all processes, but for chance."""
    random = np.random.default_rng(3)
    wrong = 0
    for _ in range(400):
        found = overhead(rounds(*np.exp(0.02 * random.standard_normal(40)).tolist()))
        wrong += found.verdict is not Verdict.UNDECIDED
    assert wrong <= 32  # 20 are expected at most; 32 are exceeded with a probability of 0.3 %
