"""What the formats ask of the environment record."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from deep500.measure.results.document import Measurement

__all__ = ["environment_number", "environment_text", "environment_value"]


def environment_value(measurement: Measurement, name: str) -> Any:
    """Return a field of the environment record such as ``"cpu.model"``; ``None`` when it is not known."""
    found: Any = measurement.environment.get("sections")
    for key in name.split("."):
        found = found.get(key) if isinstance(found, Mapping) else None
    return None if found == "unavailable" else found


def environment_text(measurement: Measurement, name: str) -> str | None:
    """Return a field as a text with anything in it; ``None`` when it is not known, or no text."""
    value = environment_value(measurement, name)
    return value if isinstance(value, str) and value.strip() else None


def environment_number(measurement: Measurement, name: str) -> float | None:
    """Return a field as a number; ``None`` when it is not known, or no number."""
    value = environment_value(measurement, name)
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else None
