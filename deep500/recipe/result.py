"""What a run of a recipe found, as an object and as a file."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import stat
import tempfile
from os import PathLike
from pathlib import Path
from typing import Any

from deep500.core.errors import RecipeError
from deep500.recipe.signals import signals_deferred
from deep500.recipe.texts import shown_path

__all__ = ["SCHEMA_FILE", "SCHEMA_VERSION", "MetricResult", "RecipeResult", "check_writable", "write_result"]

#: Version of the result file's form; it grows with every change that a reader could notice.
SCHEMA_VERSION = 1

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
        framework: Name and version of the framework.
        device: Where it ran.
        seeds: Seeds of the first weights and of both samplers.
        initial_weights_hash: SHA-256 of the weights before the training.
        first_epoch_batches_hash: SHA-256 of the minibatches of the first epoch, ``None`` when it did not end.
        versions: Versions of what took part.
        started: When the training started, UTC, ISO 8601.
        ended: When it ended.
        metrics: The metrics, in the recipe's order.
        statistics: What the trainer recorded, epoch by epoch.
        failure: Why the run fails whatever its metrics are, such as a loss that is not a number; else ``None``.
        complete: Whether the training and all metrics ran to their end.
    """

    recipe: dict[str, str | None]
    fixed: dict[str, Any]
    mutable: dict[str, Any]
    configuration_hash: str
    framework: dict[str, str]
    device: str
    seeds: dict[str, int | None]
    initial_weights_hash: str
    versions: dict[str, str]
    started: str
    ended: str | None = None
    first_epoch_batches_hash: str | None = None
    metrics: list[MetricResult] = dataclasses.field(default_factory=list)
    statistics: dict[str, Any] = dataclasses.field(default_factory=dict)
    failure: str | None = None
    complete: bool = False

    @property
    def passed(self) -> bool:
        """Whether the run is complete, did not fail, and no metric is worse than acceptable."""
        return self.complete and self.failure is None and all(metric.passed is not False for metric in self.metrics)

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
        RecipeError: The file cannot be written.
    """
    target = _target(path)
    text = json.dumps(result.to_dict(), indent=2, allow_nan=False) + "\n"
    try:
        with signals_deferred():
            handle, temporary = _temporary_beside(target)
            try:
                with os.fdopen(handle, "w", encoding="utf-8") as file:
                    file.write(text)
                    file.flush()
                    os.fsync(file.fileno())
                os.replace(temporary, target)
            except BaseException:
                os.unlink(temporary)
                raise
    except OSError as error:
        raise RecipeError(f"The result cannot be written to {shown_path(path)}: {error.strerror or error}") from error


def check_writable(path: str | PathLike[str]) -> None:
    """Check, before hours of training, that :func:`write_result` will be able to write; leave nothing behind.

    Raises:
        RecipeError: The file cannot be written.
    """
    target = _target(path)
    try:
        with signals_deferred():
            handle, temporary = _temporary_beside(target)
            os.close(handle)
            os.unlink(temporary)
    except OSError as error:
        raise RecipeError(f"The result cannot be written to {shown_path(path)}: {error.strerror or error}") from error


def _target(path: str | PathLike[str]) -> Path:
    """Return where the file will lie; a link is kept and what it leads to is replaced."""
    text = os.fspath(path)
    if not text or text.endswith(("/", os.sep)):
        raise RecipeError(f"The result cannot be written to {text!r}: that is not the name of a file.")
    try:
        target = Path(text).resolve()
        mode = target.stat().st_mode if target.exists() else None
    except (OSError, RuntimeError, ValueError) as error:  # a link to itself, a name that is too long, a null byte
        raise RecipeError(f"The result cannot be written to {text!r}: {error}") from error
    if mode is not None and not stat.S_ISREG(mode):
        kind = "a folder" if stat.S_ISDIR(mode) else "not a regular file"
        raise RecipeError(f"The result cannot be written to {shown_path(text)}: it is {kind}.")
    return target


def _temporary_beside(target: Path) -> tuple[int, str]:
    """Open a new file in the target's folder, with the permissions that the target will have."""
    handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".partial")
    mask = os.umask(0)
    os.umask(mask)
    os.fchmod(handle, 0o666 & ~mask)
    return handle, temporary


def _without_non_numbers(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _without_non_numbers(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_non_numbers(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value
