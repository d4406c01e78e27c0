from __future__ import annotations

from typing import Any

import pytest

from deep500.core.errors import Deep500Error
from deep500.fleet.ci.reduction import ReductionPlan


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"budget": 0}, "budget is 0; accepted are shares over 0 and up to 1"),
        ({"budget": 1.5}, "budget is 1.5"),
        ({"train_share": 1.0}, "train_share is 1.0; accepted are shares over 0 and below 1"),
        ({"methods": ("greedi",)}, "method is 'greedi'. Did you mean 'greedy'"),
        ({"methods": ()}, "No method was named"),
        ({"methods": ("greedy", "greedy")}, "named twice"),
        ({"aim": "old"}, "aim is 'old'"),
        ({"draws": 0}, "draws was given as 0"),
        ({"periodic": 0}, "periodic was given as 0"),
        ({"periodic": 2**31}, "accepted are numbers of commits below 2"),
        ({"time_limit_s": 0.0}, "time_limit_s is 0.0"),
        ({"linkage": "x"}, "linkage is 'x'"),
        ({"cut": 2.0}, "cut is 2.0"),
        ({"seed": -1}, "seed -1"),
    ],
)
def test_mistakes(options: dict[str, Any], message: str) -> None:
    with pytest.raises(Deep500Error, match=message.replace(".", r"\.")):
        ReductionPlan(**options)


def test_defaults() -> None:
    plan = ReductionPlan()
    assert (plan.budget, plan.train_share, plan.methods[0]) == (0.3, 0.7, "greedy")
