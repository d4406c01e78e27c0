from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from deep500.core.errors import MeasurementError
from deep500.measure.exports.pyperf import pyperf
from deep500.measure.results.document import Measurement, Statistic
from deep500.measure.results.summary import summarise
from tests.unit.measure.results.support import measurement, metric, pair, rows, system


def content(found: Measurement) -> dict[str, Any]:
    return json.loads(pyperf(found))


def test_each_launch_is_a_run_of_one_value() -> None:
    found = pair()

    benchmarks = content(found)["benchmarks"]

    assert [each["metadata"]["name"] for each in benchmarks] == ["base", "other"]
    for benchmark, each in zip(benchmarks, found.systems, strict=True):
        assert [run["values"] for run in benchmark["runs"]] == [
            [value] for value in summarise(each.metric()).launch_values
        ]
        assert benchmark["metadata"]["deep500_configuration"] == each.configuration_hash
    assert benchmarks[1]["metadata"]["deep500_factor_framework"] == "tensorflow"


def test_the_only_launch_keeps_its_samples() -> None:
    samples = rows(launches=1)

    (benchmark,) = content(measurement(system(samples)))["benchmarks"]

    assert [run["values"] for run in benchmark["runs"]] == [list(samples[0])]


def test_warm_up_and_runs_to_a_sample_are_kept() -> None:
    samples = metric([(1.0, 2.0)])
    launch = replace(samples.launches[0], calls_per_sample=7, warm_up=(4.0, 3.0))

    (benchmark,) = content(measurement(system(metrics=(replace(samples, launches=(launch,)),))))["benchmarks"]

    (run,) = benchmark["runs"]
    assert run["warmups"] == [[7, 4.0], [7, 3.0]]
    assert run["metadata"]["loops"] == 7
    assert run["metadata"]["duration"] == 70.0
    assert run["metadata"]["date"] == "2026-01-01 00:00:00.250+00:00"
    assert run["metadata"]["deep500_samples"] == 2


def test_quantile_of_the_design_is_exported() -> None:
    found = measurement(system(rows(samples=40)), statistic=Statistic("quantile", 0.9))

    (benchmark,) = content(found)["benchmarks"]

    values = summarise(found.systems[0].metric(), found.design.statistic).launch_values
    assert [run["values"] for run in benchmark["runs"]] == [[value] for value in values]


def test_machine_is_told_under_the_names_of_pyperf() -> None:
    assert content(measurement())["metadata"] == {
        "hostname": "a1d8",
        "platform": "Linux, 6.1",
        "cpu_model_name": "Small CPU",
        "cpu_count": 4,
        "load_avg_1min": 0.5,
        "python_version": "3.11.7",
        "python_implementation": "cpython",
        "python_compiler": "GCC",
        "deep500_version": "1.0",
    }
    assert content(measurement(environment={}))["metadata"] == {"deep500_version": "1.0"}


def test_bytes_are_known_and_other_units_are_left_out() -> None:
    metrics = (metric(rows()), metric(rows(5.0), name="Energy", unit="J"), metric(rows(9.0), name="Memory", unit="B"))

    benchmarks = content(measurement(system(metrics=metrics)))["benchmarks"]

    assert [(each["metadata"]["name"], each["metadata"]["unit"]) for each in benchmarks] == [
        ("lenet WallclockTime", "second"),
        ("lenet Memory", "byte"),
    ]
    with pytest.raises(MeasurementError, match="those of this measurement are in 'J'"):
        pyperf(measurement(system(metrics=metrics[1:2])))


@pytest.mark.parametrize("samples", [(0.0, 1.0), (-1.0,)])
def test_values_that_pyperf_refuses_are_refused(samples: tuple[float, ...]) -> None:
    with pytest.raises(MeasurementError, match="pyperf takes positive ones only"):
        pyperf(measurement(system([samples])))


def test_odd_names_are_no_trouble() -> None:
    found = measurement(system(label="a\nb\x1b ", spec="x\ny", factors={"k\n": "v\n", "empty": "", "none": None}))

    metadata = content(found)["benchmarks"][0]["metadata"]

    assert metadata["name"] == "a\\nb\\x1b"
    assert metadata["deep500_factor_k\\n"] == "v\\n"
    assert not any("\n" in str(value) or value in ("", None) for value in metadata.values())
