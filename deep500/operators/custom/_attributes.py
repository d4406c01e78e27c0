"""Values of a native operator's attributes, each of the kind that its library declares."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from deep500.core.errors import OperatorError
from deep500.core.texts import shown
from deep500.operators.custom._checks import AttributeValue, attribute_value

__all__ = ["checked_attributes"]


def checked_attributes(name: str, kinds: Mapping[str, str], values: Mapping[str, Any]) -> dict[str, AttributeValue]:
    """Return the values of all attributes, each of its kind.

    Raises:
        OperatorError: One is missing, there is none of the name, or a value is of another kind.
    """
    unknown = sorted(values.keys() - kinds.keys())
    if unknown:
        raise OperatorError(
            f"{name} has no attribute {', '.join(map(repr, unknown))}; it has {', '.join(sorted(kinds)) or 'none'}."
        )
    missing = sorted(kinds.keys() - values.keys())
    if missing:
        raise OperatorError(f"{name} needs a value for its attribute {', '.join(map(repr, missing))}.")
    return {key: _of_kind(name, key, kind, values[key]) for key, kind in kinds.items()}


_ACCEPTED = {
    "int": "a whole number",
    "float": "a number",
    "string": "a text",
    "ints": "a list of whole numbers",
    "floats": "a list of numbers",
}


def _of_kind(name: str, key: str, kind: str, value: Any) -> AttributeValue:
    plain = attribute_value(value)
    if kind == "float" and isinstance(plain, (int, float)):
        return float(plain)
    if kind == "floats" and isinstance(plain, tuple):
        return tuple(float(entry) for entry in plain)
    if kind == "string" and isinstance(plain, str):
        return plain
    if (kind == "int" and isinstance(plain, int)) or (kind == "ints" and isinstance(plain, tuple)):
        entries = [entry for entry in (plain if isinstance(plain, tuple) else (plain,)) if isinstance(entry, int)]
        if any(not -(2**63) <= entry < 2**63 for entry in entries):
            raise OperatorError(f"{name}: the attribute {key} is {shown(value)}, which does not fit into 64 bits.")
        if not isinstance(plain, tuple) or len(entries) == len(plain):
            return plain
    raise OperatorError(f"{name}: the attribute {key} is {shown(value)}; accepted is {_ACCEPTED[kind]}.")
