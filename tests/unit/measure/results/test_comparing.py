from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deep500.core.errors import MeasurementError
from deep500.measure.metric import Direction, MetricKind
from deep500.measure.results.comparing import compare
from deep500.measure.results.compatibility import FactorDifference
from deep500.measure.results.document import Statistic, System
from deep500.measure.results.report import ComparisonReport, Source
from deep500.measure.results.summary import summarise
from deep500.measure.statistics.comparison import Verdict, paired_log_ratio, unpaired_log_ratio
from deep500.measure.statistics.multiple import compare_many, holm
from deep500.measure.workload import Score
from tests.unit.measure.results.support import (
    Entry,
    all_of,
    apart,
    interleaved,
    measurement,
    metric,
    pair,
    rows,
    score,
    system,
)


def verdicts(report: ComparisonReport) -> list[str]:
    return [row.verdict.value for row in report.rows]


def test_interleaved_systems_are_compared_pair_by_pair() -> None:
    found = pair(0.5)

    report = compare(all_of(found))

    values = [summarise(each.metric()).launch_values for each in found.systems]
    expected = paired_log_ratio(values[1], values[0])
    (row,) = report.rows
    assert (row.ratio, row.interval, row.p_value) == (expected.ratio.estimate, expected.ratio, expected.p_value)
    assert (row.verdict, row.pairing, row.note) == (Verdict.FASTER, "samples", "")
    assert row.p_holm == row.p_value
    assert row.factors == (FactorDifference("framework", "pytorch", "tensorflow"),)
    assert report.base.absolute == summarise(found.systems[0].metric())
    assert row.system.absolute == summarise(found.systems[1].metric())
    assert (report.base.label, row.system.label) == ("base", "other")
    assert row.system.configuration_hash == found.systems[1].configuration_hash


def test_systems_of_different_measurements_are_compared_side_by_side() -> None:
    entries = apart(1.0, 1.5)

    report = compare(entries)

    values = [summarise(each.systems[0].metric()).launch_values for each, _ in entries]
    expected = unpaired_log_ratio(values[1], values[0])
    (row,) = report.rows
    assert (row.interval, row.p_value, row.pairing) == (expected.ratio, expected.p_value, "none")
    assert row.verdict is Verdict.SLOWER


@pytest.mark.parametrize("pairing", ["samples", "launches", "none"])
def test_pairing_is_that_of_the_design(pairing: str) -> None:
    found = pair(pairing=pairing)

    assert [row.pairing for row in compare(all_of(found)).rows] == [pairing]


def test_launches_of_their_own_are_paired_in_their_order() -> None:
    base, other = rows(), rows(2.0, seed=3)
    systems = (system(base, range(0, 20, 2), label="a"), system(other, range(1, 20, 2), label="b"))
    found = measurement(*systems, pairing="launches")

    (row,) = compare(all_of(found)).rows

    values = [summarise(metric(samples)).launch_values for samples in (base, other)]
    assert row.interval == paired_log_ratio(values[1], values[0]).ratio


@pytest.mark.parametrize(
    "other",
    [
        system(rows(launches=9), label="b"),  # the measurement was interrupted
        system(rows(launches=10), range(10, 20), label="b"),  # of other processes
    ],
    ids=["fewer", "other"],
)
def test_samples_without_partners_are_not_paired(other: System) -> None:
    found = measurement(system(label="a"), other, pairing="samples")

    assert [row.pairing for row in compare(all_of(found)).rows] == ["none"]


def test_drift_that_both_sides_share_is_taken_out_by_pairs() -> None:
    drift = np.linspace(1.0, 2.0, 10)[:, None]
    tables = [drift * np.array(rows(median, seed=seed)) for median, seed in ((1.0, 1), (0.9, 2))]
    systems = [system(table.tolist(), label=label) for table, label in zip(tables, "ab")]

    paired = compare(all_of(measurement(*systems, pairing="samples")))
    unpaired = compare(all_of(measurement(*systems)))

    assert (verdicts(paired), verdicts(unpaired)) == (["faster"], ["undecided"])


@pytest.mark.parametrize(
    ("entries", "counts"),
    [
        (apart(1.0, 9.0, launches=5), (5, 5)),
        ([*apart(1.0), *apart(1.0, 9.0, launches=1)[1:]], (10, 1)),
        (interleaved(9.0, launches=2), (2, 2)),
        (interleaved(9.0, launches=1, fresh=False), (1, 1)),
    ],
    ids=["5", "10 and 1", "interleaved", "own process"],
)
def test_fewer_than_six_launches_decide_nothing(entries: list[Entry], counts: tuple[int, int]) -> None:
    report = compare(entries, margin=0.5)

    (row,) = report.rows
    assert row.verdict is Verdict.UNDECIDED
    assert (row.interval, row.p_value, row.p_holm) == (None, None, None)
    assert row.ratio == row.system.absolute.estimate / report.base.absolute.estimate
    assert f"6 process launches of each are needed for an interval of the ratio; there are {counts[1]} of" in row.note
    assert ("samples of one process do not tell" in row.note) is (1 in counts)


def test_higher_confidence_needs_more_launches() -> None:
    assert verdicts(compare(apart(1.0, 9.0, launches=7), confidence=0.99)) == ["undecided"]
    assert "8 process launches" in compare(apart(1.0, 9.0, launches=7), confidence=0.99).rows[0].note
    report = compare(apart(1.0, 9.0, launches=8), confidence=0.99)
    assert verdicts(report) == ["slower"]
    assert report.statistic == Statistic(confidence=0.99)
    assert report.base.absolute.interval.confidence_requested == 0.99


@pytest.mark.parametrize(
    ("direction", "kind", "verdict"),
    [(Direction.LOWER, MetricKind.COST, "slower"), (Direction.HIGHER, MetricKind.RATE, "faster")],
)
def test_direction_is_respected(direction: Direction, kind: MetricKind, verdict: str) -> None:
    samples = [metric(rows(median, seed=seed), direction=direction, kind=kind) for median, seed in ((1.0, 1), (2.0, 2))]
    entries: list[Entry] = [
        (measurement(system(metrics=(each,)), day=day), "lenet") for day, each in enumerate(samples, 1)
    ]

    assert verdicts(compare(entries)) == [verdict]


@pytest.mark.parametrize(("margin", "verdict"), [(None, "slower"), (0.05, "equivalent"), (0.01, "slower")])
def test_margin_makes_small_differences_equivalent(margin: float | None, verdict: str) -> None:
    report = compare(interleaved(1.02), margin=margin)

    assert verdicts(report) == [verdict]
    assert report.margin == margin


def test_margin_that_was_declared_is_used() -> None:
    assert verdicts(compare(interleaved(1.02, margin=0.05))) == ["equivalent"]
    assert verdicts(compare(interleaved(1.02, margin=0.05), margin=0.001)) == ["slower"]


def test_margins_that_contradict_each_other_are_not_used() -> None:
    entries: list[Entry] = [
        (measurement(system(rows(seed=day)), day=day, margin=margin), "lenet") for day, margin in ((1, 0.5), (2, None))
    ]

    report = compare(entries)

    assert report.margin is None
    assert report.warnings == ("the measurements declared different margins (0.5, none), so none is used; state one",)


@pytest.mark.parametrize("margin", [0, -0.1, float("nan"), float("inf"), "wide"])
def test_margins_that_are_none_are_refused(margin: Any) -> None:
    with pytest.raises(MeasurementError, match="A margin is a positive relative difference"):
        compare(all_of(pair()), margin=margin)


@pytest.mark.parametrize("confidence", [0, 1, 95])
def test_confidences_that_are_none_are_refused(confidence: float) -> None:
    with pytest.raises(MeasurementError, match="A confidence lies between 0 and 1"):
        compare(all_of(pair()), confidence=confidence)


def test_several_systems_are_corrected_for_their_number() -> None:
    report = compare(interleaved(0.5, 1.0, 1.5, launches=10))

    p_values = [row.p_value for row in report.rows]
    assert [row.p_holm for row in report.rows] == pytest.approx(list(holm(p_values).adjusted))
    assert verdicts(report) == ["faster", "undecided", "slower"]


def test_verdict_that_does_not_survive_the_correction_is_undecided() -> None:
    # With 6 launches no p-value of pairs is below 0.031, which is too much for two comparisons at 0.05.
    report = compare(interleaved(0.5, 2.0, launches=6))

    assert verdicts(report) == ["undecided", "undecided"]
    for row in report.rows:
        assert not row.interval.contains(1.0)
        assert row.p_value == pytest.approx(0.03125)
        assert row.note == (
            "the interval excludes 1, but p = 0.062 after Holm's correction for 2 comparisons; take more launches"
        )
    assert verdicts(compare(interleaved(0.5, launches=6))) == ["faster"]


def test_equivalence_of_several_systems_is_said_at_the_confidence_of_all() -> None:
    assert verdicts(compare(interleaved(1.0, 1.0, launches=10), margin=0.01)) == ["equivalent", "equivalent"]
    assert verdicts(compare(interleaved(1.0, 1.0, launches=6), margin=0.01)) == ["undecided", "undecided"]
    assert verdicts(compare(interleaved(1.0, launches=6), margin=0.01)) == ["equivalent"]


def test_rows_without_an_interval_are_not_counted() -> None:
    entries = [*interleaved(0.5, launches=6), *apart(1.0, 2.0, launches=3)[1:]]

    assert verdicts(compare(entries)) == ["faster", "undecided"]


def test_three_systems_are_also_compared_with_each_other() -> None:
    entries = apart(1.0, 1.001, 5.0, launches=20)

    report = compare(entries)

    values = {
        label: summarise(each.systems[0].metric()).launch_values
        for label, (each, _) in zip(("lenet #1", "lenet #2", "lenet #3"), entries)
    }
    expected = compare_many(values)
    assert (report.many.statistic, report.many.p_value) == (expected.statistic, expected.p_value)
    assert report.many.pairs == expected.pairs
    assert [pair_.different for pair_ in report.many.pairs] == [False, True, True]
    assert compare(entries[:2]).many is None
    assert compare(apart(1.0, 2.0, 3.0, launches=5)).many is None


def test_systems_that_are_all_alike_are_no_error() -> None:
    base = [(1.0, 1.0)] * 8
    found = measurement(*(system(base, label=label) for label in "abc"), pairing="samples")

    report = compare(all_of(found))

    assert report.many is None
    assert verdicts(report) == ["undecided", "undecided"]
    assert report.rows[0].ratio == 1.0


@given(st.floats(0.3, 3.0), st.integers(6, 12), st.sampled_from(["samples", "none"]))
def test_sides_can_be_exchanged(ratio: float, launches: int, pairing: str) -> None:
    found = pair(ratio, launches=launches, pairing=pairing)

    (one,) = compare(all_of(found)).rows
    (other,) = compare(all_of(found)[::-1]).rows

    assert one.ratio * other.ratio == pytest.approx(1)
    assert one.interval.low * other.interval.high == pytest.approx(1)
    assert one.p_value == pytest.approx(other.p_value)
    opposite = {"faster": "slower", "slower": "faster", "undecided": "undecided"}
    assert other.verdict.value == opposite[one.verdict.value]


def test_samples_are_not_compared_with_themselves() -> None:
    found = pair()

    for entries in ([(found, "base"), (found, "base")], [(found, "base"), (pair(), found.systems[0])]):
        with pytest.raises(MeasurementError, match=r"base #1 and base #2 are the same samples, given twice"):
            compare(entries)


def test_measurement_that_holds_another_is_not_compared_with_it() -> None:
    part = measurement(system(rows(launches=6)))
    whole = measurement(system(rows(launches=9), label="whole"))

    with pytest.raises(MeasurementError, match="lenet and whole share process launches"):
        compare([(part, "lenet"), (whole, "whole")])


def test_fewer_than_two_systems_have_no_ratio() -> None:
    for entries, told in (([], "are no systems"), ([(pair(), "base")], "is 1 system")):
        with pytest.raises(MeasurementError, match=f"There {told} to compare; a ratio needs its base"):
            compare(entries)


@pytest.mark.parametrize(
    ("kind", "reason"),
    [(MetricKind.SCORE, "a score, and scores have a difference"), (MetricKind.RATIO, "a ratio, and a ratio of ratios")],
)
def test_only_costs_and_rates_have_ratios(kind: MetricKind, reason: str) -> None:
    found = measurement(*(system(label=label, metrics=(metric(rows(), kind=kind),)) for label in "ab"))

    with pytest.raises(MeasurementError, match=f"WallclockTime is {reason}"):
        compare(all_of(found))


@pytest.mark.parametrize("samples", [[(0.0, 0.0)] * 10, [(-1.0,)] * 3])
def test_values_that_are_not_positive_have_no_ratio(samples: Any) -> None:
    found = measurement(system(label="a"), system(samples, label="b"))

    with pytest.raises(MeasurementError, match="b has values of WallclockTime that are not positive"):
        compare(all_of(found))


def test_unknown_system_and_metric_are_refused() -> None:
    with pytest.raises(MeasurementError, match="has no system 'c'; it has base, other"):
        compare([(pair(), "base"), (pair(), "c")])
    with pytest.raises(MeasurementError, match="base has no Energy; its metrics: WallclockTime"):
        compare(all_of(pair()), metric="Energy")
    with pytest.raises(MeasurementError, match="1 sources were given for 2 systems"):
        compare(all_of(pair()), sources=[None])


def test_metric_of_the_base_is_that_of_all() -> None:
    time, memory = metric(rows()), metric(rows(7.0), name="PeakMemory", unit="B")
    found = measurement(system(label="a", metrics=(memory, time)), system(label="b", metrics=(time, memory)))

    assert compare(all_of(found)).base.absolute.unit == "B"
    assert compare(all_of(found), metric="WallclockTime").rows[0].system.absolute.unit == "s"


def test_quantile_of_the_design_is_compared() -> None:
    statistic = Statistic("quantile", 0.9)
    found = measurement(
        *(system(rows(samples=40, seed=seed), label=label) for seed, label in enumerate("ab")), statistic=statistic
    )

    report = compare(all_of(found))

    assert report.statistic == statistic
    assert report.base.absolute == summarise(found.systems[0].metric(), statistic)
    short = measurement(*(system(rows(samples=35), label=label) for label in "ab"), statistic=statistic)
    with pytest.raises(MeasurementError, match="at least 36"):
        compare(all_of(short))


def test_sources_and_labels_tell_equal_names_apart() -> None:
    sources = [Source(f"folder/{name}.json", "a" * 64) for name in ("one", "two", "two")]

    report = compare(apart(1.0, 2.0, 3.0), sources=sources)

    assert report.base.label == "lenet (one.json)"
    assert [row.system.label for row in report.rows] == ["lenet (two.json) #2", "lenet (two.json) #3"]
    assert [row.system.source for row in report.rows] == sources[1:]
    assert [row.system.label for row in compare(apart(1.0, 2.0)).rows] == ["lenet #2"]


def test_doubts_are_told() -> None:
    bad = score(value=50.0)
    fine = Score("Loss", 0.1, direction=Direction.LOWER, acceptable=0.2)
    found = measurement(
        system(label="a", scores=(score(), fine)),
        system(rows(seed=1), label="b", scores=(bad,)),
        complete=False,
        failure="interrupted",
    )

    report = compare(all_of(found))

    assert report.warnings == (
        "a: the measurement is incomplete: interrupted",
        "b: the measurement is incomplete: interrupted",
        "b: TestAccuracy is 50 %, worse than the acceptable 97, so how fast it is matters little",
    )
    assert report.rows[0].system.scores == (bad,)


def test_unknown_data_can_be_allowed() -> None:
    found = measurement(system(label="a"), system(rows(seed=1), label="b", data_hash=None))

    with pytest.raises(MeasurementError, match="a and b cannot be compared: the data differs"):
        compare(all_of(found))
    assert compare(all_of(found), allow_unknown=True).rows[0].factors[0].name == "data"


def test_report_says_when_and_with_what_it_was_made() -> None:
    from deep500._version import __version__

    report = compare(all_of(pair()))

    assert report.deep500 == __version__
    made = datetime.datetime.fromisoformat(report.created)
    assert abs((datetime.datetime.now(datetime.timezone.utc) - made).total_seconds()) < 600


def test_a_system_against_itself_is_seldom_found_to_differ() -> None:
    random = np.random.default_rng(5)
    found = 0
    for _ in range(200):
        tables = [np.exp(0.1 * random.standard_normal((10, 5))) for _ in "ab"]
        both = measurement(
            *(system(table.tolist(), label=label) for table, label in zip(tables, "ab")), pairing="samples"
        )
        found += verdicts(compare(all_of(both))) != ["undecided"]

    assert found <= 18  # 5 % of 200 and two and a half standard deviations


def test_what_disturbs_both_samples_of_a_round_does_not_hide_a_difference() -> None:
    """Half of the rounds run at a third of the speed, so that the medians are the slowest of the fast ones."""
    random = np.random.default_rng(5)
    base, other = [], []
    for _ in range(8):
        speed = np.where(random.permutation(61) < 31, 1.0, 3.0)
        base.append(tuple(map(float, speed * np.exp(0.02 * random.standard_normal(61)))))
        other.append(tuple(map(float, 1.03 * speed * np.exp(0.02 * random.standard_normal(61)))))
    systems = (system(base, label="base"), system(other, label="other"))

    (rounds,) = compare(all_of(measurement(*systems, pairing="samples"))).rows
    (launches,) = compare(all_of(measurement(*systems, pairing="launches"))).rows

    assert rounds.verdict is Verdict.SLOWER
    assert rounds.ratio == pytest.approx(1.03, abs=0.005)
    assert rounds.interval.high - rounds.interval.low < 0.5 * (launches.interval.high - launches.interval.low)


def test_rounds_without_a_ratio_leave_the_launch_medians() -> None:
    base = [(0.0, 1.0, 1.0)] * 6
    systems = (system(base, label="base"), system([(2.0, 2.0, 2.0)] * 6, label="other"))

    (row,) = compare(all_of(measurement(*systems, pairing="samples"))).rows

    assert row.ratio == 2.0


def test_rounds_that_contradict_the_medians_decide_nothing() -> None:
    """The same times in another order: a median ratio of 1.5 between systems of equal medians."""
    one = [tuple(float(1 + i % 3) * (1 + 0.001 * k) for i in range(61)) for k in range(8)]
    other = [tuple(float(1 + (i + 1) % 3) * (1 + 0.001 * k) for i in range(61)) for k in range(8)]
    systems = (system(one, label="one"), system(other, label="other"))

    (row,) = compare(all_of(measurement(*systems, pairing="samples"))).rows

    assert row.verdict is Verdict.UNDECIDED
    assert "disagree" in row.note


@pytest.mark.parametrize("confidence", [0.1, 0.5])
def test_confidence_of_a_half_or_less_is_refused(confidence: float) -> None:
    with pytest.raises(MeasurementError, match=r"above 0\.5"):
        compare(all_of(measurement(system(label="a"), system(label="b"))), confidence=confidence)


def test_equivalence_is_told_with_the_interval_that_it_rests_on() -> None:
    """The interval at full confidence may pass the margin where the two one-sided tests do not."""
    systems = (system(rows(1.0), label="a"), system(rows(1.0, seed=1), label="b"))

    (row,) = compare(all_of(measurement(*systems)), margin=0.2).rows

    assert row.verdict is Verdict.EQUIVALENT
    assert "the 90 % interval of the ratio" in row.note
    assert "within 0.8333 .. 1.2" in row.note
