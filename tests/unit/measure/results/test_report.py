from __future__ import annotations

import json
from dataclasses import fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deep500.measure.results.comparing import compare
from deep500.measure.results.document import Measurement
from deep500.measure.results.report import ComparisonReport, ComparisonRow, Source
from tests.unit.measure.results.support import measurement, pair, rows, score, system


def report(*seeds: int, launches: int = 8) -> ComparisonReport:
    found: list[Measurement] = [
        measurement(system(rows(1 + seed, launches, seed=seed), scores=(score(),)), day=day)
        for day, seed in enumerate(seeds, 1)
    ]
    source = Source("a.json", "a" * 64)
    return compare([(each, each.systems[0]) for each in found], sources=[source, *[None] * (len(found) - 1)])


@given(st.lists(st.integers(0, 5), min_size=2, max_size=4), st.integers(1, 9))
def test_content_goes_through_json_and_back(seeds: list[int], launches: int) -> None:
    found = report(*seeds, launches=launches)

    content = json.loads(json.dumps(found.to_dict(), allow_nan=False))

    assert ComparisonReport.from_dict(content) == found
    assert ComparisonReport.from_dict(content).to_dict() == content


def test_content_has_the_base_with_its_absolute_value_and_unit() -> None:
    content = report(0, 1).to_dict()

    base = content["base"]["absolute"]
    assert content["kind"] == "comparison"
    assert content["metric"] == {"name": "WallclockTime", "unit": "s", "kind": "cost", "direction": "lower"}
    assert base["interval"]["low"] <= base["estimate"] <= base["interval"]["high"]
    assert base["launches"] == 8
    assert content["base"]["source"] == {"path": "a.json", "sha256": "a" * 64}
    assert content["rows"][0]["system"]["source"] is None
    assert set(content["rows"][0]["ratio"]) == {"estimate", "interval"}


def test_there_is_no_report_without_a_base() -> None:
    assert {field.name for field in fields(ComparisonReport) if field.name == "base"} == {"base"}
    values = {field.name: getattr(report(0, 1), field.name) for field in fields(ComparisonReport)}
    del values["base"]

    with pytest.raises(TypeError, match="base"):
        ComparisonReport(**values)
    with pytest.raises(AttributeError):
        replace(report(0, 1), base=None).to_dict()  # type: ignore[arg-type]
    assert not hasattr(ComparisonRow, "to_dict")


def test_factors_are_in_the_content() -> None:
    found = pair()

    content = compare([(found, each) for each in found.systems]).to_dict()

    assert content["rows"][0]["factors"] == [{"name": "framework", "first": "pytorch", "second": "tensorflow"}]
