from __future__ import annotations

import json
from typing import Any

import pytest

from deep500.core.errors import MeasurementError
from deep500.measure.sampling.plan import SamplingPlan


def test_defaults_are_those_of_the_design() -> None:
    plan = SamplingPlan()

    assert (plan.relative_half_width, plan.minimum_samples, plan.growth, plan.timer_share) == (0.05, 10, 1.25, 0.05)
    assert plan.stop.relative_half_width == 0.05
    assert plan.ratio_stop.relative_half_width == 0.01
    assert plan.ratio_stop.sizes == plan.stop.sizes


def test_plan_survives_json() -> None:
    plan = SamplingPlan(warm_up=3, threads=2, time_limit_s=1.5)

    assert SamplingPlan(**json.loads(json.dumps(plan.to_dict()))) == plan


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"minimum_samples": 2.5}, "minimum_samples was given as 2.5"),
        ({"minimum_samples": 5}, "needs 6 samples"),
        ({"maximum_samples": 9}, "below the minimum"),
        ({"maximum_samples": True}, "maximum_samples was given as True"),
        ({"warm_up": -1}, "warm_up was given as -1; accepted are whole numbers from 0 or None"),
        ({"calls_per_sample": 0}, "from 1 or None"),
        ({"builds": 0}, "builds was given as 0"),
        ({"threads": 0}, "threads was given as 0"),
        ({"threads": "two"}, "threads was given as 'two'"),
        ({"time_limit_s": float("nan")}, "time_limit_s was given as nan"),
        ({"time_limit_s": float("inf")}, "time_limit_s was given as inf"),
        ({"time_limit_s": -1}, "time_limit_s was given as -1"),
        ({"time_limit_s": "10"}, "time_limit_s was given as '10'"),
        ({"timer_share": 0}, "timer_share was given as 0"),
        ({"ratio_half_width": 0.0}, "ratio_half_width was given as 0.0"),
        ({"relative_half_width": 0.0}, "relative_half_width was given as 0.0"),
        ({"relative_half_width": float("inf")}, "relative_half_width was given as inf"),
        ({"growth": float("inf")}, "growth was given as inf"),
        ({"confidence": "high"}, "confidence was given as 'high'"),
        ({"growth": 1.0}, "above 1"),
        ({"confidence": 95}, "confidence"),
        ({"minimum_time_s": 20.0}, "more than time_limit_s"),
    ],
)
def test_contradictions_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(MeasurementError, match=message):
        SamplingPlan(**settings)


def test_threads_become_variables_of_fresh_processes() -> None:
    assert SamplingPlan().environment == {}
    assert SamplingPlan(threads=3).environment["OMP_NUM_THREADS"] == "3"
    assert set(SamplingPlan(threads=3).environment.values()) == {"3"}
