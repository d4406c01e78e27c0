from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deep500.core.errors import MeasurementError
from deep500.measure.metric import Direction
from deep500.measure.pictures._systems import plain, shown_metric
from deep500.measure.results.document import Statistic
from tests.unit.measure.pictures.support import draws, measurement, samples


@pytest.mark.parametrize(
    ("unit", "value", "shown"),
    [
        ("s", 3e-9, "ns"),
        ("s", 5e-10, "ns"),
        ("s", 9.99e-7, "ns"),
        ("s", 2e-6, "µs"),
        ("s", 0.002, "ms"),
        ("s", 90.0, "s"),
        ("B", 100.0, "B"),
        ("B", 3 * 2.0**20, "MiB"),
        ("flop/s", 2e9, "Gflop/s"),
        ("samples/s", 1e9, "samples/s"),
        ("", 1e-9, ""),
    ],
)
def test_values_are_shown_in_a_readable_unit(unit, value, shown):
    result = measurement([[value]])
    system = dataclasses.replace(result.systems[0], metrics=(samples([[value]], unit=unit),))
    found = shown_metric(dataclasses.replace(result, systems=(system,)), None)

    assert found.label == f"WallclockTime{f' in {shown}' if shown else ''}, lower is better"
    factor = value / found.systems[0].estimate
    assert found.systems[0].rows[0][0] == pytest.approx(value / factor)
    assert found.systems[0].value == f"median {value / factor:.4g} {shown}".rstrip()


def test_the_smallest_value_chooses_the_unit_of_all():
    found = shown_metric(measurement([[2.0]], [[3e-3]]), None)

    assert "in ms" in found.label
    assert found.systems[0].estimate == pytest.approx(2000.0)


def test_weights_are_equal_over_launches():
    (system,) = shown_metric(measurement([[1.0] * 4, [2.0]]), None).systems

    assert system.weights.sum() == pytest.approx(1.0)
    assert system.weights[system.samples == system.rows[1][0]].sum() == pytest.approx(0.5)


def test_another_metric_is_shown_by_its_name():
    result = measurement(draws(2, 5))
    rate = samples([[5.0], [6.0]], "Throughput", "1/s", direction=Direction.HIGHER)
    system = dataclasses.replace(result.systems[0], metrics=(*result.systems[0].metrics, rate))
    result = dataclasses.replace(result, systems=(system,))

    assert shown_metric(result, "Throughput").label == "Throughput in 1/s, higher is better"
    with pytest.raises(MeasurementError, match=r"has no metric 'Energy'.*WallclockTime, Throughput"):
        shown_metric(result, "Energy")


def test_systems_without_the_same_metric_are_refused():
    result = measurement([[1.0]], [[1.0]])
    first, second = result.systems
    other = dataclasses.replace(second, metrics=(samples([[1.0]], unit="ms"),))
    none = dataclasses.replace(second, metrics=())

    for systems, words in (((first, other), "in 'ms' and in 's'"), ((first, none), "without"), ((), "or none")):
        with pytest.raises(MeasurementError, match=words):
            shown_metric(dataclasses.replace(result, systems=systems), None)


def test_samples_that_cannot_be_summarised_are_refused():
    with pytest.raises(MeasurementError, match="needs at least 368"):
        shown_metric(measurement(draws(6, 50), statistic=Statistic("quantile", 0.99)), None)
    with pytest.raises(MeasurementError, match="NaN"):
        shown_metric(measurement([[1.0, np.nan]]), None)


def test_the_origin_names_version_time_and_machine_and_what_is_missing():
    whole = shown_metric(measurement([[1.0]]), None)
    broken = shown_metric(measurement([[1.0]], complete=False, failure="1 of 6 launches", environment={}), None)

    assert whole.origin == "Deep500 1.0 | 2026-01-01 00:00 UTC | Test CPU"
    assert broken.origin.endswith("INCOMPLETE: 1 of 6 launches")
    assert (whole.is_complete, broken.is_complete) == (True, False)


def test_colours_differ_and_start_again():
    systems = shown_metric(measurement(*[[[1.0]]] * 9), None).systems

    assert len({system.colour for system in systems[:7]}) == 7
    assert systems[7].colour == systems[0].colour


@given(st.text(), st.integers(1, 4), st.integers(5, 40))
def test_plain_texts_are_short_printable_and_no_formulas(text, lines, line):
    found = plain(text, lines, line)

    assert len(found.split("\n")) <= lines
    assert all(len(part.replace(r"\$", "$")) <= line for part in found.split("\n"))
    assert found.replace("\n", "").isprintable()
    assert found.count("$") == found.count(r"\$")


def test_lines_end_where_words_do():
    assert plain("model:lenet,batch_size=64,mode=inference@tensorflow:gpu:0", 3, 30).split("\n") == [
        "model:lenet,batch_size=64,",
        "mode=inference@tensorflow:gpu:",
        "0",
    ]
    assert plain("a" * 70, 2, 30).split("\n") == ["a" * 30, "a" * 29 + "…"]
