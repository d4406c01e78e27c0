"""Stored reference runs: what trainings of one configuration needed until their target was met."""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import asdict, dataclass
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from deep500.core.errors import MeasurementError
from deep500.core.files import write_atomically
from deep500.core.strict_json import parse_json
from deep500.core.texts import message_of, shown, shown_path
from deep500.measure.metric import Direction

__all__ = ["ReferenceRuns", "read_reference_runs", "write_reference_runs"]

#: Version of the file's form.
SCHEMA_VERSION = 1

_UNITS = ("samples", "steps", "epochs")


@dataclass(frozen=True)
class ReferenceRuns:
    """What several runs of one training needed.

    Attributes:
        name: Name of the recipe or training.
        metric: What had to meet the target, such as ``"TestAccuracy"``.
        target: The value that had to be met.
        unit: What ``values`` count: ``"samples"``, ``"steps"`` or ``"epochs"``.
        values: What each run needed; infinite for one that never met the target.
        seeds: Seeds of the runs.
        direction: Which values of the metric are better.
        experiment_hash: Which training it was (:mod:`deep500.recipe.experiment`); empty where that is not known.
        framework: Framework and version.
        source: Where the runs come from.
    """

    name: str
    metric: str
    target: float
    unit: str
    values: tuple[float, ...]
    seeds: tuple[int, ...] = ()
    direction: str = "higher"
    experiment_hash: str = ""
    framework: str = ""
    source: str = ""

    def __post_init__(self) -> None:
        """Check the values.

        Raises:
            MeasurementError: One is not accepted.
        """
        object.__setattr__(self, "values", tuple(float(value) for value in self.values))
        object.__setattr__(self, "seeds", tuple(self.seeds))
        if not self.values or not all(value > 0 for value in self.values):
            raise MeasurementError(
                f"The reference runs needed {shown(self.values)}; accepted are one or more numbers above 0."
            )
        if self.unit not in _UNITS:
            raise MeasurementError(f"The unit is {shown(self.unit)}; accepted are {', '.join(_UNITS)}.")
        if self.direction not in [entry.value for entry in Direction]:
            raise MeasurementError(f"The direction is {shown(self.direction)}; accepted are 'higher' and 'lower'.")
        if not math.isfinite(self.target):
            raise MeasurementError(f"The target is {self.target!r}; accepted are finite numbers.")
        if self.seeds and len(self.seeds) != len(self.values):
            raise MeasurementError(f"There are {len(self.seeds)} seeds for {len(self.values)} runs.")

    @property
    def target_text(self) -> str:
        """The target as a phrase."""
        return f"{self.metric} {'>=' if self.direction == 'higher' else '<='} {self.target:.6g}"


def write_reference_runs(runs: ReferenceRuns, path: str | PathLike[str]) -> None:
    """Write reference runs as a JSON file, with the SHA-256 of their content.

    Raises:
        FileWriteError: The file cannot be written.
    """
    content = {key: list(value) if isinstance(value, tuple) else value for key, value in asdict(runs).items()}
    content["values"] = [value if math.isfinite(value) else "inf" for value in runs.values]
    document = {"schema_version": SCHEMA_VERSION, "kind": "reference runs", "sha256": _hash(content), **content}
    write_atomically(path, json.dumps(document, indent=2, allow_nan=False) + "\n", "reference runs")


def read_reference_runs(path: str | PathLike[str]) -> ReferenceRuns:
    """Read what :func:`write_reference_runs` wrote.

    Raises:
        MeasurementError: There is no such file, it is something else or of a newer version, or it was changed.
    """
    where = shown_path(fspath(path))
    try:
        document = parse_json(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise MeasurementError(f"The reference runs {where} cannot be read: {message_of(error)}") from error
    if not isinstance(document, dict) or document.get("kind") != "reference runs":
        raise MeasurementError(f"{where} holds no reference runs; write_reference_runs writes such files.")
    if document.get("schema_version") != SCHEMA_VERSION:
        raise MeasurementError(
            f"The reference runs {where} are of version {shown(document.get('schema_version'))}; accepted is "
            f"{SCHEMA_VERSION}."
        )
    content = {key: value for key, value in document.items() if key not in ("schema_version", "kind", "sha256")}
    if document.get("sha256") != _hash(content):
        raise MeasurementError(f"The reference runs {where} were changed: their SHA-256 is not that of their content.")
    try:
        content["values"] = tuple(float(value) for value in content["values"])
        content["seeds"] = tuple(int(seed) for seed in content["seeds"])
        return ReferenceRuns(**content)
    except (KeyError, TypeError, ValueError) as error:
        raise MeasurementError(f"The reference runs {where} are not complete: {message_of(error)}") from error


def _hash(content: dict[str, Any]) -> str:
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()
