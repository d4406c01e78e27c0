from __future__ import annotations

import pytest

from deep500.measure.document_view import DocumentKind
from deep500.measure.metric import Direction, MetricKind
from deep500.measure.results.document import Measurement
from deep500.measure.rules._reading import view_of
from tests.unit.measure.rules.support import changed, comparison, measurement, recipe, trained


def test_a_measurement_of_deep500_is_read_whole():
    document = measurement(trained())
    view = view_of(document)
    measured = Measurement.from_dict(document).systems[0]

    assert (view.problems, view.sample_problems) == ((), ())
    assert view.kind is DocumentKind.MEASUREMENT
    (system,) = view.systems
    assert system.metrics[0].rows == measured.metrics[0].rows
    assert (system.metrics[0].kind, system.metrics[0].direction) == (MetricKind.COST, Direction.LOWER)
    assert system.scores[0].acceptable == measured.scores[0].acceptable
    assert system.workload_kind == "recipe"
    assert system.setting("nothing", "seed") == 0
    assert view.environment("host.kernel") == "6.1"
    assert view.environment("host.operating_system") is None  # unavailable


def test_a_comparison_of_deep500_is_read_whole():
    document = comparison(2.0, 0.5)
    view = view_of(document)

    assert view.problems == ()
    assert [side.system for side in view.sides] == ["base", "row1", "row2"]
    assert [row.verdict for row in view.compared] == ["slower", "faster"]
    assert view.compared[1].ends[1] < 1
    assert view.base.launch_values == tuple(document["base"]["absolute"]["launch_values"])
    assert (view.confidence, view.statistic["name"]) == (0.95, "median")


def test_a_result_of_a_recipe_is_read_whole():
    view = view_of(recipe())

    assert view.problems == ()
    assert (view.scores[0].value, view.scores[0].held_out, view.scores[0].kind) == (98.0, True, MetricKind.SCORE)


@pytest.mark.parametrize(
    "place", [("systems",), ("systems", 0), ("systems", 0, "metrics"), ("systems", 0, "metrics", 0)]
)
@pytest.mark.parametrize("value", [None, 3, "text", [], {}, [1, None]])
def test_a_part_of_a_wrong_type_is_a_problem_and_is_left_out(place, value):
    document = measurement()
    container = document
    for key in place[:-1]:
        container = container[key]
    container[place[-1]] = value
    view = view_of(document)

    is_empty_list = value == [] and place[-1] in ("systems", "metrics")
    assert bool(view.problems + view.sample_problems) is not is_empty_list
    assert not [metric for metric in view.metrics if metric.count]


def test_one_sample_that_is_no_number_spoils_its_launch_and_no_other():
    document = changed(
        measurement(), lambda d: d["systems"][0]["metrics"][0]["launches"][0]["samples"].__setitem__(3, 10**400)
    )
    view = view_of(document)

    assert len(next(view.metrics).rows) == 5
    assert "1 of the 30 entries" in view.sample_problems[0]


def test_names_are_short_and_hold_no_control_characters():
    document = changed(measurement(), lambda d: d["systems"][0].update(label="a\x1b[31m\n" * 100))
    (system,) = view_of(document).systems

    assert system.label.isprintable()
    assert len(system.label) <= 60
