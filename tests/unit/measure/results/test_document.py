from __future__ import annotations

import json
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deep500.measure.metric import Direction, MetricKind
from deep500.measure.results.document import (
    LaunchSamples,
    Measurement,
    MetricSamples,
    Statistic,
    System,
    content_hash,
    plain,
)
from deep500.measure.workload import Score, Work
from tests.unit.measure.results.support import measurement, metric, pair, score, system

NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
TEXTS = st.text(min_size=1, max_size=8)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | NUMBERS | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
LAUNCHES = st.builds(
    LaunchSamples,
    process=st.just(0),
    samples=st.lists(NUMBERS, min_size=1, max_size=5).map(tuple),
    warm_up=st.lists(NUMBERS, max_size=3).map(tuple),
    calls_per_sample=st.integers(1, 10**6),
    converged=st.none() | st.booleans(),
    stop_reason=st.text(max_size=8),
    steady=st.none() | st.booleans(),
    steady_reason=st.text(max_size=8),
)
METRICS = st.builds(
    MetricSamples,
    name=TEXTS,
    unit=st.text(max_size=4),
    kind=st.sampled_from(MetricKind),
    direction=st.sampled_from(Direction),
    launches=st.lists(LAUNCHES, min_size=1, max_size=1).map(tuple),
)
AMOUNTS = st.none() | st.floats(0, allow_nan=False, allow_infinity=False) | st.integers(0, 10**15)
SYSTEMS = st.builds(
    System,
    label=TEXTS,
    spec=TEXTS,
    identity=st.dictionaries(TEXTS, JSON, max_size=3),
    factors=st.dictionaries(TEXTS, st.none() | st.booleans() | st.integers() | NUMBERS | TEXTS, max_size=3),
    data_hash=st.none() | st.just("a" * 64),
    initialisation_hash=st.none() | st.just("b" * 64),
    work=st.builds(Work, AMOUNTS, TEXTS, AMOUNTS, AMOUNTS, st.none() | TEXTS),
    metrics=st.lists(METRICS, min_size=1, max_size=2, unique_by=lambda each: each.name).map(tuple),
    scores=st.lists(st.builds(Score, TEXTS, NUMBERS, st.text(max_size=3)), max_size=2).map(tuple),
)
MEASUREMENTS = st.lists(SYSTEMS, min_size=1, max_size=3, unique_by=lambda each: each.label).map(
    lambda systems: measurement(*systems)
)


@given(MEASUREMENTS)
def test_content_goes_through_json_and_back(found: Measurement) -> None:
    content = found.to_dict()
    text = json.dumps(content, allow_nan=False)
    again = Measurement.from_dict(json.loads(text))

    assert again == found
    assert again.to_dict() == content


@given(JSON)
def test_hash_is_that_of_what_json_gives_back(content: Any) -> None:
    assert content_hash(json.loads(json.dumps(content))) == content_hash(content)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({2: "a", 10: "b"}, {"10": "b", "2": "a"}),  # as numbers they sort in another order than as texts
        (MappingProxyType({"a": (1, 2)}), {"a": [1, 2]}),
        ({"a": MetricKind.COST}, {"a": "cost"}),
    ],
)
def test_hash_of_what_a_file_gives_back(one: Any, other: Any) -> None:
    assert content_hash(one) == content_hash(other)
    assert content_hash(plain(one)) == content_hash(one)


@pytest.mark.parametrize(("one", "other"), [(1, True), (1, "1"), ([1], 1), ({"a": None}, {}), (1, 1.5)])
def test_hashes_tell_values_apart(one: Any, other: Any) -> None:
    assert content_hash(one) != content_hash(other)


@pytest.mark.parametrize(
    "change",
    [
        {"identity": {"problem": "training step", "batch_size": 32}},
        {"factors": {"framework": "tensorflow"}},
        {"data_hash": None},
        {"initialisation_hash": "f" * 64},
        {"work": Work(items=32, item="sample")},
    ],
    ids=lambda change: next(iter(change)),
)
def test_configuration_hash_binds_all_that_was_measured_together(change: dict[str, Any]) -> None:
    assert system(**change).configuration_hash != system().configuration_hash


def test_configuration_hash_does_not_depend_on_what_was_found() -> None:
    other = system([(5.0, 6.0)], label="another", scores=(score(),))

    assert other.configuration_hash == system().configuration_hash


def test_metric_and_statistic_hashes_are_of_their_definitions() -> None:
    assert metric([(1.0,)]).hash == metric([(2.0,), (3.0,)]).hash
    assert metric([(1.0,)], unit="ms").hash != metric([(1.0,)]).hash
    assert Statistic("quantile", 0.9).hash != Statistic("quantile", 0.95).hash


def test_content_names_its_hashes() -> None:
    found = pair()

    for entry, each in zip(found.to_dict()["systems"], found.systems, strict=True):
        assert entry["hashes"] == {
            "workload": each.workload_hash,
            "data": "d" * 64,
            "initialisation": "e" * 64,
            "configuration": each.configuration_hash,
        }
        assert entry["metrics"][0]["hashes"] == {
            "metric": each.metrics[0].hash,
            "statistic": found.design.statistic.hash,
        }
        assert "data_hash" not in entry


def test_numbers_of_a_file_have_the_types_that_are_declared() -> None:
    content = measurement(system([(1.0, 2.0)])).to_dict()
    part = content["systems"][0]["metrics"][0]["launches"][0]
    part |= {"process": 0.0, "samples": [1, 2], "calls_per_sample": 3.0}
    content["design"] |= {"launches": 1.0, "seed": 2.0}

    found = Measurement.from_dict(content)

    launch = found.systems[0].metrics[0].launches[0]
    values = (launch.process, launch.calls_per_sample, found.design.launches, found.design.seed)
    assert values == (0, 3, 1, 2)
    assert {type(value) for value in values} == {int}
    assert {type(sample) for sample in launch.samples} == {float}


def test_systems_and_metrics_are_found_by_name() -> None:
    found = pair()

    assert found.system("other").label == "other"
    assert found.systems[0].metric() is found.systems[0].metric("WallclockTime")
    with pytest.raises(KeyError):
        found.system("missing")
    with pytest.raises(KeyError):
        replace(found.systems[0], metrics=()).metric()
