from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deep500.core.errors import MeasurementError
from deep500.measure.results.comparing import compare
from deep500.measure.results.compatibility import FactorDifference
from deep500.measure.results.document import Measurement, Statistic
from deep500.measure.results.files import read_measurement, write_measurement
from deep500.measure.results.merging import merge, side_by_side
from deep500.measure.results.summary import summarise
from tests.unit.measure.results.support import ENVIRONMENT, measurement, metric, pair, rows, score, system


def days(count: int = 2, launches: int = 4, **changes: Any) -> list[Measurement]:
    """Return measurements of the same system on different days."""
    return [measurement(system(rows(launches=launches, seed=day)), day=day, **changes) for day in range(1, count + 1)]


def elsewhere(**fields: Any) -> dict[str, Any]:
    environment = copy.deepcopy(ENVIRONMENT)
    environment["sections"]["cpu"].update(fields)
    return environment


def samples_of(found: Measurement) -> list[list[tuple[str, tuple[float, ...]]]]:
    """Return for each system its launches, as the start of the process and the samples."""
    return [
        [(found.processes[launch.process].started, launch.samples) for launch in each.metrics[0].launches]
        for each in found.systems
    ]


def test_launches_of_the_same_system_are_one_system(tmp_path: Any) -> None:
    one, two, three = days(3)

    merged = merge([one, two, three])

    assert samples_of(merged) == [samples_of(one)[0] + samples_of(two)[0] + samples_of(three)[0]]
    assert [each.label for each in merged.systems] == ["lenet"]
    assert merged.systems[0].configuration_hash == one.systems[0].configuration_hash
    assert merged.design.launches == 12
    assert merged.started == one.started
    assert merged.ended == three.ended
    assert merged.environment == ENVIRONMENT
    assert summarise(one.systems[0].metric()).interval is None
    assert summarise(merged.systems[0].metric()).interval is not None
    write_measurement(merged, tmp_path / "merged.json")
    assert read_measurement(tmp_path / "merged.json") == merged


@given(st.lists(st.integers(1, 4), min_size=2, max_size=5))
def test_nothing_is_lost(counts: list[int]) -> None:
    parts = [measurement(system(rows(launches=count, seed=day)), day=day) for day, count in enumerate(counts, 1)]

    merged = merge(parts)

    found = [launch for launches in samples_of(merged) for launch in launches]
    assert sorted(found) == sorted(launch for part in parts for launch in samples_of(part)[0])
    assert len(merged.processes) == sum(counts)


def test_systems_that_differ_stay_separate_under_labels_that_say_in_what() -> None:
    one = measurement(system())
    two = measurement(system(rows(seed=2), factors={"framework": "tensorflow"}), day=2)

    merged = merge([one, two])

    assert [each.label for each in merged.systems] == ["lenet [framework=pytorch]", "lenet [framework=tensorflow]"]
    assert samples_of(merged) == [*samples_of(one), *samples_of(two)]
    (row,) = compare([(merged, each) for each in merged.systems]).rows
    assert row.factors == (FactorDifference("framework", "pytorch", "tensorflow"),)
    assert row.pairing == "none"


def test_conditions_that_differ_become_factors_of_all() -> None:
    one, two = days()
    two = replace(two, environment=elsewhere(model="Large CPU"))
    three = measurement(system(rows(seed=3)), day=3, environment=elsewhere(model="Large CPU"))

    merged = merge([one, two, three])

    assert [each.label for each in merged.systems] == ["lenet [cpu.model=Small CPU]", "lenet [cpu.model=Large CPU]"]
    assert [each.factors["cpu.model"] for each in merged.systems] == ["Small CPU", "Large CPU"]
    assert samples_of(merged) == [samples_of(one)[0], samples_of(two)[0] + samples_of(three)[0]]
    assert merged.environment == one.environment
    (row,) = compare([(merged, each) for each in merged.systems]).rows
    assert row.factors == (FactorDifference("cpu.model", "Small CPU", "Large CPU"),)


@pytest.mark.parametrize(
    ("design", "name", "values"),
    [
        ({"plan": {"warm_up": 3}}, "plan.warm_up", ["unavailable", 3]),
        ({"pairing": "launches"}, "pairing", ["none", "launches"]),
    ],
)
def test_settings_that_differ_keep_systems_apart(design: dict[str, Any], name: str, values: list[Any]) -> None:
    one, _ = days()
    other = measurement(system(rows(seed=9)), day=2, **design)

    merged = merge([one, other])

    assert [each.factors[name] for each in merged.systems] == values
    assert merged.design.pairing == "none"


def test_record_that_is_missing_is_one_factor() -> None:
    one, two = days()

    merged = merge([one, replace(two, environment={})])

    added = [{key: value for key, value in each.factors.items() if key != "framework"} for each in merged.systems]
    assert added == [{"environment": "recorded"}, {"environment": "not recorded"}]


def test_labels_that_users_gave_are_kept_apart() -> None:
    # Nothing that is recorded tells them apart, but whoever named them knew why.
    one, two = (
        measurement(system(rows(seed=day), label=label), day=day) for day, label in ((1, "before"), (2, "after"))
    )

    merged = merge([one, two])

    assert [each.label for each in merged.systems] == ["before", "after"]


def test_systems_of_one_file_are_never_one_system() -> None:
    twins = [
        measurement(
            *(system(rows(launches=3, seed=seed), label=f"w #{seed}") for seed in (1, 2)), day=day, pairing="samples"
        )
        for day in (1, 2)
    ]

    merged = merge(twins)

    assert [each.label for each in merged.systems] == ["w #1", "w #2"]
    assert [len(launches) for launches in samples_of(merged)] == [6, 6]
    assert merged.design.pairing == "samples"
    (row,) = compare([(merged, each) for each in merged.systems]).rows
    assert row.pairing == "samples"


def test_systems_that_nobody_named_apart_are_not_one_either() -> None:
    twins = measurement(system(rows(launches=2)), system(rows(launches=2, seed=1), (2, 3)))

    merged = merge([twins, *days(2)[1:]])

    assert [each.label for each in merged.systems] == ["lenet #1", "lenet #2"]
    assert [len(launches) for launches in samples_of(merged)] == [6, 2]


def test_pairs_are_kept_only_where_all_have_them() -> None:
    whole = pair(launches=6)
    part = measurement(replace(whole.systems[0], metrics=(metric(rows(launches=6, seed=4)),)), day=2, pairing="samples")

    merged = merge([whole, part])

    assert [len(launches) for launches in samples_of(merged)] == [12, 6]
    assert merged.design.pairing == "none"
    assert merged.design.launches == 6  # what was planned for the system of which least was


def test_scores_of_all_are_kept_once() -> None:
    one, two, three = (
        measurement(system(rows(seed=day), scores=(score(value=value),)), day=day)
        for day, value in ((1, 98.0), (2, 98.5), (3, 98.0))
    )

    assert [each.value for each in merge([one, two, three]).systems[0].scores] == [98.0, 98.5]


def test_what_is_incomplete_stays_incomplete() -> None:
    one, two = days()

    merged = merge([one, replace(two, complete=False, failure="2 of 4 launches were run")])

    assert (merged.complete, merged.failure) == (False, "2 of 4 launches were run")
    assert merge(days()).complete


def test_designs_are_joined() -> None:
    one, two = days(margin=0.01, justification="all there is")
    assert (merge([one, two]).design.margin, merge([one, two]).design.justification) == (0.01, "all there is")

    two = replace(two, design=replace(two.design, margin=0.02, justification="and more", workloads=("x", "y")))
    merged = merge([one, two])

    assert merged.design.margin is None
    assert merged.design.justification == "all there is; and more"
    assert merged.design.workloads == ("model:lenet@pytorch", "x", "y")


def test_the_same_launches_are_not_merged_twice() -> None:
    one, two, three = days(3)

    with pytest.raises(MeasurementError, match=r"Measurements 1 and 2 share the process launch of 2026-01-01T00:00"):
        merge([one, one])
    with pytest.raises(MeasurementError, match=r"Measurements 1 and 3 share .* the same file was given twice"):
        merge([merge([one, two]), three, two])


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (measurement(system(data_hash="f" * 64), day=2), "the data differs"),
        (measurement(system(data_hash=None), day=2), "the data differs"),
        (measurement(system(initialisation_hash="f" * 64), day=2), "the initialisation differs"),
        (measurement(system(identity={"problem": "other"}), day=2), "the workload differs"),
        (measurement(system(metrics=(metric(rows(), unit="ms"),)), day=2), "the metric differs"),
        (measurement(system(), day=2, statistic=Statistic("quantile", 0.9)), "the statistic differs"),
        (
            measurement(system(metrics=(metric(rows()), metric(rows(), name="PeakMemory"))), day=2),
            "their metrics differ, they are WallclockTime and WallclockTime, PeakMemory",
        ),
    ],
    ids=range(7),
)
def test_what_may_not_be_compared_is_not_merged(other: Measurement, message: str) -> None:
    for parts in ([measurement(), other], [other, measurement()]):
        with pytest.raises(MeasurementError, match="differ"):
            merge(parts)
    with pytest.raises(MeasurementError, match=message):
        merge([measurement(), other])


def test_second_metric_is_checked_as_well() -> None:
    one, two = (
        measurement(system(metrics=(metric(rows()), metric(rows(), name="PeakMemory", unit=unit))), day=day)
        for day, unit in ((1, "B"), (2, "MiB"))
    )

    with pytest.raises(MeasurementError, match="the metric differs, it is PeakMemory in B"):
        merge([one, two])


def test_metrics_in_another_order_are_joined_by_name() -> None:
    time, memory = metric(rows(launches=3)), metric(rows(launches=3), name="PeakMemory", unit="B")

    merged = merge([measurement(system(metrics=(time, memory))), measurement(system(metrics=(memory, time)), day=2)])

    assert [(each.name, len(each.launches)) for each in merged.systems[0].metrics] == [
        ("WallclockTime", 6),
        ("PeakMemory", 6),
    ]


def test_unknown_data_can_be_allowed() -> None:
    other = measurement(system(rows(seed=2), data_hash=None), day=2)

    assert len(merge([measurement(), other], allow_unknown=True).systems) == 2


def test_samples_of_the_callers_own_process_are_no_launches() -> None:
    own = [measurement(system(rows(launches=1, seed=day)), day=day, fresh=False) for day in (1, 2)]

    with pytest.raises(MeasurementError, match="of the process of whoever called"):
        merge(own)


def test_one_measurement_is_not_merged() -> None:
    with pytest.raises(MeasurementError, match="Two measurements or more are needed to merge; there are 1"):
        merge([measurement()])


def test_systems_are_put_side_by_side_as_they_are() -> None:
    whole, other = pair(), measurement(system(rows(seed=3)), day=2)

    found = side_by_side([(whole, whole.systems[1]), (other, other.systems[0]), (whole, whole.systems[0])])

    assert [each.label for each in found.systems] == ["other", "lenet", "base"]
    assert samples_of(found) == [samples_of(whole)[1], samples_of(other)[0], samples_of(whole)[0]]
    assert found.design.pairing == "none"
    assert side_by_side([(whole, each) for each in whole.systems]) == whole
