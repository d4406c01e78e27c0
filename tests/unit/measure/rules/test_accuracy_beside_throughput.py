from __future__ import annotations

import pytest

from deep500.measure.metric import Direction, MetricKind
from deep500.measure.workload import Score, Work
from tests.unit.measure.rules.support import comparison, measurement, recipe, system, trained, verdict_of

ERROR = Score("L2 relative error", 1e-6, direction=Direction.LOWER)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float8_e4m3fn", "int8"])
def test_low_precision_needs_a_score(dtype):
    work = Work(dtype=dtype)
    assert verdict_of("accuracy_beside_throughput", measurement(system(work=work)))[0] == "broken"
    assert verdict_of("accuracy_beside_throughput", measurement(system(work=work, scores=(ERROR,))))[0] == "obeyed"


@pytest.mark.parametrize("factors", [{"precision": "mixed float16"}, {"dtype": "bf16"}])
def test_low_precision_may_be_a_factor(factors):
    assert verdict_of("accuracy_beside_throughput", measurement(system(factors=factors)))[0] == "broken"


@pytest.mark.parametrize("dtype", ["float32", "float64", None])
def test_full_precision_is_no_question(dtype):
    document = measurement(system(work=Work(dtype=dtype)))

    assert verdict_of("accuracy_beside_throughput", document)[0] == "not applicable"


def test_a_cost_is_no_score():
    cost = Score("PeakMemory", 5.0, "B", Direction.LOWER, MetricKind.COST)

    assert verdict_of("accuracy_beside_throughput", measurement(trained(scores=(cost,))))[0] == "broken"


def test_a_training_in_a_comparison_needs_a_score():
    document = comparison(2.0)
    document["base"]["spec"] = "recipe:digits_lenet"
    assert verdict_of("accuracy_beside_throughput", document)[0] == "broken"
    score = {"name": "TestAccuracy", "value": 98.0, "unit": "%", "kind": "score", "acceptable": 97.0, "held_out": True}
    document["base"]["scores"] = [score]
    assert verdict_of("accuracy_beside_throughput", document)[0] == "obeyed"


@pytest.mark.parametrize(
    ("metrics", "verdict"),
    [
        ([{"name": "TestAccuracy", "value": 98.0, "unit": "%"}], "obeyed"),
        ([{"name": "TestAccuracy", "value": None, "unit": "%"}], "broken"),
        ([{"name": "WallclockTime", "value": 3.0, "unit": "s"}], "broken"),
        ([{"name": "Throughput", "value": 3.0, "unit": "samples/s"}], "broken"),
        ([], "broken"),
    ],
)
def test_a_recipe_needs_a_metric_that_is_a_score(metrics, verdict):
    assert verdict_of("accuracy_beside_throughput", recipe(metrics=metrics))[0] == verdict
