"""The environment record: every probe's section, the noise while it was taken, and the isolation checks."""

from __future__ import annotations

import datetime
import time
from dataclasses import dataclass
from typing import Any

from deep500.measure.environment.isolation import IsolationCheck, IsolationError, IsolationVerdict, check_isolation
from deep500.measure.environment.noise import NoiseInterval, take_witness
from deep500.measure.environment.probe import PROBES, UNAVAILABLE, Section, read_section
from deep500.measure.environment.system import System

__all__ = ["SCHEMA_VERSION", "EnvironmentRecord", "environment_schema", "record_environment"]

#: Version of the record's form; it grows with every change that a reader could notice.
SCHEMA_VERSION = 1

#: How long strict checks watch the machine, in seconds.
_STRICT_OBSERVATION_S = 0.5


@dataclass(frozen=True)
class EnvironmentRecord:
    """On what machine, with which software and in which state something is measured.

    Attributes:
        taken: When, UTC, ISO 8601.
        elapsed_s: How long it took, waiting included.
        sections: The section of each probe, by name.
        noise: What happened on the machine meanwhile.
        isolation: The isolation checks.
    """

    taken: str
    elapsed_s: float
    sections: dict[str, Section]
    noise: NoiseInterval
    isolation: tuple[IsolationCheck, ...]

    def get(self, name: str) -> Any:
        """Return a field by its name; ``"unavailable"`` when it could not be read, or when there is none.

        Args:
            name: Section and field, such as ``"cpu.model"``.
        """
        section, _, key = name.partition(".")
        return self.sections.get(section, Section()).values.get(key, UNAVAILABLE)

    def reason(self, name: str) -> str | None:
        """Return why a field is unavailable, ``None`` when it is not.

        Args:
            name: Section and field, such as ``"cpu.model"``.
        """
        section, _, key = name.partition(".")
        found = self.sections.get(section)
        if found is None:
            return f"there is no section {section!r}"
        if key in found.values:
            return found.reasons.get(key)
        return found.reasons.get("") or f"the section {section!r} has no field {key!r}"

    @property
    def failed(self) -> tuple[IsolationCheck, ...]:
        """The isolation checks that failed."""
        return tuple(check for check in self.isolation if check.verdict is IsolationVerdict.FAILED)

    def to_dict(self) -> dict[str, Any]:
        """Return the record for JSON, in the form of :func:`environment_schema`."""
        return {
            "schema_version": SCHEMA_VERSION,
            "taken": self.taken,
            "elapsed_s": self.elapsed_s,
            "sections": {name: section.to_dict() for name, section in self.sections.items()},
            "noise": self.noise.to_dict(),
            "isolation": [check.to_dict() for check in self.isolation],
        }

    def raise_if_failed(self) -> None:
        """Refuse a machine that failed an isolation check.

        Raises:
            IsolationError: At least one failed; those that are unavailable do not count.
        """
        if self.failed:
            raise IsolationError(self.failed)


def record_environment(
    *, strict: bool = False, observation_s: float | None = None, system: System | None = None
) -> EnvironmentRecord:
    """Record the environment; no missing file, tool or library makes this fail.

    Args:
        strict: Whether to refuse a machine that fails an isolation check.
        observation_s: Watch the machine's noise for at least so long, in seconds; by default 0.5 when strict, else
            only while the record is taken.
        system: Where to read from; by default this machine.

    Raises:
        IsolationError: Strict, and a check failed.
    """
    system = system or System()
    if observation_s is None:
        observation_s = _STRICT_OBSERVATION_S if strict else 0.0
    taken = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="milliseconds")
    started = time.perf_counter()
    witness = take_witness(system)
    sections = {name: read_section(name, system) for name in PROBES.names()}
    time.sleep(max(0.0, observation_s - (time.perf_counter() - started)))
    noise = take_witness(system).since(witness)
    checks = check_isolation(sections, noise)
    record = EnvironmentRecord(taken, time.perf_counter() - started, sections, noise, checks)
    if strict:
        record.raise_if_failed()
    return record


def environment_schema() -> dict[str, Any]:
    """Return the JSON Schema of a record, with a description of each field from its probe.

    It covers the probes of Deep500 and those that other distributions register.

    Raises:
        PluginError: A probe cannot be loaded.
    """
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"https://www.deep500.org/schema/environment-{SCHEMA_VERSION}.json",
        "title": "Environment of a measurement by Deep500",
        "type": "object",
        "additionalProperties": False,
        "required": ["schema_version", "taken", "elapsed_s", "sections", "noise", "isolation"],
        "properties": {
            "schema_version": {"const": SCHEMA_VERSION},
            "taken": {"type": "string"},
            "elapsed_s": {"type": "number", "minimum": 0},
            "sections": _sections_schema(),
            "noise": {"type": "object", "required": ["elapsed_s", "reasons"]},
            "isolation": {"type": "array", "items": _check_schema()},
        },
    }


def _sections_schema() -> dict[str, Any]:
    failed = {
        "description": "The whole probe failed, for this reason.",
        "type": "object",
        "additionalProperties": False,
        "required": ["unavailable"],
        "properties": {"unavailable": {"type": "string"}},
    }
    names = PROBES.names()
    sections: dict[str, Any] = {}
    for name in names:
        probe = PROBES.get(name)
        fields = {key: entry.schema() for key, entry in probe(System()).items()}
        reasons = {"type": "object", "propertyNames": {"enum": [*fields]}, "additionalProperties": {"type": "string"}}
        section = {
            "type": "object",
            "description": (probe.__doc__ or "").partition("\n")[0],
            "additionalProperties": False,
            "required": [*fields, "reasons"],
            "properties": {**fields, "reasons": {"description": "Why fields are unavailable.", **reasons}},
        }
        sections[name] = {"anyOf": [section, failed]}
    return {"type": "object", "additionalProperties": False, "required": names, "properties": sections}


def _check_schema() -> dict[str, Any]:
    return {
        "type": "object",
        "additionalProperties": False,
        "required": ["name", "verdict", "reason", "remedy"],
        "properties": {
            "name": {"type": "string"},
            "verdict": {"enum": [verdict.value for verdict in IsolationVerdict]},
            "reason": {"type": "string"},
            "remedy": {"type": "string"},
        },
    }
