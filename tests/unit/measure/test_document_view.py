from __future__ import annotations

import math
from typing import Any

import pytest

from deep500.measure.document_view import (
    DocumentKind,
    DocumentView,
    LaunchView,
    MetricView,
    flag_of,
    items_of,
    mapping_of,
    number_of,
    short,
    text_of,
)


@pytest.mark.parametrize(
    ("value", "number"),
    [
        (3, 3.0),
        (-0.5, -0.5),
        (True, None),
        ("3", None),
        (None, None),
        (math.nan, None),
        (math.inf, None),
        (10**400, None),
        ([3], None),
    ],
)
def test_a_number_is_finite_and_no_truth_value(value: Any, number: float | None) -> None:
    assert number_of(value) == number


def test_parts_of_a_wrong_type_are_empty() -> None:
    assert mapping_of([1]) == {}
    assert items_of({"a": 1}) == items_of("abc") == []
    assert items_of((1, 2)) == [1, 2]
    assert text_of(" \n") is text_of(3) is None
    assert text_of("a") == "a"
    assert flag_of(1) is flag_of("true") is None
    assert flag_of(False) is False


def test_short_names_end_in_an_ellipsis() -> None:
    assert short("a" * 60) == "a" * 60
    assert short("a" * 61) == "a" * 59 + "…"


def launch(process: int | None, samples: tuple[float, ...] = (1.0, 2.0), fresh: bool | None = True) -> LaunchView:
    return LaunchView(process, fresh, samples, 1)


def metric(*launches: LaunchView) -> MetricView:
    return MetricView("t of x", "t", "s", None, None, launches, {})


@pytest.mark.parametrize(
    ("launches", "separate"),
    [
        ((), 0),
        ((launch(0), launch(1)), 2),
        ((launch(0), launch(0)), 1),
        ((launch(0), launch(1, ())), 1),
        ((launch(0, fresh=False), launch(1, fresh=False)), 1),
        ((launch(0, fresh=None), launch(1, fresh=None)), 2),
        ((launch(None), launch(None)), 1),
    ],
)
def test_launches_of_one_process_count_once(launches: tuple[LaunchView, ...], separate: int) -> None:
    assert metric(*launches).separate_launches == separate


def test_constant_samples_are_two_or_more() -> None:
    assert metric(launch(0, (3.0,)), launch(1, (3.0,))).is_constant
    assert not metric(launch(0, (3.0,))).is_constant
    assert not metric(launch(0, (3.0, 3.1))).is_constant


def test_paths_through_what_is_no_object_lead_nowhere() -> None:
    view = DocumentView(DocumentKind.MEASUREMENT, {"design": [1], "statistic": {"confidence": 2}})

    assert view.part("design.statistic.name") is None
    assert view.part("statistic.confidence") == 2
    assert view.confidence is None
    assert view.environment("cpu.model") is None
