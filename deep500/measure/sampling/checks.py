"""What a measurement is asked for, checked before anything runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from deep500.core.errors import MeasurementError
from deep500.core.texts import shown
from deep500.measure.results.document import PAIRINGS, Pairing, Statistic
from deep500.measure.results.summary import check_statistic
from deep500.measure.sampling.plan import SamplingPlan
from deep500.measure.statistics.quantiles import samples_needed
from deep500.measure.workload import Workload, WorkloadSpec

__all__ = [
    "DEFAULT_LAUNCHES",
    "checked_labels",
    "checked_launches",
    "checked_margin",
    "checked_pairing",
    "checked_places",
    "checked_plan",
    "workload_text",
]

#: Process launches of a measurement whose workloads are texts.
DEFAULT_LAUNCHES = 10


def workload_text(workload: str | Workload | Callable[[], Any]) -> str:
    """Return what a workload is called."""
    if isinstance(workload, str):
        return workload
    if isinstance(workload, Workload):
        return workload.spec or f"{type(workload).__module__}:{type(workload).__qualname__}"
    return f"{getattr(workload, '__module__', '?')}:{getattr(workload, '__qualname__', repr(workload))}"


def checked_places(workloads: Sequence[Any], specs: Sequence[WorkloadSpec | None]) -> bool:
    """Return whether the workloads are measured in fresh processes, which none or all are."""
    for workload in workloads:
        if isinstance(workload, type) and issubclass(workload, Workload):
            name = workload.__name__
            raise MeasurementError(
                f"The class {name} was given as a workload; accepted is an object of it: {name}(...)."
            )
        if not isinstance(workload, (str, Workload)) and not callable(workload):
            raise MeasurementError(
                f"A workload was given as {type(workload).__name__}; accepted are texts such as 'model:lenet@pytorch', "
                "workloads and functions without arguments."
            )
    fresh = {spec is not None for spec in specs}
    if len(fresh) > 1:
        raise MeasurementError(
            "Objects of this process were given beside texts, which are measured in fresh processes; accepted are all "
            "of one kind. A function of a module is the text 'package.module:function'."
        )
    return fresh == {True}


def checked_plan(plan: SamplingPlan, statistic: Statistic, is_fresh: bool) -> SamplingPlan:
    """Return the plan with as many samples as the statistic needs, and single runs where means would hide the tail."""
    for name, value, kind in (("plan", plan, SamplingPlan), ("statistic", statistic, Statistic)):
        if not isinstance(value, kind):
            raise MeasurementError(f"{name} was given as {shown(value)}; accepted is a {kind.__name__}.")
    if plan.threads is not None and not is_fresh:
        raise MeasurementError(
            "threads can be set for fresh processes only, since libraries read it when they start; name the workloads "
            "as texts, or set OMP_NUM_THREADS before Python starts."
        )
    check_statistic(statistic)
    needed = samples_needed(statistic.quantile, statistic.confidence)
    plan = replace(
        plan,
        minimum_samples=max(plan.minimum_samples, needed),
        maximum_samples=max(plan.maximum_samples, 2 * needed),
    )
    if statistic.quantile == 0.5:
        return plan
    if plan.calls_per_sample not in (None, 1):
        raise MeasurementError(
            f"The {statistic.quantile:.6g} quantile is that of single runs; {plan.calls_per_sample} calls a sample "
            "were asked for, whose mean hides the slow ones. Leave calls_per_sample at None or 1."
        )
    return replace(plan, calls_per_sample=1)


def checked_margin(margin: float | None) -> float | None:
    """Return a margin that is one."""
    if margin is not None and not (isinstance(margin, (int, float)) and 0 < margin < math.inf):
        raise MeasurementError(f"The margin was given as {margin!r}; accepted is a positive difference, such as 0.01.")
    return margin


def checked_launches(launches: int | None, workloads: Sequence[Any], is_fresh: bool) -> int:
    """Return the number of launches, by default that of the kind of workloads."""
    if not workloads:
        raise MeasurementError("There is nothing to measure; name at least one workload.")
    if launches is None:
        return DEFAULT_LAUNCHES if is_fresh else 1
    if isinstance(launches, bool) or not isinstance(launches, int) or launches < 1:
        raise MeasurementError(f"launches was given as {launches!r}; accepted are whole numbers from 1.")
    if launches > 1 and not is_fresh:
        raise MeasurementError(
            f"{launches} launches need workloads that a fresh process can build; accepted are texts, such as "
            "'package.module:function'. Objects are measured in this process, once."
        )
    return launches


def checked_labels(labels: Sequence[str] | None, workloads: Sequence[Any]) -> list[str]:
    """Return the labels, by default the workloads' texts; a workload against itself gets two."""
    if labels is None:
        texts = [workload_text(workload) for workload in workloads]
        # A workload against itself is a fair question: it shows what the method finds where there is nothing.
        return [text if texts.count(text) == 1 else f"{text} #{number}" for number, text in enumerate(texts, 1)]
    count = len(workloads)
    are_texts = not isinstance(labels, str) and all(isinstance(label, str) and label.strip() for label in labels)
    if not are_texts or len(set(labels)) != count or len(labels) != count:
        accepted = "one text" if count == 1 else f"{count} different texts"
        raise MeasurementError(f"The labels were given as {labels!r}; accepted: {accepted}, one for each workload.")
    return list(labels)


def checked_pairing(pairing: Pairing | None, specs: Sequence[WorkloadSpec | None], is_fresh: bool) -> Pairing:
    """Return how several workloads belong together, by default as their frameworks ask for."""
    if pairing is not None and pairing not in PAIRINGS[1:]:
        raise MeasurementError(f"pairing was given as {pairing!r}; accepted are {', '.join(PAIRINGS[1:])}.")
    if len(specs) == 1:
        return "none"
    if pairing is None:
        places = {(spec.framework, spec.device) for spec in specs if spec is not None}
        pairing = "samples" if len(places) <= 1 else "launches"
    if pairing == "launches" and not is_fresh:
        raise MeasurementError("Workloads of this process cannot be given processes of their own; name them as texts.")
    return pairing
