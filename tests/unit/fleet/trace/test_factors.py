"""Labels of tasks as numbers and groups; what is missing is named."""

from __future__ import annotations

import re

import numpy as np
import polars as pl
import pytest

from deep500.core.errors import FleetError
from deep500.fleet import OutcomeTable
from deep500.fleet.trace.factors import FoundFactor, find_factors
from deep500.fleet.trace.observed import ObservedTrace, observe


def trace(**labels: list[object]) -> ObservedTrace:
    rows = len(next(iter(labels.values())))
    base = {
        "key": [f"t{row}" for row in range(rows)],
        "group": ["someone"] * rows,
        "status": ["passed"] * rows,
        "started": [0.0] * rows,
        "ended": [float(row) for row in range(rows)],
    }
    return observe(OutcomeTable(pl.DataFrame({**base, **labels}, strict=False)))


def found(name: str, **labels: list[object]) -> FoundFactor:
    return {factor.factor.name: factor for factor in find_factors(trace(**labels))[0]}[name]


def test_few_numbers_are_groups_of_their_own() -> None:
    factor = found("plan_gpu", plan_gpu=[100, 50, None, 50, 25])
    assert factor.groups == ("25", "50", "100")
    assert factor.codes.tolist() == [2, 1, -1, 1, 0]
    assert factor.missing == 1


def test_many_numbers_are_cut_at_quintiles() -> None:
    factor = found("plan_mem", plan_mem=list(range(1, 101)))
    assert factor.groups == ("to 20", "over 20 to 40", "over 40 to 60", "over 60 to 80", "over 80")
    assert np.bincount(factor.codes).tolist() == [20] * 5
    skewed = found("plan_mem", plan_mem=[1] * 93 + list(range(2, 9)))
    assert skewed.groups == ("to 1", "over 1")
    assert np.bincount(skewed.codes).tolist() == [93, 7]


def test_numbers_as_texts_are_numbers_and_others_are_missing() -> None:
    factor = found("plan_cpu", plan_cpu=["600", "many", "1200"])
    assert factor.groups == ("600", "1200")
    assert factor.missing == 1


def test_most_names_go_together() -> None:
    names = [f"u{number:02d}" for number in range(20) for _ in range(number + 1)]
    factor = {f.factor.name: f for f in find_factors(trace(user=names), top=3)[0]}["user"]
    assert factor.groups == ("u19", "u18", "u17", "17 others")
    assert np.bincount(factor.codes).tolist() == [20, 19, 18, 153]
    assert found("gpu_type", gpu_type=["T4", "", None, "P100"]).missing == 2


def test_what_is_absent_is_said() -> None:
    factors, absent = find_factors(trace(nodes=[1, 2, 3], gpu_type=[None, None, None]))
    assert [factor.factor.name for factor in factors] == ["size", "user"]
    assert absent["plan_cpu"] == "no label plan_cpu"
    assert absent["gpus"] == "the label gpus is missing everywhere"
    assert absent["gpu_type"] == "the label gpu_type is missing everywhere"


def test_a_factor_gives_way_to_one_that_says_the_same() -> None:
    both = {factor.factor.name for factor in find_factors(trace(plan_gpu=[1, 2], gpus=[1.0, 2.0]))[0]}
    one = {factor.factor.name for factor in find_factors(trace(gpus=[1.0, 2.0], cpu_num=[4, 8]))[0]}
    assert "gpus" not in both
    assert {"gpus", "cpus"} <= one


def test_more_labels_on_request() -> None:
    factors, _ = find_factors(trace(queue=["a", "b"], rack=[1, 2]), ["queue", "rack"])
    assert [(f.factor.name, f.values is None) for f in factors if f.factor.name != "user"] == [
        ("queue", True),
        ("rack", False),
    ]
    with pytest.raises(FleetError, match="There is no label 'colour'"):
        find_factors(trace(queue=["a"]), ["colour"])


def test_groups_of_numbers_that_are_nearly_the_same_have_names_of_their_own() -> None:
    few = found("plan_mem", plan_mem=[1234567.0, 1234568.0, 1234568.25, 1e-9])
    assert len(set(few.groups)) == 4
    many = found("plan_mem", plan_mem=[1000.0 + row / 1000 for row in range(50)])
    assert len(set(many.groups)) == 5
    assert all(
        len(set(re.findall(r"[0-9.]+", group))) == group.count("over") + group.count("to") for group in many.groups
    )
