from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from deep500.measure.sampling import warm_up as module
from deep500.measure.sampling.plan import SamplingPlan
from deep500.measure.sampling.warm_up import WarmUp, steadiness, warm_up
from tests.unit.measure.sampling.support import Clock


@pytest.fixture
def warm(monkeypatch: pytest.MonkeyPatch) -> Callable[..., WarmUp]:
    def warm(cost_s: Callable[[int], float], plan: SamplingPlan | None = None) -> WarmUp:
        clock = Clock()
        monkeypatch.setattr(module, "now_ns", clock)
        count = 0

        def once() -> list[float]:
            nonlocal count
            duration_s = cost_s(count)
            count += 1
            clock.moment_ns += round(duration_s * 1e9)
            return [duration_s]

        return warm_up(once, lambda durations: None, plan or SamplingPlan(), lambda *_: None)

    return warm


def noisy(level_s: Callable[[int], float]) -> Callable[[int], float]:
    noise = np.random.default_rng(1).lognormal(0, 0.02, 5000)
    return lambda run: float(level_s(run) * noise[run])


def test_steady_runs_end_at_the_first_look(warm: Callable[..., WarmUp]) -> None:
    found = warm(noisy(lambda run: 1e-3))

    assert len(found.columns[0]) == 103
    assert found.reason == "warm after 103 samples"


def test_slow_beginning_is_left_behind(warm: Callable[..., WarmUp]) -> None:
    found = warm(noisy(lambda run: 3e-3 if run < 75 else 1e-3))

    assert len(found.columns[0]) > 150
    assert found.reason.startswith("warm after")


def test_no_steady_state_is_an_answer(warm: Callable[..., WarmUp]) -> None:
    found = warm(noisy(lambda run: 1e-3 * 1.003**run))

    assert found.reason.startswith("no steady state within")
    assert sum(found.columns[0]) <= 2.01


def test_slow_runs_are_not_examined(warm: Callable[..., WarmUp]) -> None:
    found = warm(noisy(lambda run: 0.1))

    assert "not examined" in found.reason
    assert 4 <= len(found.columns[0]) <= 6


def test_runs_that_become_too_long_are_not_examined(warm: Callable[..., WarmUp]) -> None:
    found = warm(noisy(lambda run: 1e-3 if run < 20 else 0.5))

    assert "became too long" in found.reason
    assert sum(found.columns[0]) < 2.6


def test_run_longer_than_all_warm_up_is_run_but_twice(warm: Callable[..., WarmUp]) -> None:
    assert len(warm(lambda run: 6.0).columns[0]) == 2


@pytest.mark.parametrize("count", [1, 2, 7])
def test_fixed_warm_up(warm: Callable[..., WarmUp], count: int) -> None:
    found = warm(noisy(lambda run: 1e-3), SamplingPlan(warm_up=count))

    assert len(found.columns[0]) == count
    assert found.reason == f"a warm-up of {count} samples was asked for"


def test_number_of_calls_is_chosen_from_the_first_rounds_without_their_slowest() -> None:
    chosen: list[float] = []
    durations = iter([5.0, *[1e-3] * 10_000])

    warm_up(lambda: [next(durations)], chosen.extend, SamplingPlan(warm_up_time_s=1.0), lambda *_: None)

    assert chosen == [1e-3]


@pytest.mark.parametrize(
    ("samples", "expected"),
    [
        ([1.0] * 20, None),
        (list(np.random.default_rng(0).lognormal(0, 0.1, 200)), True),
        (list(np.random.default_rng(0).lognormal(0, 0.1, 200) * np.repeat([2.0, 1.0], [40, 160])), False),
        (list(np.random.default_rng(0).lognormal(0, 0.1, 200) * np.repeat([2.0, 1.0], [160, 40])), False),
        (list(np.random.default_rng(0).lognormal(0, 0.1, 8000)), True),
        (list(np.random.default_rng(0).lognormal(0, 0.1, 8000) * np.repeat([1.1, 1.0], [4500, 3500])), False),
    ],
    ids=["few", "level", "slow start", "late change", "many", "many with a change"],
)
def test_steadiness(samples: list[float], expected: bool | None) -> None:
    steady, reason = steadiness(samples)

    assert steady is expected
    assert reason
