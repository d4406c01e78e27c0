"""Measuring workloads: launches, the order of their runs, and the result."""

from __future__ import annotations

import datetime
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from deep500._version import __version__
from deep500.core.random import check_seed, random_stream
from deep500.measure.environment.record import record_environment
from deep500.measure.results.compatibility import check_comparable
from deep500.measure.results.document import Design, Measurement, Pairing, ProcessRecord, Statistic, System
from deep500.measure.sampling.checks import (
    checked_labels,
    checked_launches,
    checked_margin,
    checked_pairing,
    checked_places,
    checked_plan,
    workload_text,
)
from deep500.measure.sampling.launch import Launch, joined, run_launch
from deep500.measure.sampling.peaks import peaks_of
from deep500.measure.sampling.plan import SamplingPlan
from deep500.measure.sampling.processes import launch_process
from deep500.measure.sampling.progress import OnProgress, Progress
from deep500.measure.workload import Workload, parse_workload

__all__ = ["bench"]


def bench(
    *workloads: str | Workload | Callable[[], Any],
    launches: int | None = None,
    plan: SamplingPlan | None = None,
    pairing: Pairing | None = None,
    seed: int = 0,
    margin: float | None = None,
    statistic: Statistic | None = None,
    labels: Sequence[str] | None = None,
    strict: bool = False,
    measure_peak: bool = False,
    justification: str | None = None,
    on_progress: OnProgress | None = None,
    on_launch: Callable[[Measurement], None] | None = None,
) -> Measurement:
    """Measure how long one or several workloads take.

    Texts are measured in fresh processes, ten by default, for samples of one process share memory layout, clock and
    neighbours; objects (a :class:`Workload`, a function) in this process, and the result says so. Of several workloads
    the first is the base; by default they run round by round in the same processes, in random order, and those of
    different frameworks, whose threads would disturb each other, launch by launch.

    Args:
        workloads: What to measure; see :func:`deep500.measure.workload.parse_workload` for texts.
        launches: Number of process launches.
        plan: How to sample within a process.
        pairing: ``"samples"`` to run several round by round, ``"launches"`` to give each processes of its own.
        seed: Seed of the random orders.
        margin: Relative difference that is declared not to matter, for the comparison.
        statistic: Which number stands for the samples.
        labels: Names of the workloads in the result; by default their texts.
        strict: Whether to refuse a machine that fails an isolation check (``IsolationError``).
        measure_peak: Whether to measure what this CPU reaches, to compare counted operations with (SC15, rule 11).
        justification: Why just these workloads and this machine, for the result (SC15, rule 2).
        on_progress: Is told how far it is.
        on_launch: Is given the incomplete result after each launch, so that an interruption loses nothing.

    Raises:
        Deep500Error: A workload does not exist, cannot be built or run, or the arguments contradict each other.

    """
    specs = [parse_workload(workload) if isinstance(workload, str) else None for workload in workloads]
    is_fresh = checked_places(workloads, specs)
    statistic = Statistic() if statistic is None else statistic
    plan = checked_plan(SamplingPlan() if plan is None else plan, statistic, is_fresh)
    design = Design(
        workloads=tuple(map(workload_text, workloads)),
        launches=checked_launches(launches, workloads, is_fresh),
        pairing=checked_pairing(pairing, specs, is_fresh),
        seed=check_seed(seed),
        statistic=statistic,
        margin=checked_margin(margin),
        plan=plan.to_dict(),
        justification=justification,
    )
    run = _Run(design, checked_labels(labels, workloads), plan, workloads, on_progress or (lambda progress: None))
    if strict:
        record_environment(strict=True)
    return run.all(is_fresh, measure_peak, on_launch or (lambda measurement: None))


@dataclass
class _Run:
    """The launches so far."""

    design: Design
    labels: Sequence[str]
    plan: SamplingPlan
    workloads: Sequence[str | Workload | Callable[[], Any]]
    on_progress: OnProgress

    def __post_init__(self) -> None:
        self.processes: list[ProcessRecord] = []
        self.environment: Any = {}
        self._started = _now()
        self._found: list[list[tuple[int, System]]] = [[] for _ in self.workloads]

    def all(self, is_fresh: bool, measure_peak: bool, on_launch: Callable[[Measurement], None]) -> Measurement:
        """Run all launches, and tell the result after each."""
        for number in range(self.design.launches):
            self.launch(number, is_fresh)
            if measure_peak and not number:
                peaks = peaks_of(self.systems(), self.plan.threads)
                self.environment = {**self.environment, "peaks": peaks}
            result = self.result(number + 1)
            for system in result.systems[1:] if not number else ():  # before more time goes into it
                check_comparable((result, result.systems[0]), (result, system))
            on_launch(result)
        return result

    def result(self, launched: int) -> Measurement:
        """Return the result after so many launches."""
        is_complete = launched == self.design.launches
        return Measurement(
            deep500=__version__,
            started=self._started,
            ended=_now(),
            design=self.design,
            systems=self.systems(),
            processes=tuple(self.processes),
            environment=self.environment,
            complete=is_complete,
            failure=None if is_complete else f"{launched} of {self.design.launches} launches were run",
        )

    def launch(self, number: int, is_fresh: bool) -> None:
        """Run one launch of every workload."""
        for group in self._groups(number):
            self._tell(number, "starting", 0, "")
            tell = functools.partial(self._tell, number)
            measure = self._in_fresh_process if is_fresh else self._in_this_process
            found = measure([self.workloads[index] for index in group], number, tell)
            self.environment = self.environment or found.environment
            for index, system in zip(group, found.systems, strict=True):
                self._found[index].append((len(self.processes), self._named(index, system)))
            self.processes.append(found.process)
        self._tell(number, "done", 0, "")

    def systems(self) -> tuple[System, ...]:
        """Return what was found so far."""
        return tuple(joined([s for _, s in row], [process for process, _ in row]) for row in self._found)

    def _groups(self, number: int) -> Iterator[list[int]]:
        """Return which workloads share a process, process by process."""
        everything = list(range(len(self.workloads)))
        if self.design.pairing != "launches":
            yield everything
            return
        for index in random_stream(self.design.seed, "launches", number).permutation(len(everything)):
            yield [int(index)]

    def _in_fresh_process(self, workloads: Sequence[Any], number: int, tell: Callable[[str, int, str], None]) -> Launch:
        return launch_process(
            workloads,
            self.plan,
            seed=self.design.seed,
            number=number,
            environment=not self.environment,
            tell=tell,
        )

    def _in_this_process(self, workloads: Sequence[Any], number: int, tell: Callable[[str, int, str], None]) -> Launch:
        return run_launch(
            [functools.partial(_opened, workload) for workload in workloads],
            self.plan,
            seed=self.design.seed,
            number=number,
            fresh=False,
            environment=not self.environment,
            tell=tell,
        )

    def _named(self, index: int, system: System) -> System:
        threads = {} if self.plan.threads is None else {"threads": self.plan.threads}
        # What a process has one number of, such as its memory, has no quantile but the median.
        metrics = system.metrics if self.design.statistic.quantile == 0.5 else system.metrics[:1]
        factors = {**system.factors, **threads}
        return replace(system, label=self.labels[index], factors=factors, metrics=metrics)

    def _tell(self, number: int, phase: str, samples: int, detail: str) -> None:
        self.on_progress(Progress(number + 1, self.design.launches, phase, samples, detail))


class _Function(Workload):
    """A function of the caller's own process."""

    def __init__(self, function: Callable[[], Any]) -> None:
        self.run = function  # type: ignore[method-assign]
        self.spec = workload_text(function)

    @property
    def identity(self) -> Mapping[str, Any]:
        """Its name; who measures two functions side by side says that they do the same work."""
        return {"problem": self.spec, "alternatives_allowed": True}

    def run(self) -> Any:
        """Replaced by the function itself, so that no call of ours is part of a sample."""
        raise AssertionError


def _opened(workload: str | Workload | Callable[[], Any]) -> Workload:
    if isinstance(workload, Workload):
        return workload
    assert callable(workload)
    return _Function(workload)


def _now() -> str:
    return datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="milliseconds")
