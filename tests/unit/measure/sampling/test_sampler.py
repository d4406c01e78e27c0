from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import numpy as np
import pytest

from deep500.core.errors import DatasetError, MeasurementError
from deep500.measure.clock import TimerCalibration
from deep500.measure.sampling import rounds
from deep500.measure.sampling.plan import SamplingPlan
from deep500.measure.sampling.rounds import timed_call
from deep500.measure.sampling.sampler import sample
from deep500.measure.workload import Workload
from tests.unit.measure.sampling.support import Clock, Timed, drawn

NO_WAIT = SamplingPlan(minimum_time_s=0.0, warm_up=1)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    clock.install(monkeypatch)
    return clock


def test_samples_are_the_seconds_of_single_runs(clock: Clock) -> None:
    found = sample([Timed(clock, lambda run: 1e-3 if run else 5e-3)], NO_WAIT)

    assert found.series[0].warm_up == [5e-3]
    assert found.series[0].samples == [1e-3] * 10
    assert found.series[0].calls_per_sample == 1
    assert found.converged is True
    assert found.run_s == pytest.approx(15e-3)
    assert found.engine_s == pytest.approx(0.0, abs=1e-12)


def test_time_between_samples_is_the_engines(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(reading_ns=1000)
    clock.install(monkeypatch)

    found = sample([Timed(clock, 1e-3)], NO_WAIT)

    # Two readings a run, of which one lies within the run's duration; the others are the engine's.
    assert found.run_s == pytest.approx(11 * 1.001e-3)
    assert found.engine_s * 1e9 == pytest.approx(clock.moment_ns - found.run_s * 1e9, abs=2000)


def test_sampling_goes_on_until_the_interval_is_narrow(clock: Clock) -> None:
    draws = iter(np.random.default_rng(3).lognormal(0, 0.5, 20_000) * 1e-3)

    found = sample([Timed(clock, drawn(draws))], NO_WAIT)

    values = np.sort(found.series[0].samples)
    assert found.converged is True
    assert len(values) > 200
    assert "at most 5.00%" in found.stop_reason


def test_minimum_time_is_sampled(clock: Clock) -> None:
    found = sample([Timed(clock, 1e-3)], SamplingPlan(minimum_time_s=0.2, warm_up=1))

    assert sum(found.series[0].samples) >= 0.2


def test_short_runs_are_batched_until_the_timer_does_not_matter(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rounds, "calibrate_timer", lambda: TimerCalibration(50e-9, 100e-9))
    workload = Timed(clock, 20e-9)

    found = sample([workload], SamplingPlan(minimum_time_s=0.0, warm_up=2))

    assert found.series[0].calls_per_sample == 100  # 2 us, of which 100 ns are 5 %
    assert found.series[0].samples == [pytest.approx(20e-9)] * 10
    assert workload.runs == 1 + 100 + 10 * 100


def test_batches_spread_the_samples_over_the_minimum_time(clock: Clock) -> None:
    found = sample([Timed(clock, 1e-6)], SamplingPlan(minimum_time_s=0.5, maximum_samples=1000))

    assert found.series[0].calls_per_sample == 500
    assert sum(found.series[0].samples) * 500 >= 0.49


def test_time_limit_is_told(clock: Clock) -> None:
    found = sample([Timed(clock, 3.0)], SamplingPlan(time_limit_s=10.0))

    assert len(found.series[0].samples) == 4
    assert found.converged is False
    assert "time is up with 4 of at least 10 samples" in found.stop_reason


def test_maximum_is_told(clock: Clock) -> None:
    draws = itertools.cycle([1e-3, 2e-3])

    found = sample([Timed(clock, drawn(draws))], SamplingPlan(minimum_time_s=0.0, maximum_samples=30, warm_up=2))

    assert len(found.series[0].samples) == 30
    assert found.converged is False
    assert "no more samples are allowed" in found.stop_reason


def test_several_workloads_run_round_by_round_in_random_order(clock: Clock) -> None:
    order: list[str] = []

    class Noting(Timed):
        def run(self) -> None:
            order.append(self.spec)
            super().run()

    found = sample([Noting(clock, 1e-3, "a"), Noting(clock, 2e-3, "b")], SamplingPlan(minimum_time_s=0.3, warm_up=0))

    rounds = list(zip(order[::2], order[1::2]))
    assert all(set(pair) == {"a", "b"} for pair in rounds)
    assert 0.3 < sum(pair[0] == "a" for pair in rounds) / len(rounds) < 0.7
    assert len(found.series[0].samples) == len(found.series[1].samples)
    assert set(found.series[0].samples) == {1e-3}
    assert set(found.series[1].samples) == {2e-3}


def test_order_is_that_of_the_stream(clock: Clock) -> None:
    def order(seed: int) -> list[str]:
        noted: list[str] = []

        class Noting(Timed):
            def run(self) -> None:
                noted.append(self.spec)
                super().run()

        sample([Noting(clock, 1e-3, "a"), Noting(clock, 1e-3, "b")], NO_WAIT, np.random.default_rng(seed))
        return noted

    assert order(1) == order(1)
    assert order(1) != order(2)


def test_ratio_has_to_be_narrow_too(clock: Clock) -> None:
    drift = np.random.default_rng(0)

    def noise() -> Iterator[float]:
        while True:
            yield 1e-3 * drift.lognormal(0, 0.1)

    alone = sample([Timed(clock, drawn(noise()))], NO_WAIT)
    both = sample([Timed(clock, drawn(noise())), Timed(clock, drawn(noise()))], NO_WAIT)

    assert len(both.series[0].samples) > 4 * len(alone.series[0].samples)
    assert both.converged is True


def test_run_that_fails_is_told_with_its_name(clock: Clock) -> None:
    class Failing(Timed):
        def run(self) -> None:
            raise ValueError("no\nluck")

    with pytest.raises(MeasurementError, match=r"A run of failing failed: ValueError: no luck") as caught:
        sample([Failing(clock, 1.0, "failing")])
    assert isinstance(caught.value.__cause__, ValueError)


def test_own_error_and_interruption_go_through(clock: Clock) -> None:
    class Failing(Timed):
        error: BaseException = KeyboardInterrupt()

        def run(self) -> None:
            raise self.error

    with pytest.raises(KeyboardInterrupt):
        sample([Failing(clock, 1.0)])
    Failing.error = DatasetError("gone")
    with pytest.raises(DatasetError, match=r"^gone$"):
        sample([Failing(clock, 1.0)])


@pytest.mark.parametrize(("limit", "warm_up", "samples"), [(1, 0, 1), (2, 1, 1), (60, 1, 59)])
def test_workload_may_limit_its_runs(clock: Clock, limit: int, warm_up: int, samples: int) -> None:
    class Limited(Timed):
        runs_per_launch = limit

    workload = Limited(clock, 1.0)

    found = sample([workload])

    assert workload.runs == limit
    assert (len(found.series[0].warm_up), len(found.series[0].samples)) == (warm_up, samples)
    assert found.converged is None


def test_device_is_idle_at_both_readings(clock: Clock) -> None:
    events: list[str] = []

    class Asynchronous(Workload):
        def run(self) -> None:
            events.append("run")

        def synchronize(self) -> None:
            if events and events[-1] == "run":  # the device finishes what was asked of it
                clock.moment_ns += 5_000_000
            events.append("wait")

    assert timed_call(Asynchronous(), 3) == 5_000_000
    assert events == ["wait", "run", "run", "run", "wait"]


def test_look_is_told(clock: Clock) -> None:
    told: list[tuple[str, int, str]] = []

    sample([Timed(clock, 1e-3)], SamplingPlan(minimum_time_s=0.02), tell=lambda *what: told.append(what))

    assert told[0][:2] == ("warm-up", 103)
    assert [size for phase, size, _ in told if phase == "sampling"] == [10, 13, 17, 22]


async def _coroutine() -> int:
    return 1


def _generator() -> Iterator[int]:
    yield 1


async def _asynchronous_generator() -> AsyncIterator[int]:
    yield 1


@pytest.mark.parametrize("promise", [_coroutine, _generator, _asynchronous_generator])
def test_promise_to_do_the_work_is_not_timed(clock: Clock, promise: Callable[[], Any]) -> None:
    class Promising(Timed):
        def run(self) -> Any:
            return promise()

    with pytest.raises(MeasurementError, match="whose work is still to be done"):
        sample([Promising(clock, 1.0)])


@pytest.mark.parametrize("limit", [0, -3, "3", True, 1.5])
def test_limit_of_runs_is_checked(clock: Clock, limit: Any) -> None:
    class Limited(Timed):
        runs_per_launch = limit

    with pytest.raises(MeasurementError, match="runs_per_launch of timed is"):
        sample([Limited(clock, 1.0)])


def test_workloads_of_different_limits_cannot_run_side_by_side(clock: Clock) -> None:
    class Limited(Timed):
        runs_per_launch = 1

    with pytest.raises(MeasurementError, match="as many as wanted, 1"):
        sample([Timed(clock, 1.0), Limited(clock, 1.0)])
