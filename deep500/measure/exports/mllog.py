"""MLPerf's log lines."""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from deep500.measure.metric import Direction
from deep500.measure.results.document import Measurement, System
from deep500.measure.results.summary import summarise
from deep500.measure.workload import Score

__all__ = ["mllog"]

#: What every line starts with.
_TOKEN = ":::MLLOG"

#: The file that the lines say they come from.
_FILE = "deep500/measure/exports/mllog.py"

_START, _END, _POINT = "INTERVAL_START", "INTERVAL_END", "POINT_IN_TIME"


def mllog(measurement: Measurement) -> str:
    """MLPerf's ``:::MLLOG`` lines, for the parsers of MLPerf Training.

    Each system opens with ``submission_benchmark``, ``seed`` and, where it is known, ``global_batch_size``. Each
    process launch gives ``init_start``, ``init_stop``, ``run_start`` and ``run_stop``, with the value of each metric,
    its median or other quantile, as ``tracked_stats`` before its end. The scores follow: where more is better as
    ``eval_accuracy``, errors as ``tracked_stats``, those in percent as fractions; the metadata name the metric. The
    metadata of each line name the system.

    These are no submission: the rules of a benchmark ask for more lines than a measurement knows.

    Source: https://github.com/mlcommons/logging, ``mlperf_logging/mllog``, version 4.1.

    Raises:
        MeasurementError: There are too few samples for the quantile.
    """
    events = [
        event
        for system in measurement.systems
        for event in (*_opening(measurement, system), *_runs(measurement, system))
    ]
    ordered = sorted(events, key=lambda event: event.time_ms)  # stable: what happens at once stays in this order
    return "".join(f"{_TOKEN} {json.dumps(event.content())}\n" for event in ordered)


@dataclass(frozen=True)
class _Event:
    """One line."""

    time_ms: int
    event_type: str
    key: str
    value: Any
    system: str
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def content(self) -> dict[str, Any]:
        """Return the object of the line, with MLPerf's keys in MLPerf's order."""
        place = {"file": _FILE, "lineno": mllog.__code__.co_firstlineno}
        return {
            "namespace": "",
            "time_ms": self.time_ms,
            "event_type": self.event_type,
            "key": self.key,
            "value": self.value,
            "metadata": {**place, "system": self.system, **self.metadata},
        }


def _opening(measurement: Measurement, system: System) -> Iterator[_Event]:
    start_ms = _milliseconds(measurement.started)
    values: dict[str, Any] = {
        "submission_benchmark": system.spec,
        "seed": measurement.design.seed,
        "global_batch_size": _batch_size(system),
    }
    for key, value in values.items():
        if value is not None:
            yield _Event(start_ms, _POINT, key, value, system.label)


def _runs(measurement: Measurement, system: System) -> Iterator[_Event]:
    metrics = [(metric, summarise(metric, measurement.design.statistic)) for metric in system.metrics]
    used = list(dict.fromkeys(launch.process for metric in system.metrics for launch in metric.launches))
    stop_ms = 0
    for number, index in enumerate(used, 1):
        process = measurement.processes[index]
        start_ms = _milliseconds(process.started)
        run_ms = start_ms + round(process.setup_s * 1e3)
        stop_ms = run_ms + round((process.run_s + process.engine_s) * 1e3)
        where = {"launch": number}
        yield _Event(start_ms, _START, "init_start", None, system.label, where)
        yield _Event(run_ms, _END, "init_stop", None, system.label, where)
        yield _Event(run_ms, _START, "run_start", None, system.label, where)
        for metric, summary in metrics:
            for launch, value in zip(metric.launches, summary.launch_values):
                if launch.process == index:
                    details = {**where, "unit": metric.unit, "samples": len(launch.samples)}
                    yield _Event(stop_ms, _POINT, "tracked_stats", {metric.name: value}, system.label, details)
        if index == used[-1]:
            for score in system.scores:
                yield _score(score, system, stop_ms)
        yield _Event(stop_ms, _END, "run_stop", None, system.label, {**where, "status": "success"})


def _score(score: Score, system: System, time_ms: int) -> _Event:
    is_percent = score.unit == "%"
    value = score.value / 100 if is_percent else score.value
    metadata = {"metric": score.name, "unit": "" if is_percent else score.unit}
    if score.direction is Direction.LOWER:  # an error or a loss is no accuracy
        return _Event(time_ms, _POINT, "tracked_stats", {score.name: value}, system.label, metadata)
    return _Event(time_ms, _POINT, "eval_accuracy", value, system.label, metadata)


def _batch_size(system: System) -> int | None:
    options = system.identity.get("options")
    for source in (system.identity, system.factors, options if isinstance(options, Mapping) else {}):
        value = source.get("batch_size")
        if isinstance(value, int) and not isinstance(value, bool):
            return value
    return None


def _milliseconds(moment: str) -> int:
    """Return milliseconds since 1970; the time is UTC, and digits beyond the microsecond are cut."""
    text, _, fraction = moment.removesuffix("+00:00").partition(".")
    seconds = datetime.datetime.fromisoformat(text).replace(tzinfo=datetime.timezone.utc).timestamp()
    return round(seconds) * 1000 + int((fraction + "000")[:3])
