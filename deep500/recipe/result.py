"""What a run of a recipe found, as an object and as a file."""

from __future__ import annotations

import dataclasses
import json
import math
from os import PathLike
from pathlib import Path
from typing import Any

from deep500.core.files import write_atomically

__all__ = ["SCHEMA_FILE", "SCHEMA_VERSION", "MetricResult", "RecipeResult", "write_result"]

#: Version of the result file's form; it grows with every change that a reader could notice.
SCHEMA_VERSION = 4

#: JSON Schema of the result file.
SCHEMA_FILE = Path(__file__).with_name("result.schema.json")


@dataclasses.dataclass(frozen=True)
class MetricResult:
    """One metric's value and whether it is acceptable.

    Attributes:
        name: The metric's name.
        value: What was measured; ``None`` when the run ended before.
        unit: Unit of the value.
        direction: ``"higher"`` or ``"lower"``: which values are better.
        acceptable: The value that is just good enough; ``None`` when the metric is only reported.
        margin: By how much the value is better than the acceptable one; negative when worse.
        passed: Whether it is acceptable; ``None`` when the metric is only reported.
    """

    name: str
    value: float | None
    unit: str
    direction: str
    acceptable: float | None
    margin: float | None
    passed: bool | None


@dataclasses.dataclass
class RecipeResult:
    """The outcome of one run of a recipe.

    Attributes:
        recipe: Name and path of the recipe.
        fixed: Description of the fixed part.
        mutable: Description of the mutable part, with all changes that were asked for.
        configuration_hash: SHA-256 of both.
        experiment_hash: SHA-256 of what is independent of the framework, see :mod:`deep500.recipe.experiment`.
        framework: Name and version of the framework.
        device: Where it ran.
        seeds: Seeds of the first weights and of both samplers.
        initial_weights_hash: SHA-256 of the weights before the training.
        first_epoch_batches_hash: SHA-256 of the minibatches of the first epoch, ``None`` when it did not end.
        versions: Versions of what took part.
        environment: The environment record, taken when all was built
            (:meth:`deep500.measure.environment.EnvironmentRecord.to_dict`).
        started: When the training started, UTC, ISO 8601.
        ended: When it ended.
        metrics: The metrics, in the recipe's order.
        statistics: What the trainer recorded, epoch by epoch.
        regions: Where the time went (:meth:`deep500.measure.RegionBreakdown.to_dict`).
        noise: What disturbed the training (:meth:`deep500.measure.environment.NoiseInterval.to_dict`).
        failure: Why the run fails whatever its metrics are, such as a loss that is not a number; else ``None``.
        complete: Whether the training and all metrics ran to their end.
        resumed: From which checkpoints the training went on, in order: folder, step and time. ``started``, the
            statistics, the metrics and the hash of the first epoch cover the whole training then; ``regions`` and
            ``noise`` are those of the last process.
        numerics: What it was computed in: ``precision``, ``determinism`` (the switches of the deterministic mode, or
            ``None``) and ``loss_scaling`` (factor and skipped steps at the end, or ``None``).
        ranks: Of a training on several ranks: their number, communicator and scheme, and for each rank the bytes that
            it sent and received by the scheme (:class:`deep500.distributed.CommunicationVolume`) in the last process;
            and which ranks were lost on the way. ``None`` for a process that is no rank.
        runs: Of several trainings: their seeds and verdicts, the values of each metric and statistics of them.
    """

    recipe: dict[str, str | None]
    fixed: dict[str, Any]
    mutable: dict[str, Any]
    configuration_hash: str
    experiment_hash: str
    framework: dict[str, str]
    device: str
    seeds: dict[str, int | None]
    initial_weights_hash: str
    versions: dict[str, str]
    environment: dict[str, Any]
    started: str
    ended: str | None = None
    first_epoch_batches_hash: str | None = None
    metrics: list[MetricResult] = dataclasses.field(default_factory=list)
    statistics: dict[str, Any] = dataclasses.field(default_factory=dict)
    regions: dict[str, Any] = dataclasses.field(default_factory=dict)
    noise: dict[str, Any] = dataclasses.field(default_factory=dict)
    failure: str | None = None
    complete: bool = False
    resumed: list[dict[str, Any]] = dataclasses.field(default_factory=list)
    numerics: dict[str, Any] = dataclasses.field(default_factory=dict)
    runs: dict[str, Any] | None = None
    ranks: dict[str, Any] | None = None

    @property
    def passed(self) -> bool:
        """Whether the run is complete, did not fail, and no metric is worse than acceptable."""
        is_one_passed = self.failure is None and all(metric.passed is not False for metric in self.metrics)
        return self.complete and is_one_passed and (self.runs is None or all(self.runs["passed"]))

    def to_dict(self) -> dict[str, Any]:
        """Return the content of the result file.

        JSON has no word for numbers that are none: ``nan`` and the infinities become the texts ``"nan"``, ``"inf"`` and
        ``"-inf"``.
        """
        content = {"schema_version": SCHEMA_VERSION, **dataclasses.asdict(self), "passed": self.passed}
        cleaned = _without_non_numbers(content)
        assert isinstance(cleaned, dict)
        return cleaned


def write_result(result: RecipeResult, path: str | PathLike[str]) -> None:
    """Write a result as a JSON file; it appears whole or not at all, and replaces an older one.

    Raises:
        FileWriteError: The file cannot be written.
    """
    write_atomically(path, json.dumps(result.to_dict(), indent=2, allow_nan=False) + "\n", "result")


def _without_non_numbers(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _without_non_numbers(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_non_numbers(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value
