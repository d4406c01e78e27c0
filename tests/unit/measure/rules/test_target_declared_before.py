from __future__ import annotations

import pytest

from deep500.measure.metric import Direction
from deep500.measure.workload import Score
from tests.unit.measure.rules.support import measurement, recipe, system, trained, verdict_of


def test_an_error_of_a_single_step_needs_no_target():
    error = Score("L2 relative error", 1e-6, direction=Direction.LOWER)

    assert verdict_of("target_declared_before", measurement(system(scores=(error,))))[0] == "not applicable"


def test_the_target_is_told():
    assert "TestAccuracy 98.3 %, target 97" in verdict_of("target_declared_before", measurement(trained()))[1]


@pytest.mark.parametrize(
    ("metrics", "verdict"),
    [
        ([{"name": "TestAccuracy", "value": 98.0, "unit": "%", "acceptable": 0.0}], "obeyed"),
        ([{"name": "TestAccuracy", "value": 98.0, "unit": "%", "acceptable": None}], "broken"),
        ([{"name": "TestAccuracy", "value": 98.0, "unit": "%", "acceptable": "high"}], "broken"),
        ([], "not applicable"),
    ],
)
def test_a_recipe_states_its_target_in_metrics(metrics, verdict):
    assert verdict_of("target_declared_before", recipe(metrics=metrics))[0] == verdict
