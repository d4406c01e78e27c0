from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import pytest

from deep500.core.errors import MeasurementError
from deep500.measure.environment.record import record_environment
from deep500.measure.metric import Direction, MetricKind
from deep500.measure.results.compatibility import (
    FactorDifference,
    aligned,
    check_comparable,
    conditions,
    metric_of,
    same,
    scalar,
)
from deep500.measure.results.document import Measurement, Statistic, System
from deep500.measure.workload import Work
from tests.unit.measure.results.support import ENVIRONMENT, measurement, metric, pair, rows, system

Entry = tuple[Measurement, System]


def entry(day: int = 1, environment: Any = None, design: Any = None, **changes: Any) -> Entry:
    each = system(**changes)
    found = measurement(each, day=day, **(design or {}))
    return (found if environment is None else replace(found, environment=environment)), each


def changed_environment(section: str, key: str, value: Any) -> dict[str, Any]:
    environment = copy.deepcopy(ENVIRONMENT)
    environment["sections"][section][key] = value
    return environment


def test_equal_systems_differ_in_nothing() -> None:
    assert check_comparable(entry(), entry(day=2)) == ()


def test_systems_of_one_measurement_differ_in_their_factors() -> None:
    found = pair()

    differences = check_comparable((found, found.systems[0]), (found, found.systems[1]))

    assert differences == (FactorDifference("framework", "pytorch", "tensorflow"),)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"identity": {"problem": "training step", "batch_size": 32}},
            "the workload differs, batch_size is 64 and 32. Measure the same workload",
        ),
        (
            {"identity": {"problem": "inference"}},
            "the workload differs, problem is training step and inference; batch_size is 64 and missing.",
        ),
        ({"identity": {"problem": "training step", "batch_size": 64.0}}, "batch_size is 64 and 64.0"),
        ({"data_hash": "f" * 64}, "the data differs, its SHA-256 is dddddddddddd… and ffffffffffff…. Measure both"),
        ({"data_hash": None}, "the data differs, its SHA-256 is dddddddddddd… and unknown. Where you know"),
        ({"initialisation_hash": "f" * 64}, "the initialisation differs, its SHA-256 is eeeeeeeeeeee… and ffff"),
        ({"initialisation_hash": None}, "the initialisation differs, its SHA-256 is eeeeeeeeeeee… and unknown"),
        (
            {"metrics": (metric(rows(), unit="ms"),)},
            "the metric differs, it is WallclockTime in s (cost, lower is better) and WallclockTime in ms (cost,",
        ),
        ({"metrics": (metric(rows(), direction=Direction.HIGHER),)}, "lower is better) and .* higher is better"),
        ({"metrics": (metric(rows(), kind=MetricKind.SCORE),)}, "(cost, lower is better) and .*(score,"),
        (
            {"design": {"statistic": Statistic("quantile", 0.9)}},
            "the statistic differs, it is median 0.5 at confidence 0.95 and quantile 0.9 at confidence 0.95",
        ),
        ({"metrics": ()}, "lenet has no metric; its metrics: none."),
    ],
    ids=range(12),
)
def test_what_may_not_be_compared_is_refused_with_both_values(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(MeasurementError) as caught:
        check_comparable(entry(), entry(**changes))

    text = str(caught.value)
    for piece in message.split(".*"):
        assert piece.strip() in text
    assert "\n" not in text


def test_refusal_is_the_same_from_the_other_side() -> None:
    with pytest.raises(MeasurementError, match="is unknown and dddddddddddd…"):
        check_comparable(entry(data_hash=None), entry())


def test_unknown_hashes_may_be_allowed_and_are_listed() -> None:
    other = entry(data_hash=None, initialisation_hash=None)

    assert check_comparable(entry(), other, allow_unknown=True) == (
        FactorDifference("data", "dddddddddddd…", "unknown"),
        FactorDifference("initialisation", "eeeeeeeeeeee…", "unknown"),
    )
    with pytest.raises(MeasurementError, match="the data differs"):
        check_comparable(entry(), entry(data_hash="f" * 64), allow_unknown=True)


def test_hashes_that_neither_knows_are_no_difference() -> None:
    assert check_comparable(entry(data_hash=None), entry(data_hash=None, day=2)) == ()


def alternative(problem: str, **more: Any) -> dict[str, Any]:
    return {"problem": problem, "options": {}, "alternatives_allowed": True, **more}


def test_alternatives_may_be_other_problems_which_is_listed() -> None:
    one, other = entry(identity=alternative("m:old")), entry(identity=alternative("m:new", options={"n": 3}))

    assert check_comparable(one, other) == (
        FactorDifference("problem", "m:old", "m:new"),
        FactorDifference("options", "{}", '{"n": 3}'),
    )


def test_alternatives_of_measurements_apart_are_refused_with_what_to_do() -> None:
    one, other = entry(identity=alternative("m:old")), entry(identity=alternative("m:new"), day=2)

    with pytest.raises(MeasurementError, match=r"problem is m:old and m:new.*as=NAME"):
        check_comparable(one, other)


@pytest.mark.parametrize("value", [False, None, "yes", 1])
def test_alternatives_need_the_word_of_both(value: Any) -> None:
    one = entry(identity=alternative("m:old"))
    other = entry(identity={**alternative("m:new"), "alternatives_allowed": value})

    for pair_ in ((one, other), (other, one)):
        with pytest.raises(MeasurementError, match="the workload differs"):
            check_comparable(*pair_)


def test_alternatives_on_other_data_are_refused() -> None:
    one, other = entry(identity=alternative("m:old")), entry(identity=alternative("m:new"), data_hash="f" * 64)

    with pytest.raises(MeasurementError, match="the data differs"):
        check_comparable(one, other)


def test_factors_and_work_are_listed() -> None:
    other = entry(factors={"device": "gpu:0", "framework": True}, work=Work(items=64, item="sample", flops=2e6))

    assert check_comparable(entry(), other) == (
        FactorDifference("device", None, "gpu:0"),
        FactorDifference("framework", "pytorch", True),
        FactorDifference("work.dtype", "float32", None),
        FactorDifference("work.flops", 1e6, 2e6),
    )


@pytest.mark.parametrize(
    ("section", "key", "value", "difference"),
    [
        ("cpu", "model", "Large CPU", ("cpu.model", "Small CPU", "Large CPU")),
        ("cpu", "threads", 8, ("cpu.threads", 4, 8)),
        ("cpu", "governor", "performance", ("cpu.governor", "unavailable", "performance")),
        ("cpu", "flags", ["avx", "avx512"], ("cpu.flags", '["avx2"]', '["avx512"]')),
        ("cpu", "flags", ["avx2", "avx"], ("cpu.flags", '["avx", "avx2"]', '["avx2", "avx"]')),
        ("cpu", "new_field", 1, ("cpu.new_field", "unavailable", 1)),
        ("host", "hostname_hash", "b2", ("host.hostname_hash", "a1d8", "b2")),
        ("libraries", "versions", {"numpy": "2.1.0", "torch": None}, ("libraries.versions.numpy", "2.0.0", "2.1.0")),
        (
            "gpu",
            "devices",
            [{"name": "Big GPU", "temperature_c": 40}],
            ("gpu.devices", '[{"name": "Small GPU"}]', '[{"name": "Big GPU"}]'),
        ),
    ],
)
def test_conditions_are_listed(section: str, key: str, value: Any, difference: tuple[Any, ...]) -> None:
    other = entry(environment=changed_environment(section, key, value))

    assert check_comparable(entry(), other) == (FactorDifference(*difference),)


@pytest.mark.parametrize(
    ("section", "key", "value"),
    [
        ("cpu", "frequency_current_mhz", {"median": 900.0}),
        ("cpu", "reasons", {"governor": "another reason"}),
        ("load", "average_1min", 9.0),
        ("gpu", "devices", [{"name": "Small GPU", "temperature_c": 90}]),
        ("cpu", "threads", 4.0),
    ],
)
def test_what_changes_from_moment_to_moment_is_no_condition(section: str, key: str, value: Any) -> None:
    assert check_comparable(entry(), entry(environment=changed_environment(section, key, value))) == ()


def test_settings_of_the_sampler_and_of_the_design_are_conditions() -> None:
    design = {"plan": {"warm_up": 3, "threads": None}, "pairing": "launches"}
    other = entry(design=design)
    other = (replace(other[0], deep500="1.1"), other[1])

    assert check_comparable(entry(design={"plan": {"warm_up": 5, "threads": None}}), other) == (
        FactorDifference("deep500", "1.0", "1.1"),
        FactorDifference("pairing", "none", "launches"),
        FactorDifference("plan.warm_up", 5, 3),
    )


def test_samples_of_the_own_process_are_told_from_launches() -> None:
    samples = rows(launches=1)
    own = measurement(system(samples), fresh=False)
    fresh = measurement(system(samples), day=2)

    found = check_comparable((fresh, fresh.systems[0]), (own, own.systems[0]))

    assert found == (FactorDifference("fresh process", True, False),)


def test_record_that_is_missing_is_one_difference() -> None:
    assert check_comparable(entry(), entry(environment={})) == (
        FactorDifference("environment", "recorded", "not recorded"),
    )
    assert check_comparable(entry(environment={}), entry(environment={})) == ()


def test_record_of_this_machine_has_the_conditions_that_matter() -> None:
    each = system()
    found = conditions(measurement(each, environment=record_environment().to_dict()), each)

    assert {
        "cpu.model",
        "cpu.governor",
        "cpu.threads",
        "host.kernel",
        "host.operating_system",
        "interpreter.version",
        "libraries.versions.numpy",
        "memory.total_bytes",
        "process.affinity",
        "process.cpu_quota",
        "gpu.models",
        "git.commit",
    } <= set(found)
    assert not {"load.average_1min", "memory.available_bytes", "process.threads", "clock.call_cost_ns"} & set(found)
    assert not any("reasons" in name for name in found)


def test_two_records_of_one_machine_differ_in_nothing() -> None:
    one, other = entry(environment=record_environment().to_dict()), entry(environment=record_environment().to_dict())

    assert check_comparable(one, other) == ()


def test_metric_is_chosen_by_its_name() -> None:
    memory = metric(rows(), name="PeakMemory", unit="B")
    both = system(metrics=(metric(rows()), memory))
    other = system(metrics=(memory,))

    assert metric_of(both, "PeakMemory") is memory
    assert check_comparable((measurement(both), both), (measurement(other), other), "PeakMemory") == ()
    with pytest.raises(MeasurementError, match="the metric differs"):
        check_comparable((measurement(both), both), (measurement(other), other))
    with pytest.raises(MeasurementError, match=r"lenet has no Energy; its metrics: WallclockTime, PeakMemory\."):
        metric_of(both, "Energy")


def test_long_values_are_cut_and_still_told_apart() -> None:
    one, other = ("x" * 1000 + end for end in "ab")

    assert scalar(one) != scalar(other)
    assert len(str(scalar(one))) <= 60
    assert scalar("\x1b[31m") == "\\x1b[31m"
    message = "a" * 100
    with pytest.raises(MeasurementError) as caught:
        check_comparable(entry(identity={"problem": message}), entry(identity={"problem": message + "b"}))
    assert message not in str(caught.value)


@pytest.mark.parametrize(
    ("one", "other", "answer"), [(2, 2.0, True), (1, True, False), (None, "", False), ([1], (1,), True)]
)
def test_equality_is_that_of_json(one: Any, other: Any, answer: bool) -> None:
    assert same(one, other) is answer


def test_conditions_are_aligned_under_the_same_names() -> None:
    assert aligned([{"a": 1}, {"b": 2}]) == [{"a": 1, "b": "unavailable"}, {"a": "unavailable", "b": 2}]
    assert aligned([{"a": 1, "b": 2}, {"a": 3, "environment": "not recorded"}]) == [
        {"a": 1, "environment": "recorded"},
        {"a": 3, "environment": "not recorded"},
    ]
