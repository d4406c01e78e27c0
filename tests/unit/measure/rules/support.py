"""Documents that obey every rule that applies to them; tests break them in one place."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import numpy as np

from deep500.measure.document_view import DocumentView
from deep500.measure.metric import Direction, MetricKind
from deep500.measure.results.document import (
    Design,
    LaunchSamples,
    Measurement,
    MetricSamples,
    ProcessRecord,
    Statistic,
    System,
    content_hash,
)
from deep500.measure.rule import RULES, Finding, check_rules
from deep500.measure.rules._reading import view_of
from deep500.measure.statistics.comparison import paired_log_ratio
from deep500.measure.statistics.multiple import holm
from deep500.measure.statistics.quantiles import Interval, quantile_interval
from deep500.measure.workload import Score, Work

ENVIRONMENT = {
    "schema_version": 1,
    "sections": {
        "clock": {"implementation": "clock_gettime(CLOCK_MONOTONIC)", "reasons": {}},
        "cpu": {"model": "Test CPU", "cores": 2, "threads": 4, "reasons": {}},
        "host": {"kernel": "6.1", "operating_system": "unavailable", "reasons": {"operating_system": "no file"}},
        "interpreter": {"version": "3.11.7", "reasons": {}},
        "libraries": {"versions": {"numpy": "2.0", "torch": None}, "reasons": {}},
        "memory": {"total_bytes": 8_000_000_000, "reasons": {}},
        "process": {"affinity": "0-3", "affinity_count": 4, "cpu_quota": None, "reasons": {}},
    },
}


def row(size: int = 30, *, seed: int = 0, median_s: float = 1e-3) -> tuple[float, ...]:
    """Return samples of a lognormal distribution."""
    return tuple(median_s * np.random.default_rng(seed).lognormal(0, 0.1, size))


def metric(
    launches: int = 6,
    size: int = 30,
    *,
    name: str = "WallclockTime",
    unit: str = "s",
    kind: MetricKind = MetricKind.COST,
    calls_per_sample: int = 1,
    median_s: float = 1e-3,
    seed: int = 0,
) -> MetricSamples:
    """Return samples of several launches, each in the process of its number."""
    rows = [row(size, seed=1000 * seed + number, median_s=median_s) for number in range(launches)]
    samples = tuple(
        LaunchSamples(number, values, calls_per_sample=calls_per_sample, converged=True, steady=True)
        for number, values in enumerate(rows)
    )
    return MetricSamples(name, unit, kind, Direction.LOWER, samples)


def system(spec: str = "op:Conv@pytorch", metrics: tuple[MetricSamples, ...] | None = None, **parts: Any) -> System:
    """Return one system."""
    contents = {
        "label": spec,
        "spec": spec,
        "identity": {"problem": spec.partition("@")[0]},
        "factors": {"framework": "pytorch", "device": "cpu"},
        "data_hash": "d" * 64,
        "initialisation_hash": "a" * 64,
        "work": Work(),
        "metrics": (metric(),) if metrics is None else metrics,
        **parts,
    }
    return System(**contents)


def trained(seed: int = 0, **parts: Any) -> System:
    """Return one training of a recipe."""
    score = Score("TestAccuracy", 98.3, "%", acceptable=97.0, held_out=True)
    contents = {
        "label": f"recipe seed {seed}",
        "factors": {"framework": "pytorch", "device": "cpu", "seed": seed},
        "scores": (score,),
        **parts,
    }
    return system("recipe:digits_lenet", **contents)


def measurement(*systems: System, **design: Any) -> dict[str, Any]:
    """Return the document of a measurement, as ``json.loads`` returns it."""
    systems = systems or (system(),)
    launches = max((len(part.launches) for one in systems for part in one.metrics), default=1)
    plan = {"minimum_samples": 10}
    contents = {"workloads": tuple(one.spec for one in systems), "launches": launches, "plan": plan, **design}
    processes = tuple(ProcessRecord("2026-01-01T00:00:00+00:00", True, 0.1, 1.0, 0.01) for _ in range(launches))
    result = Measurement(
        deep500="1.0",
        started="2026-01-01T00:00:00+00:00",
        ended="2026-01-01T00:01:00+00:00",
        design=Design(**contents),
        systems=systems,
        processes=processes,
        environment=ENVIRONMENT,
    )
    return json.loads(json.dumps(result.to_dict()))


def quantile_design(quantile: float) -> Statistic:
    """Return the statistic of a quantile."""
    return Statistic("quantile", quantile)


def comparison(*factors: float, launches: int = 10, margin: float | None = None, **parts: Any) -> dict[str, Any]:
    """Return the document of a comparison with one row for each factor, by which it is slower than the base."""
    factors = factors or (2.0,)
    values = [row(launches, seed=number) for number in range(len(factors) + 1)]
    rows = []
    for number, factor in enumerate(factors, 1):
        own = tuple(factor * value for value in values[number])
        rows.append(
            {
                "system": compared(f"row{number}", own),
                **against(own, values[0], margin),
                "pairing": "launches",
                "factors": [{"name": "framework", "first": "pytorch", "second": "tensorflow"}],
                "note": "",
            }
        )
    for entry, adjusted in zip(rows, holm([entry["p_value"] for entry in rows]).adjusted):
        entry["p_holm"] = float(adjusted)
    document = {
        "schema_version": 1,
        "kind": "comparison",
        "deep500": "1.0",
        "created": "2026-01-01T00:00:00+00:00",
        "metric": {"name": "WallclockTime", "unit": "s", "kind": "cost", "direction": "lower"},
        "statistic": {"name": "median", "quantile": 0.5, "confidence": 0.95},
        "margin": margin,
        "base": compared("base", values[0]),
        "rows": rows,
        "many": None,
        "warnings": [],
    }
    return copy.deepcopy({**document, **parts})


def compared(label: str, values: tuple[float, ...]) -> dict[str, Any]:
    """Return one system of a comparison."""
    return {
        "label": label,
        "spec": "op:Conv",
        "configuration_hash": "c" * 64,
        "absolute": {
            "estimate": float(np.median(values)),
            "interval": ends(quantile_interval(values)),
            "basis": "launches",
            "note": "over launches",
            "launch_values": list(values),
            "launches": len(values),
            "samples": 30 * len(values),
            "spread": None,
            "converged": True,
            "steady": True,
            "warnings": [],
        },
        "scores": [],
        "source": {"path": f"{label}.json", "sha256": "f" * 64},
    }


def against(values: tuple[float, ...], base: tuple[float, ...], margin: float | None) -> dict[str, Any]:
    """Return ratio, p-value and verdict of a row."""
    found = paired_log_ratio(values, base, margin=margin)
    return {
        "ratio": {"estimate": found.ratio.estimate, "interval": ends(found.ratio)},
        "p_value": found.p_value,
        "p_holm": found.p_value,
        "verdict": found.verdict.value,
    }


def ends(interval: Interval) -> dict[str, Any]:
    """Return an interval as a comparison holds it."""
    return {
        "low": interval.low,
        "high": interval.high,
        "confidence": 0.95,
        "coverage": interval.coverage,
        "exact": True,
    }


def recipe(**parts: Any) -> dict[str, Any]:
    """Return the document of a recipe's result, with the environment of the machine."""
    epochs = [
        {
            "epoch": number,
            "training": {"batches": 2, "samples": 64, "duration_s": 1.5, "loss": 0.5, "complete": True},
            "test": None,
        }
        for number in range(2)
    ]
    score = {"name": "TestAccuracy", "value": 98.0, "unit": "%", "direction": "higher", "acceptable": 97.0}
    document = {
        "schema_version": 1,
        "recipe": {"name": "digits_lenet", "path": None},
        "fixed": {"model": "lenet", "dataset": "digits", "epochs": 2},
        "mutable": {"batch_size": 32, "seed": 0},
        "framework": {"name": "pytorch", "version": "2.0"},
        "device": "cpu",
        "seeds": {"recipe": 0, "initialisation": 0, "train_sampler": 0, "validation_sampler": 0},
        "initial_weights_hash": "a" * 64,
        "first_epoch_batches_hash": "b" * 64,
        "versions": {"deep500": "1.0", "python": "3.11", "numpy": "2.0", "onnx": "1.23"},
        "started": "2026-01-01T00:00:00.000+00:00",
        "ended": "2026-01-01T00:01:00.000+00:00",
        "metrics": [{**score, "margin": 1.0, "passed": True}],
        "statistics": {"outcome": "completed", "epochs_planned": 2, "training_s": 3.0, "epochs": epochs},
        "failure": None,
        "complete": True,
        "passed": True,
        "environment": ENVIRONMENT,
    }
    document["configuration_hash"] = content_hash({key: document[key] for key in ("fixed", "mutable")})
    return copy.deepcopy({**document, **parts})


def verdict_of(rule: str, document: dict[str, Any]) -> tuple[str, str]:
    """Return what one rule says of a document: verdict and reason."""
    finding = finding_of(rule, document)
    return finding.verdict.value, finding.reason


def finding_of(rule: str, document: dict[str, Any]) -> Finding:
    """Return the finding of one rule."""
    found = RULES.get(rule)().check(view(document))
    assert found in check_rules(document)  # through the registry as well
    return found


def view(document: dict[str, Any]) -> DocumentView:
    """Return the tolerant view of a document."""
    return view_of(document)


def changed(document: dict[str, Any], change: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
    """Return a copy of a document that a function changed."""
    copied = copy.deepcopy(document)
    change(copied)
    return copied
