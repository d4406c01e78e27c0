from __future__ import annotations

import datetime
import json
from typing import Any

import pytest

from deep500.measure.exports.mllog import mllog
from deep500.measure.metric import Direction
from deep500.measure.results.document import Measurement
from deep500.measure.results.summary import summarise
from deep500.measure.workload import Score
from tests.unit.measure.results.support import measurement, metric, pair, rows, score, system

KEYS = ["namespace", "time_ms", "event_type", "key", "value", "metadata"]


def lines(found: Measurement) -> list[dict[str, Any]]:
    """Return the objects of all lines, each of which must have what MLPerf asks for."""
    parsed = []
    for line in mllog(found).splitlines():
        assert line.startswith(":::MLLOG {")
        content = json.loads(line.removeprefix(":::MLLOG "))
        assert list(content) == KEYS
        assert type(content["time_ms"]) is int
        assert content["event_type"] in ("INTERVAL_START", "INTERVAL_END", "POINT_IN_TIME")
        assert content["metadata"]["file"]
        assert type(content["metadata"]["lineno"]) is int
        parsed.append(content)
    assert [line["time_ms"] for line in parsed] == sorted(line["time_ms"] for line in parsed)
    return parsed


def of_key(found: list[dict[str, Any]], key: str) -> list[dict[str, Any]]:
    return [line for line in found if line["key"] == key]


def test_events_of_one_launch_in_their_order() -> None:
    found = measurement(system([(2.0, 3.0)], scores=(score(),)), seed=5)

    parsed = lines(found)

    start = datetime.datetime(2026, 1, 1, 0, 0, 0, 250_000, tzinfo=datetime.timezone.utc).timestamp() * 1000
    assert [(line["key"], line["value"], line["time_ms"] - start) for line in parsed] == [
        ("submission_benchmark", "model:lenet@pytorch", 0),
        ("seed", 5, 0),
        ("global_batch_size", 64, 0),
        ("init_start", None, 0),
        ("init_stop", None, 500),
        ("run_start", None, 500),
        ("tracked_stats", {"WallclockTime": 2.5}, 1760),
        ("eval_accuracy", 0.985, 1760),
        ("run_stop", None, 1760),
    ]
    point, start_of, end_of = "POINT_IN_TIME", "INTERVAL_START", "INTERVAL_END"
    types = [line["event_type"] for line in parsed]
    assert types == [point, point, point, start_of, end_of, start_of, point, point, end_of]
    assert parsed[-1]["metadata"]["status"] == "success"
    assert parsed[6]["metadata"]["unit"] == "s"
    assert parsed[7]["metadata"]["metric"] == "TestAccuracy"
    assert {line["metadata"]["system"] for line in parsed} == {"lenet"}


def test_every_launch_of_every_system_has_its_interval_and_value() -> None:
    found = pair()

    parsed = lines(found)

    for each in found.systems:
        own = [line for line in parsed if line["metadata"]["system"] == each.label]
        for key in ("init_start", "init_stop", "run_start", "run_stop"):
            assert [line["metadata"]["launch"] for line in of_key(own, key)] == list(range(1, 11))
        values = [line["value"]["WallclockTime"] for line in of_key(own, "tracked_stats")]
        assert tuple(values) == summarise(each.metric()).launch_values
        assert len(of_key(own, "submission_benchmark")) == 1


def test_scores_that_are_no_percentages_stay_as_they_are() -> None:
    parsed = lines(measurement(system(rows(launches=3), scores=(Score("Loss", 0.25, "nat"), score()))))

    found = of_key(parsed, "eval_accuracy")
    assert [(line["value"], line["metadata"]["unit"]) for line in found] == [(0.25, "nat"), (0.985, "")]


def test_error_is_no_accuracy() -> None:
    error = Score("L2 error", 1e-7, direction=Direction.LOWER)
    parsed = lines(measurement(system(rows(launches=3), scores=(error,))))

    assert of_key(parsed, "eval_accuracy") == []
    assert {"L2 error": 1e-7} in [line["value"] for line in of_key(parsed, "tracked_stats")]


@pytest.mark.parametrize(
    ("changes", "size"),
    [
        ({"identity": {"batch_size": 8}}, 8),
        ({"identity": {"options": {"batch_size": 16}}}, 16),
        ({"identity": {}, "factors": {"batch_size": 4}}, 4),
        ({"identity": {}}, None),
        ({"identity": {"batch_size": "many", "options": [1]}}, None),
        ({"identity": {"batch_size": True}}, None),
    ],
)
def test_batch_size_is_told_where_it_is_known(changes: dict[str, Any], size: int | None) -> None:
    found = of_key(lines(measurement(system(**changes))), "global_batch_size")

    assert [line["value"] for line in found] == ([] if size is None else [size])


def test_all_metrics_are_told() -> None:
    metrics = (metric(rows(launches=2)), metric(rows(7.0, launches=2), name="PeakMemory", unit="B"))

    found = of_key(lines(measurement(system(metrics=metrics))), "tracked_stats")

    assert [next(iter(line["value"])) for line in found] == ["WallclockTime", "PeakMemory"] * 2


@pytest.mark.parametrize(
    ("moment", "milliseconds"),
    [
        ("1970-01-01T00:00:01+00:00", 1000),
        ("1970-01-01T00:00:01.5+00:00", 1500),
        ("2026-01-01T00:00:00.123456789+00:00", 1767225600123),
    ],
)
def test_moments_are_milliseconds_since_1970(moment: str, milliseconds: int) -> None:
    assert lines(measurement(started=moment))[0]["time_ms"] == milliseconds


def test_line_breaks_in_names_make_no_lines() -> None:
    found = measurement(system(rows(launches=1), label="a\nb", spec="c\r\nd\u2028"))

    assert {line["metadata"]["system"] for line in lines(found)} == {"a\nb"}
