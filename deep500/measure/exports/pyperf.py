"""JSON of pyperf."""

from __future__ import annotations

import json
from typing import Any

from deep500.core.errors import MeasurementError
from deep500.core.texts import escaped
from deep500.measure.exports._environment import environment_number, environment_text
from deep500.measure.results.document import LaunchSamples, Measurement, MetricSamples, System
from deep500.measure.results.summary import summarise

__all__ = ["pyperf"]

#: Version of the format; pyperf reads it since its own version 1.0.
_VERSION = "1.0"

#: pyperf's names of the units that it knows.
_UNITS = {"s": "second", "B": "byte"}


def pyperf(measurement: Measurement) -> str:
    """JSON of pyperf, for ``pyperf show``, ``stats``, ``hist`` and ``compare_to``.

    A system is a benchmark of its label, and with several metrics one for each. pyperf pools the values of all runs, so
    a run (a process launch) has one value, its median or other quantile: pyperf's median is then that of Deep500. With
    one launch the run has all its samples. Samples of warm-up become warm-ups, and runs to a sample become loops.
    Metrics in other units than seconds and bytes, which pyperf does not know, are left out.

    Source: pyperf 2.11, ``pyperf/_bench.py``, for the format.

    Raises:
        MeasurementError: No metric is in seconds or bytes, a value is not positive, or there are too few samples for
            the quantile.
    """
    benchmarks = [
        _benchmark(measurement, system, metric)
        for system in measurement.systems
        for metric in system.metrics
        if metric.unit in _UNITS
    ]
    if not benchmarks:
        units = sorted({repr(metric.unit) for system in measurement.systems for metric in system.metrics})
        raise MeasurementError(
            f"pyperf knows metrics in seconds and bytes; those of this measurement are in {', '.join(units)}. Export "
            "it to another format."
        )
    return json.dumps({"version": _VERSION, "metadata": _machine(measurement), "benchmarks": benchmarks}) + "\n"


def _benchmark(measurement: Measurement, system: System, metric: MetricSamples) -> dict[str, Any]:
    statistic = measurement.design.statistic
    values = summarise(metric, statistic).launch_values
    name = system.label if len(system.metrics) == 1 else f"{system.label} {metric.name}"
    metadata = {
        "name": name,
        "unit": _UNITS[metric.unit],
        "description": f"{metric.name} of {system.spec}",
        "deep500_statistic": f"{statistic.quantile:.6g} quantile of each launch",
        "deep500_configuration": system.configuration_hash,
        **{f"deep500_factor_{key}": value for key, value in system.factors.items()},
    }
    is_single = len(metric.launches) == 1
    runs = [
        _run(measurement, metric, launch, launch.samples if is_single else (value,))
        for launch, value in zip(metric.launches, values)
    ]
    return {"metadata": _accepted(metadata), "runs": runs}


def _run(
    measurement: Measurement, metric: MetricSamples, launch: LaunchSamples, values: tuple[float, ...]
) -> dict[str, Any]:
    if min(values) <= 0 or min(launch.warm_up, default=0) < 0:
        raise MeasurementError(
            f"{escaped(metric.name)} has a value of {min(*values, *launch.warm_up):.6g}; pyperf takes positive ones "
            "only. Let one run do more."
        )
    loops = launch.calls_per_sample
    process = measurement.processes[launch.process]
    total = sum(launch.samples) + sum(launch.warm_up)
    metadata = {
        "loops": loops,
        "date": process.started.replace("T", " "),
        "duration": total * loops if metric.unit == "s" else process.run_s,
        "deep500_samples": len(launch.samples),
    }
    run: dict[str, Any] = {"metadata": metadata, "values": list(values)}
    if launch.warm_up:
        run["warmups"] = [[loops, value] for value in launch.warm_up]
    return run


def _machine(measurement: Measurement) -> dict[str, str | float]:
    """Return what is known of the machine, under pyperf's names."""
    system, kernel = (environment_text(measurement, f"host.{key}") for key in ("operating_system", "kernel"))
    implementation = environment_text(measurement, "interpreter.implementation")
    return _accepted(
        {
            "hostname": environment_text(measurement, "host.hostname_hash"),
            "platform": ", ".join(filter(None, (system, kernel))),
            "cpu_model_name": environment_text(measurement, "cpu.model"),
            "cpu_count": environment_number(measurement, "cpu.threads"),
            "cpu_affinity": environment_text(measurement, "process.affinity"),
            "load_avg_1min": environment_number(measurement, "load.average_1min"),
            "python_version": environment_text(measurement, "interpreter.version"),
            "python_implementation": None if implementation is None else implementation.lower(),
            "python_compiler": environment_text(measurement, "interpreter.compiler"),
            "timer": environment_text(measurement, "clock.implementation"),
            "deep500_version": measurement.deep500,
        }
    )


def _accepted(metadata: dict[str, Any]) -> dict[str, str | float]:
    """Return the entries that pyperf accepts: no empty texts, and none with a line break."""
    texts = {key: escaped(value).strip() if isinstance(value, str) else value for key, value in metadata.items()}
    return {escaped(key): value for key, value in texts.items() if value is not None and value != ""}
