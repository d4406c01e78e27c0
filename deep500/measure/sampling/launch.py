"""One launch: the workloads built, measured and described, in whichever process this is called."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import gc
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from deep500.core.errors import MeasurementError
from deep500.core.random import random_stream
from deep500.measure.clock import Stopwatch
from deep500.measure.environment.noise import take_witness
from deep500.measure.environment.record import record_environment
from deep500.measure.metric import Direction, MetricKind
from deep500.measure.results.document import LaunchSamples, MetricSamples, ProcessRecord, System
from deep500.measure.sampling.builds import Builds
from deep500.measure.sampling.description import describe_workload
from deep500.measure.sampling.plan import SamplingPlan
from deep500.measure.sampling.sampler import Samples, sample
from deep500.measure.sampling.sessions import Series, Tell
from deep500.measure.workload import Score, Workload

__all__ = ["Launch", "joined", "run_launch"]


@dataclass(frozen=True)
class Launch:
    """What one process measured.

    Attributes:
        systems: One for each workload; their samples refer to process 0.
        process: The process.
        environment: The environment record; empty when none was asked for.
    """

    systems: tuple[System, ...]
    process: ProcessRecord
    environment: Mapping[str, Any] = field(default_factory=dict)


def run_launch(
    openers: Sequence[Callable[[], Workload]],
    plan: SamplingPlan,
    *,
    seed: int = 0,
    number: int = 0,
    fresh: bool,
    environment: bool,
    tell: Tell | None = None,
) -> Launch:
    """Build workloads, measure them side by side and, in a fresh process, close them.

    Args:
        openers: Each builds one workload.
        plan: How to sample.
        seed: Seed of the random order.
        number: Number of the launch; each draws another order.
        fresh: Whether this process was started for it.
        environment: Whether to take the environment record, after the samples: it tells which libraries are loaded.
        tell: Is told how far it is.

    Raises:
        Deep500Error: A workload cannot be built, or a run failed.
    """
    started = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="milliseconds")
    stream = random_stream(seed, "order", number)
    builds = Builds(openers, stream)
    memory: list[MetricSamples] = []

    def rebuild() -> list[Workload]:
        if not memory and len(openers) == 1:
            memory.extend(_peak_memory())  # of one build; what the next one adds is of no user's process
        return builds.build()

    # The caller's own objects are neither closed nor built anew.
    with builds.closing() if fresh else contextlib.nullcontext():
        workloads = builds.build()
        if fresh:
            gc.collect()
            gc.freeze()  # what the libraries have built is not looked at again by each collection
        witness = take_witness()
        samples = sample(workloads, plan, stream, tell, rebuild if fresh else None)
        noise = take_witness().since(witness)
        if fresh and not memory and len(openers) == 1:
            memory.extend(_peak_memory())
        watch = Stopwatch()
        systems = tuple(
            _described(workload, series, samples, memory)
            for workload, series in zip(samples.workloads, samples.series, strict=True)
        )
        description_s = watch.elapsed_s()
        record = record_environment().to_dict() if environment else {}
    process = ProcessRecord(
        started, fresh, builds.setup_s, samples.run_s, samples.engine_s, noise.to_dict(), description_s
    )
    return Launch(systems, process, record)


def _peak_memory() -> tuple[MetricSamples, ...]:
    """Return the most memory that this process has held; nothing where the system does not tell.

    It is the mark of this process alone: that of ``getrusage`` would begin with the parent's.
    """
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
    except OSError:
        return ()
    marks = re.findall(r"^VmHWM:\s+(\d+) kB$", status, re.MULTILINE)
    launches = tuple(LaunchSamples(0, (float(mark) * 1024,)) for mark in marks)
    return (MetricSamples("PeakMemory", "B", MetricKind.COST, Direction.LOWER, launches),) if launches else ()


def _described(workload: Workload, series: Series, samples: Samples, more: Sequence[MetricSamples]) -> System:
    """Ask a workload, after its runs, what it was."""
    launch = LaunchSamples(
        process=0,
        samples=tuple(series.samples),
        warm_up=tuple(series.warm_up),
        calls_per_sample=series.calls_per_sample,
        converged=samples.converged,
        stop_reason=samples.stop_reason,
        steady=series.steady,
        steady_reason=series.steady_reason,
    )
    time = MetricSamples("WallclockTime", "s", MetricKind.COST, Direction.LOWER, (launch,))
    name = workload.spec or f"{type(workload).__module__}:{type(workload).__qualname__}"
    description = describe_workload(workload, name)
    return System(label=name, spec=name, metrics=(time, *more), **description)


def joined(systems: Sequence[System], processes: Sequence[int]) -> System:
    """Return one system with the launches of several, each of the process of that index.

    Of a score that differs between launches, the worst stands for all.

    Raises:
        MeasurementError: The launches did not measure the same.
    """
    first = systems[0]
    for number, system in enumerate(systems[1:], 2):
        for what in ("workload_hash", "data_hash", "initialisation_hash", "work", "factors"):
            if getattr(system, what) != getattr(first, what):
                raise MeasurementError(
                    f"Launch {number} of {first.label} did not measure what the first did: its "
                    f"{what.replace('_', ' ')} is {getattr(system, what)}, that of the first {getattr(first, what)}. A "
                    "workload has to be the same in every process; give its random choices a fixed seed."
                )
    metrics = []
    for index, metric in enumerate(first.metrics):
        launches = tuple(
            dataclasses.replace(launch, process=process)
            for system, process in zip(systems, processes, strict=True)
            for launch in system.metrics[index].launches
        )
        metrics.append(dataclasses.replace(metric, launches=launches))
    return dataclasses.replace(first, metrics=tuple(metrics), scores=_worst(systems))


def _worst(systems: Sequence[System]) -> tuple[Score, ...]:
    tables = [system.scores for system in systems]
    if len({tuple(score.name for score in scores) for scores in tables}) > 1:
        raise MeasurementError(f"The launches of {systems[0].label} have different scores; they have to be the same.")
    return tuple(
        (max if scores[0].direction is Direction.LOWER else min)(scores, key=lambda score: score.value)
        for scores in zip(*tables)
    )
