"""The last step of a check: how long calls take, in fresh processes, beside a function of the framework's own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deep500.core.errors import Deep500Error
from deep500.core.quantities import scaled, significant
from deep500.core.tensor_descriptor import TensorDescriptor
from deep500.core.texts import message_of
from deep500.measure.results.comparing import compare
from deep500.measure.results.document import Measurement
from deep500.measure.results.report import ComparisonRow
from deep500.measure.results.summary import Basis, Summary, summarise
from deep500.measure.sampling import SamplingPlan, bench
from deep500.measure.sampling.progress import OnProgress
from deep500.workloads._operator_check.spec import custom_text

__all__ = ["PLAN", "CallTime", "measure_calls"]

#: Shorter than that of ``deep500 bench``: many calls are measured, and most of the time goes into starting frameworks.
PLAN = SamplingPlan(minimum_time_s=0.1, time_limit_s=2.0, warm_up_time_s=0.5)


@dataclass(frozen=True)
class CallTime:
    """How long a call of an operator takes in a framework.

    Attributes:
        framework: The framework.
        size: ``"small"`` or ``"large"``.
        inputs: What the inputs are like.
        time: Seconds a call.
        function: What it was compared with; empty for nothing.
        function_time: Seconds a call of that.
        comparison: The operator against that function.
        failure: Why there is no time; empty where there is one.
    """

    framework: str
    size: str
    inputs: str = ""
    time: Summary | None = None
    function: str = ""
    function_time: Summary | None = None
    comparison: ComparisonRow | None = None
    failure: str = ""

    def __str__(self) -> str:
        """Return it in one line."""
        if self.time is None:
            return self.failure
        text = f"{self.inputs}: {_with_interval(self.time)}"
        if self.comparison is None or self.function_time is None:
            return text
        interval = self.comparison.interval
        between = "" if interval is None else f" ({significant(interval.low)} .. {significant(interval.high)})"
        return (
            f"{text}; {self.function}: {_with_interval(self.function_time)}; ratio "
            f"{significant(self.comparison.ratio)}{between}, {self.comparison.verdict.value}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return it for JSON."""
        found: dict[str, Any] = {"framework": self.framework, "size": self.size, "inputs": self.inputs}
        found |= {"time_s": _plain(self.time), "failure": self.failure}
        if self.comparison is not None:
            interval = self.comparison.interval
            found |= {
                "function": self.function,
                "function_time_s": _plain(self.function_time),
                "ratio": self.comparison.ratio,
                "ratio_interval": None if interval is None else [interval.low, interval.high],
                "verdict": self.comparison.verdict.value,
            }
        return found


def measure_calls(
    path: str | Path,
    name: str,
    attributes: Mapping[str, Any],
    framework: str,
    size: str,
    *,
    device: str | None = None,
    inputs: Sequence[TensorDescriptor] | None = None,
    function: str | None = None,
    against: str | None = None,
    launches: int = 6,
    seed: int = 0,
    on_progress: OnProgress | None = None,
) -> CallTime:
    """Measure calls of an operator; where something fails, the result says what.

    Args:
        path: The file that it is in.
        name: Its name there.
        attributes: Values of its attributes.
        framework: Who runs it.
        size: ``"small"`` or ``"large"`` inputs.
        device: Where.
        inputs: What its inputs are like; by default the operator's examples.
        function: Name of the framework's own function that is measured beside it, ``None`` for none.
        against: How the workload finds this function: ``"own"``, or ``package.module:function``.
        launches: Number of fresh processes; an interval needs 6.
        seed: Seed of the values.
        on_progress: Is told how far it is.
    """
    place: dict[str, Any] = {"framework": framework, "device": device, "inputs": inputs}
    options: dict[str, Any] = {"size": None if inputs is not None else size, "seed": seed or None}
    base = [] if function is None else [custom_text(path, name, attributes, **place, **options, against=against)]
    texts = [*base, custom_text(path, name, attributes, **place, **options)]
    labels = [function, name] if function is not None and function != name else None
    try:
        found = bench(
            *texts, launches=launches, plan=PLAN, labels=labels, measure_peak=False, on_progress=on_progress, seed=seed
        )
        return _told(found, framework, size, function)
    except Deep500Error as error:
        return CallTime(framework, size, failure=message_of(error))


def _told(found: Measurement, framework: str, size: str, function: str | None) -> CallTime:
    statistic = found.design.statistic
    own = found.systems[-1]
    inputs = ", ".join(own.identity["inputs"])
    time = summarise(own.metric(), statistic)
    if function is None:
        return CallTime(framework, size, inputs, time)
    report = compare([(found, system) for system in found.systems])
    return CallTime(framework, size, inputs, time, function, report.base.absolute, report.rows[0])


def _with_interval(summary: Summary) -> str:
    doubt = "" if summary.converged is not False else ", not converged"
    if summary.interval is None:
        return scaled(summary.unit, summary.estimate)[0] + doubt
    value, low, high = scaled(summary.unit, summary.estimate, summary.interval.low, summary.interval.high)
    where = " in one process" if summary.basis is Basis.IN_PROCESS else ""
    return f"{value} ({low} .. {high}{where}){doubt}"


def _plain(summary: Summary | None) -> dict[str, Any] | None:
    if summary is None:
        return None
    interval = summary.interval
    return {
        "estimate": summary.estimate,
        "interval": None if interval is None else [interval.low, interval.high],
        "launches": summary.launches,
        "samples": summary.samples,
        "basis": summary.basis.value,
    }
