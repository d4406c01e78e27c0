from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from deep500.core.errors import MeasurementError
from deep500.measure.statistics.stopping import Action, SequentialStop
from tests.unit.measure.statistics.simulation import DISTRIBUTIONS, sequential_coverage

MAXIMA = {"lognormal 0.5": 2000, "lognormal 1": 4500, "bimodal 70:30": 400}


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_median_is_covered_after_a_sequential_stop(name: str) -> None:
    assert sequential_coverage(name, SequentialStop(maximum=MAXIMA[name])) >= 0.93


def test_a_look_after_every_sample_would_cover_less() -> None:
    name = "bimodal 70:30"
    every = SequentialStop(minimum=6, growth=1.0001, maximum=200)
    rule = SequentialStop(maximum=200)

    assert every.sizes[:4] == (6, 7, 8, 9)
    assert sequential_coverage(name, every, 2000) < sequential_coverage(name, rule, 2000)


def test_looks_grow_from_the_minimum_to_the_maximum() -> None:
    stop = SequentialStop(maximum=60)

    assert stop.sizes == (10, 13, 17, 22, 28, 35, 44, 55, 60)
    assert [n for n in range(60) if stop.should_check(n)] == list(stop.sizes[:-1])
    assert stop.should_check(60)
    assert stop.should_check(61)
    assert (stop.next_check(0), stop.next_check(10), stop.next_check(59), stop.next_check(60)) == (10, 13, 60, None)
    assert stop == SequentialStop(maximum=60)


def test_decisions_follow_the_width_of_the_interval() -> None:
    stop = SequentialStop(maximum=13)
    wide = np.linspace(1, 2, 13)

    few = stop.decide(wide[:9])
    assert (few.action, few.interval, few.check_at) == (Action.CONTINUE, None, 10)
    further = stop.decide(wide[:10])
    assert (further.action, further.check_at) == (Action.CONTINUE, 13)
    last = stop.decide(wide)
    assert (last.action, last.check_at) == (Action.NOT_CONVERGED, None)
    assert "no more samples are allowed" in last.reason
    assert "above 5.00%" in last.reason
    assert last.interval is not None
    converged = stop.decide(np.linspace(1, 1.05, 10))
    assert (converged.action, converged.check_at) == (Action.CONVERGED, None)
    assert converged.interval is not None
    assert converged.interval.relative_half_width <= 0.05


@pytest.mark.parametrize("size", [0, 9, 10])
def test_time_that_is_up_ends_it_without_convergence(size: int) -> None:
    decision = SequentialStop().decide(np.linspace(1, 2, size), out_of_time=True)

    assert decision.action is Action.NOT_CONVERGED
    assert decision.reason.startswith("time is up")


def test_median_of_zero_never_converges_unless_all_samples_are() -> None:
    assert SequentialStop().decide(np.linspace(-1, 1, 11)).action is Action.CONTINUE
    assert SequentialStop().decide(np.zeros(10)).action is Action.CONVERGED


def test_nan_is_refused() -> None:
    with pytest.raises(MeasurementError, match="NaN"):
        SequentialStop().decide([math.nan] * 10)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"relative_half_width": 0.0}, "half width is positive"),
        ({"growth": 1.0}, "above 1"),
        ({"minimum": 5}, "needs 6 samples"),
        ({"minimum": 6, "confidence": 0.99}, "needs 8 samples"),
        ({"maximum": 9}, "below the minimum"),
        ({"confidence": 1.5}, "confidence lies between"),
    ],
)
def test_rules_that_contradict_themselves_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(MeasurementError, match=message):
        SequentialStop(**arguments)
