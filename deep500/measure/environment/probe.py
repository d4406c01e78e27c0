"""What a probe is: a function that names fields, each with the way to read it; and how they are read safely."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from deep500.core.registry import Registry
from deep500.measure.environment.system import System, UnreadableError

__all__ = ["PROBES", "UNAVAILABLE", "Field", "Probe", "Section", "read_section"]

#: What stands in the place of a value that could not be read.
UNAVAILABLE = "unavailable"

#: The probes, one file each in ``deep500/measure/environment/probes``. The section of the record has the file's name.
PROBES = Registry("environment probe", "deep500.measure.environment.probes")

_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Field:
    """One field of a section.

    Attributes:
        type: JSON types of its value, such as ``"string"`` or ``"number|null"``.
        about: What it is, with its unit, for the schema.
        read: Reads it. Any error that it raises becomes the reason why the field is unavailable.
    """

    type: str
    about: str
    read: Callable[[], Any]

    def schema(self) -> dict[str, Any]:
        """Return the JSON Schema of the field."""
        types = self.type.split("|")
        return {
            "description": self.about,
            "anyOf": [{"const": UNAVAILABLE}, {"type": types if len(types) > 1 else types[0]}],
        }


#: A probe reads nothing when it is called; only the fields that it returns do.
Probe = Callable[[System], Mapping[str, Field]]


@dataclass(frozen=True)
class Section:
    """What one probe could read.

    Attributes:
        values: The fields; :data:`UNAVAILABLE` where one could not be read.
        reasons: For each such field, why. The key ``""`` says why the whole probe failed.
    """

    values: dict[str, Any] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)

    def to_dict(self) -> Any:
        """Return the section for JSON: the fields and, beside them, ``reasons``."""
        if "" in self.reasons:
            return {"unavailable": self.reasons[""]}
        return {**self.values, "reasons": self.reasons}

    def items(self) -> Iterator[tuple[str, Any, str | None]]:
        """Iterate over the fields: name, value and, where there is no value, the reason."""
        for name, value in self.values.items():
            yield name, value, self.reasons.get(name)


def read_section(name: str, system: System) -> Section:
    """Run one probe; whatever goes wrong in it is told in the section, and nothing is raised.

    Args:
        name: Name of the probe.
        system: What it reads from.
    """
    try:
        fields = dict(PROBES.get(name)(system))
    except Exception as error:
        _logger.debug("The environment probe %s failed", name, exc_info=True)
        return Section({}, {"": _reason(error)})
    section = Section()
    for key, entry in fields.items():
        try:
            section.values[key] = _plain(entry.read())
        except Exception as error:
            _logger.debug("The field %s of the environment probe %s cannot be read", key, name, exc_info=True)
            section.values[key] = UNAVAILABLE
            section.reasons[key] = _reason(error)
    return section


def _reason(error: Exception) -> str:
    text = " ".join(str(error).split())[:500]
    return text if isinstance(error, UnreadableError) else f"{type(error).__name__}: {text}"


def _plain(value: Any) -> Any:
    """Return a value in the types of JSON, which has no word for numbers that are none."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise TypeError(f"the probe returned a {type(value).__name__}, which JSON cannot hold")
