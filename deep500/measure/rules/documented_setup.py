"""SC15, rule 9: factors, levels and the set-up are documented."""

from __future__ import annotations

from deep500.measure.document_view import (
    ComparedView,
    DocumentView,
    SystemView,
    items_of,
    mapping_of,
    number_of,
    short,
    text_of,
)
from deep500.measure.rule import Finding, Rule

__all__ = ["DocumentedSetup"]

#: What a record of the machine and its software has to name; single ones may be unavailable there, not all.
_FIELDS = (
    "cpu.model",
    "cpu.cores",
    "host.kernel",
    "host.operating_system",
    "interpreter.version",
    "libraries.versions",
    "memory.total_bytes",
    "process.affinity",
    "clock.implementation",
)


class DocumentedSetup(Rule):
    """The environment record, the design and what identifies each system are there."""

    number = "9"
    title = "Factors, levels and the set-up are documented"

    def measurement(self, document: DocumentView) -> Finding:
        """Look for the environment, the design, and the identity and factors of every system."""
        broken = list(document.problems) + _environment_problems(document)
        for key in ("launches", "seed"):
            if number_of(document.part(f"design.{key}")) is None:
                broken.append(f"design.{key} is no number; the design is to be stated")
        for key in ("plan", "statistic"):
            if not mapping_of(document.part(f"design.{key}")):
                broken.append(f"design.{key} is not stated")
        for system in document.systems:
            broken += _system_problems(system)
        return self.judged(broken, [_machine(document), *map(_levels, document.systems)], "")

    def comparison(self, document: DocumentView) -> Finding:
        """Look for the files behind each system, their hashes, and all that differs from the base."""
        broken = list(document.problems)
        for side in document.sides:
            if text_of(side.source.get("path")) is None or text_of(side.source.get("sha256")) is None:
                broken.append(f"{side.system} names no result file with its hash; compare files (deep500 compare)")
            if side.configuration_hash is None:
                broken.append(f"{side.system} has no configuration_hash")
        for row in document.compared:
            if not isinstance(row.content.get("factors"), list):
                broken.append(f"{row.absolute.system} does not tell what differs from the base (factors)")
        evidence = f"{len(document.sides)} systems name their files"
        return self.judged(broken, [evidence, *map(_differences, document.compared)], "")

    def recipe(self, document: DocumentView) -> Finding:
        """Look for versions, seeds and hashes, and for the machine."""
        broken = list(document.problems) + _environment_problems(document)
        for key in ("framework.name", "framework.version", "versions.deep500", "initial_weights_hash"):
            if text_of(document.part(key)) is None:
                broken.append(f"{key} is not stated")
        return self.judged(broken, [_machine(document)], "")


def _environment_problems(document: DocumentView) -> list[str]:
    sections = mapping_of(document.part("environment.sections"))
    if not sections:
        return [
            "the machine and its software are not recorded (deep500 env --json shows what belongs under environment)"
        ]
    absent = [name for name in _FIELDS if not _is_told(document, name)]
    if absent:
        return [f"environment.sections does not tell {', '.join(absent)}"]
    if all(document.environment(name) is None for name in _FIELDS):
        return [f"none of {', '.join(_FIELDS)} could be read; measure where they can be"]
    return []


def _is_told(document: DocumentView, name: str) -> bool:
    """Whether a field has a value, or is said to be unavailable, alone or with its whole section."""
    section = document.part(f"environment.sections.{name.partition('.')[0]}")
    return document.part(f"environment.sections.{name}") is not None or "unavailable" in mapping_of(section)


def _system_problems(system: SystemView) -> list[str]:
    problems = [] if system.identity else [f"{system.label} does not tell what it computes (identity is empty)"]
    if any(
        factor is not None and not isinstance(factor, (str, int, float, bool)) for factor in system.factors.values()
    ):
        problems.append(f"{system.label} has factors that are no single values")
    return problems


def _machine(document: DocumentView) -> str:
    model = text_of(document.environment("cpu.model")) or "a CPU of unknown model"
    versions = mapping_of(document.environment("libraries.versions"))
    known = sum(version is not None for version in versions.values())
    kernel = text_of(document.environment("host.kernel")) or "unknown"
    return f"{short(model)}, kernel {short(kernel)}, {known} libraries with versions"


def _levels(system: SystemView) -> str:
    return f"{system.label} names {len(system.factors)} factors"


def _differences(row: ComparedView) -> str:
    names = [text_of(mapping_of(factor).get("name")) for factor in items_of(row.content.get("factors"))]
    told = ", ".join(short(name) for name in names if name) or "nothing"
    return f"{row.absolute.system} differs from the base in {told}"
