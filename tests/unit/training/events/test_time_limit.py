from __future__ import annotations

from typing import Any

import pytest

from deep500.core.errors import TrainingError
from deep500.training.events.time_limit import TimeLimitEvent
from deep500.training.optimizers.gradient_descent import GradientDescent
from deep500.training.statistics import Outcome
from tests.unit.training.events.test_target_accuracy import SlowTests
from tests.unit.training.support import make_trainer


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SlowTests:
    slow = SlowTests()
    monkeypatch.setattr("deep500.measure.clock.now_ns", lambda: slow.now_ns)
    return slow


@pytest.mark.parametrize(("limit_s", "steps"), [(3.0, 3), (3.5, 4), (54.0, 4), (105.0, 5), (1e9, 8)])
def test_it_stops_when_the_time_is_over(clock: SlowTests, limit_s: float, steps: int) -> None:
    event = TimeLimitEvent(limit_s)
    stats = make_trainer(GradientDescent).run_loop(2, [clock, event])

    assert stats.steps == steps
    assert stats.outcome is (Outcome.COMPLETED if limit_s == 1e9 else Outcome.STOPPED)


def test_what_is_left_is_kept(clock: SlowTests) -> None:
    event = TimeLimitEvent(1e6)
    make_trainer(GradientDescent).run_loop(1, [clock, event])
    elapsed_s = event.elapsed_s
    clock.now_ns += 10**12  # between two runs
    other = TimeLimitEvent(1e6)
    other.restore(event.state())

    assert elapsed_s == other.elapsed_s == event.elapsed_s == pytest.approx(104.0)
    clock.now_ns += 10**9
    assert other.elapsed_s == pytest.approx(105.0)


@pytest.mark.parametrize("limit_s", [0, -1, float("nan"), "long"])
def test_the_limit_is_checked(limit_s: Any) -> None:
    with pytest.raises(TrainingError, match="limit_s was given as"):
        TimeLimitEvent(limit_s)
