from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from deep500.measure.sampling.plan import SamplingPlan
from deep500.measure.sampling.sampler import Samples, sample
from deep500.measure.workload import Workload
from tests.unit.measure.sampling.support import Clock, Timed


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    clock.install(monkeypatch)
    return clock


def sampled(
    clock: Clock, make: Callable[[int], list[Workload]], plan: SamplingPlan, build_s: float = 1e-3
) -> tuple[Samples, int]:
    """Sample workloads of which a function makes the n-th build."""
    count = 0

    def rebuild() -> list[Workload]:
        nonlocal count
        count += 1
        clock.moment_ns += round(build_s * 1e9)
        return make(count)

    return sample(make(0), plan, np.random.default_rng(0), rebuild=rebuild), count


def level(clock: Clock, cost_s: float = 1e-3) -> Callable[[int], list[Workload]]:
    """Each build takes 1 % more than the one before."""
    return lambda build: [Timed(clock, cost_s * (1 + 0.01 * build))]


PLAN = SamplingPlan(minimum_time_s=0.4, warm_up=2)


def test_cheap_workloads_are_built_anew_within_the_minimum_time(clock: Clock) -> None:
    found, builds = sampled(clock, level(clock), PLAN)

    assert builds >= 20  # where a place costs 8 %, fewer would leave the ratio of a launch uncertain by 3 %
    assert len({round(value, 7) for value in found.series[0].samples}) == builds + 1
    assert found.stop_reason.endswith(f"; built {builds + 1} times")
    # The first rounds of each build do not count, and the time of building is not the engine's.
    assert len(found.series[0].warm_up) == 2 + 2 * builds
    assert found.engine_s == pytest.approx(0.0, abs=1e-9)


def test_builds_that_differ_in_level_are_no_drift(clock: Clock) -> None:
    noise = iter(np.random.default_rng(1).lognormal(0, 0.001, 100_000))

    def make(build: int) -> list[Workload]:
        return [Timed(clock, lambda run: 1e-3 * (1 + 0.05 * build) * next(noise))]

    found, builds = sampled(clock, make, PLAN)

    assert builds >= 3
    assert found.series[0].steady is True


def test_costly_build_is_not_repeated(clock: Clock) -> None:
    assert sampled(clock, level(clock), PLAN, build_s=0.5)[1] == 1


def test_first_run_that_compiles_is_not_repeated(clock: Clock) -> None:
    def make(build: int) -> list[Workload]:
        return [Timed(clock, lambda run: 1e-3 if run else 0.2)]

    assert sampled(clock, make, PLAN)[1] == 0


@pytest.mark.parametrize(("builds", "least", "most"), [(1, 0, 0), (2, 1, 2), (8, 6, 9)])
def test_number_of_builds_may_be_asked_for(clock: Clock, builds: int, least: int, most: int) -> None:
    plan = SamplingPlan(minimum_time_s=0.4, warm_up=2, builds=builds)

    assert least <= sampled(clock, level(clock), plan)[1] <= most


def test_session_is_long_against_its_build(clock: Clock) -> None:
    plan = SamplingPlan(minimum_time_s=0.4, warm_up=2, builds=100)

    assert sampled(clock, level(clock), plan, build_s=0.05)[1] <= 3


def test_workloads_are_those_of_the_last_build(clock: Clock) -> None:
    made: list[Any] = []

    def make(build: int) -> list[Workload]:
        made.append(Timed(clock, 1e-3, f"build {build}"))
        return [made[-1]]

    found, _ = sampled(clock, make, PLAN)

    assert found.workloads == [made[-1]]


def test_nothing_is_built_anew_without_a_way_to(clock: Clock) -> None:
    found = sample([Timed(clock, 1e-3)], PLAN)

    assert "built" not in found.stop_reason
    assert len(found.series[0].warm_up) == 2
