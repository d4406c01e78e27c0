"""Deep500's own result files: verdicts of recipes, measurements, and collections of measurements."""

from __future__ import annotations

import functools
import json
import re
import statistics
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deep500.core.errors import Deep500Error, FleetError
from deep500.core.texts import message_of, one_line
from deep500.fleet.input_report import InputReport, ProblemKind
from deep500.fleet.reader import Reader, head_text
from deep500.fleet.readers._json import document_of
from deep500.fleet.readers._rows import Rows

if TYPE_CHECKING:
    import polars as pl

    from deep500.measure.results.document import Measurement, System

__all__ = ["ResultsReader"]

_KIND = re.compile(r'"kind"\s*:\s*"(?:measurement|collection)"')
_INTERRUPTED = "interrupted"


class ResultsReader(Reader):
    """Result files of recipes (``deep500 run``), measurements and collections of them (``deep500 bench``).

    The group is the name of the folder that the file lies in: what was run together lies together, and the same work
    again in one folder is a rerun. The key of a recipe's result is ``recipe@framework``; it has ``passed`` or
    ``failed`` with its verdict, and is ``cancelled`` when it was interrupted, ``missing`` when it is incomplete without
    a word why. The key of a measurement is the workload's text; what was measured as planned has ``passed``, all else
    is ``missing`` with the reason. Metrics are labels (``metric_NAME``).
    """

    def matches(self, path: Path, head: bytes) -> bool:
        """Whether it is a JSON object with the first keys of such a file."""
        text = head_text(head).lstrip()
        if not text.startswith("{") or '"schema_version"' not in text[:200]:
            return False
        return _KIND.search(text[:400]) is not None or ('"recipe"' in text[:400] and '"fixed"' in text[:4096])

    def read(self, path: Path, report: InputReport) -> pl.DataFrame:
        """Return the outcomes of the file; a measurement of a collection that is not valid loses only itself."""
        content = document_of(path, report)
        if not isinstance(content, dict):
            raise FleetError("It holds no object.")
        group = path.resolve().parent.name or "results"
        rows = Rows(path, report, framework=str)
        kind = content.get("kind")
        if kind == "collection":
            _add_collection(content, group, rows)
        elif kind == "measurement":
            from deep500.measure.results.files import measurement_from_content

            _add_measurement(measurement_from_content(content, "It"), group, rows)
        else:
            _add_recipe(content, group, rows)
        return rows.frame()


def _add_recipe(content: dict[str, Any], group: str, rows: Rows) -> None:
    _check_recipe(content)
    framework, ranks, runs = content["framework"], content.get("ranks") or {}, content.get("runs") or {}
    device, count = content["device"], (content.get("ranks") or {}).get("count", 1)
    status, cause = _verdict(content)
    rows.add(
        f"{content['recipe']['name']}@{framework['name']}",
        group,
        status,
        cause=cause,
        started=content["started"],
        ended=content["ended"],
        gpus=float(count) if device.startswith("gpu") else 0.0,
        recipe=content["recipe"]["name"],
        framework=framework["name"],
        framework_version=framework["version"],
        device=device,
        ranks=float(count),
        scheme=ranks.get("scheme"),
        runs=float(len(runs["passed"])) if runs else 1.0,
        runs_passed=float(sum(runs["passed"])) if runs else None,
        experiment=content["experiment_hash"][:12],
        configuration=content["configuration_hash"][:12],
        **{f"metric_{metric['name']}": metric["value"] for metric in content["metrics"] if _is_number(metric["value"])},
    )


def _verdict(content: Mapping[str, Any]) -> tuple[str, str | None]:
    """Return status and cause of a recipe's result."""
    failure = content["failure"]
    if not content["complete"]:
        if failure is None:
            return "missing", "incomplete"
        return ("cancelled" if _INTERRUPTED in failure.lower()[:60] else "failed"), failure
    if content["passed"]:
        return "passed", None
    short = [
        f"{metric['name']} is {metric['value']}, acceptable {metric['acceptable']}"
        for metric in content["metrics"]
        if metric["passed"] is False
    ]
    return "failed", failure or "; ".join(short) or "not all of its runs passed"


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _add_collection(content: dict[str, Any], group: str, rows: Rows) -> None:
    from deep500.measure.results.files import measurement_from_content

    planned, measurements, left_out = (content.get(name) for name in ("planned", "measurements", "left_out"))
    if not all(isinstance(part, list) for part in (planned, measurements, left_out)):
        raise FleetError("It is a collection without lists of what was planned, measured and left out.")
    seen = set()
    for number, entry in enumerate(measurements or [], 1):
        try:
            measurement = measurement_from_content(entry, f"measurement {number}")
        except (Deep500Error, TypeError, AttributeError) as error:
            rows.fault(ProblemKind.MALFORMED, message_of(error))
            continue
        seen.add(tuple(measurement.design.workloads))
        _add_measurement(measurement, group, rows)
    reasons = {
        tuple(map(str, entry["workloads"])): str(entry.get("reason"))
        for entry in left_out or []
        if isinstance(entry, dict) and isinstance(entry.get("workloads"), list)
    }
    for workloads in planned or []:
        named = tuple(map(str, workloads)) if isinstance(workloads, list) else (str(workloads),)
        if named not in seen:
            for workload in named:
                rows.add(workload, group, "missing", cause=reasons.get(named, "not reached"))


def _add_measurement(measurement: Measurement, group: str, rows: Rows) -> None:
    measured = set()
    for system in measurement.systems:
        measured.add(system.spec)
        _add_system(measurement, system, group, rows)
    for workload in measurement.design.workloads:
        if workload not in measured:
            rows.add(workload, group, "missing", cause=measurement.failure or "not measured")


def _add_system(measurement: Measurement, system: System, group: str, rows: Rows) -> None:
    metric = system.metric()
    medians = [statistics.median(launch.samples) for launch in metric.launches if launch.samples]
    whole = measurement.complete or len(medians) >= measurement.design.launches
    factors = {name: value for name, value in system.factors.items() if isinstance(value, (str, int, float))}
    first = min((measurement.processes[launch.process].started for launch in metric.launches), default=None)
    labels: dict[str, Any] = {f"factor_{name}": str(value) for name, value in factors.items() if name != "framework"}
    labels |= {f"metric_{score.name}": score.value for score in system.scores}
    if medians:
        labels |= {f"metric_{metric.name}": statistics.median(medians), "unit": metric.unit}
    rows.add(
        system.spec,
        group,
        "passed" if whole and medians else "missing",
        cause=None if whole and medians else measurement.failure or "no samples",
        submitted=measurement.started,
        started=first,
        ended=measurement.ended,
        label=system.label,
        launches=float(len(medians)),
        workload=system.workload_hash[:12],
        framework=str(factors["framework"]) if "framework" in factors else None,
        **labels,
    )


@functools.cache
def _recipe_schema() -> Any:
    from jsonschema import Draft202012Validator

    from deep500.recipe.result import SCHEMA_FILE

    return Draft202012Validator(json.loads(SCHEMA_FILE.read_text(encoding="utf-8")))


def _check_recipe(content: dict[str, Any]) -> None:
    """Check that a recipe's result is one.

    Raises:
        FleetError: It breaks its schema, or is of a newer version.
    """
    from jsonschema.exceptions import best_match

    error = best_match(_recipe_schema().iter_errors(content))
    if error is not None:
        place = ".".join(map(str, error.absolute_path)) or "it"
        raise FleetError(f"It is no valid result of a recipe ({place}): {one_line(error.message)[:200]}")
