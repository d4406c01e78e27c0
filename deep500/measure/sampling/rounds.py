"""Timing runs: one workload's, and rounds over several in random order."""

from __future__ import annotations

import inspect
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from deep500.core.errors import Deep500Error, MeasurementError
from deep500.core.texts import message_of
from deep500.measure.clock import calibrate_timer, now_ns
from deep500.measure.sampling.plan import SamplingPlan
from deep500.measure.workload import Workload

__all__ = ["Rebuild", "Rounds", "timed_call"]

#: Builds all workloads anew, in the same order, and closes those before.
Rebuild = Callable[[], Sequence[Workload]]


def timed_call(workload: Workload, calls: int, *, check: bool = False) -> int:
    """Return the nanoseconds of so many runs of a workload; its device is idle before and after.

    Args:
        workload: What is run.
        calls: How often.
        check: Whether to look at what the first run returns. It is kept for that until the clock has been read, so
            that giving it back is not part of the time.

    Raises:
        MeasurementError: A run failed, or returned work that is still to be done.
    """
    run = workload.run
    result: Any = None
    # A method call that does nothing would be part of the sample.
    has_device = type(workload).synchronize is not Workload.synchronize
    try:
        if has_device:
            workload.synchronize()
        if check:
            start = now_ns()
            result = run()
        elif calls == 1:
            start = now_ns()
            run()
        else:
            repetitions = itertools.repeat(None, calls)
            start = now_ns()
            for _ in repetitions:
                run()
        if has_device:
            workload.synchronize()
        elapsed_ns = now_ns() - start
        _check_done(workload, result)
        return elapsed_ns
    except Deep500Error:
        raise
    except (Exception, SystemExit) as error:  # a workload that ends the process has failed as well
        name = workload.spec or type(workload).__name__
        raise MeasurementError(f"A run of {name} failed: {type(error).__name__}: {message_of(error)}") from error


def _check_done(workload: Workload, result: Any) -> None:
    """Refuse what only promises to do the work: its time would be that of the promise."""
    if inspect.iscoroutine(result):
        result.close()  # else Python warns that nobody awaited it
    if inspect.isawaitable(result) or inspect.isgenerator(result) or inspect.isasyncgen(result):
        name = workload.spec or type(workload).__name__
        raise MeasurementError(
            f"A run of {name} returned a {type(result).__name__}, whose work is still to be done; accepted are runs "
            "that do theirs, such as list(...) of a generator or asyncio.run(...)."
        )


class Rounds:
    """Times every workload once a round, and adds up the time of the runs.

    Attributes:
        workloads: What is timed.
        calls: Number of runs to a sample of each.
        run_s: Time of all runs.
        rebuild_s: Time of building the workloads anew.
    """

    def __init__(self, workloads: Sequence[Workload], stream: np.random.Generator) -> None:
        """Set what is timed.

        Args:
            workloads: The workloads.
            stream: Draws the order within each round.
        """
        self.workloads = list(workloads)
        self.calls = [1] * len(self.workloads)
        self.run_s = 0.0
        self.rebuild_s = 0.0
        self._stream = stream
        self._is_first = True

    def once(self) -> list[float]:
        """Return the seconds a run of each workload."""
        durations = [0.0] * len(self.workloads)
        order = self._stream.permutation(len(self.workloads)) if len(self.workloads) > 1 else (0,)
        for index in order:
            elapsed_s = timed_call(self.workloads[index], self.calls[index], check=self._is_first) * 1e-9
            self.run_s += elapsed_s
            durations[index] = elapsed_s / self.calls[index]
        self._is_first = False
        return durations

    def restart(self, rebuild: Rebuild) -> float:
        """Go on with workloads that are built anew; return the seconds that it took."""
        watch_ns = now_ns()
        self.workloads.clear()  # so that nothing keeps them, and their memory, while the next are built
        self.workloads.extend(rebuild())
        elapsed_s = (now_ns() - watch_ns) * 1e-9
        self.rebuild_s += elapsed_s
        return elapsed_s

    def choose_calls(self, plan: SamplingPlan, durations: Sequence[float]) -> None:
        """Set how many runs make a sample.

        Reading the clock must not spoil it, and all samples that are allowed must fill the time that is to be sampled:
        10,000 single runs of a microsecond would see but 10 ms of the machine.
        """
        spread_s = plan.minimum_time_s / plan.maximum_samples
        shortest_s = max(calibrate_timer().shortest_sample_s(plan.timer_share), spread_s)
        for index, duration_s in enumerate(durations):
            needed = math.ceil(shortest_s / max(duration_s, 1e-9))
            self.calls[index] = plan.calls_per_sample or max(1, needed)
