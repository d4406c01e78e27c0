"""Custom operators by name, so that a network which was saved finds them again."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from deep500.core.errors import OperatorError, UnknownNameError, near_miss
from deep500.core.texts import shown
from deep500.operators.custom._checks import AttributeValue, attribute_value
from deep500.operators.custom.cpp_op import CppOp
from deep500.operators.custom.custom_op import CustomOp, CustomPythonOp
from deep500.operators.custom.native_op import NativeOp

__all__ = ["find_custom_op", "forget_custom_op", "register_custom_op", "registered_custom_ops"]


@dataclass
class _Entry:
    """What a name stands for: a class or a library, and objects of it with different attributes."""

    source: Any
    known: list[CustomOp] = field(default_factory=list)


_LOCK = threading.RLock()
_ENTRIES: dict[str, _Entry] = {}


def register_custom_op(op: CustomOp | type[CustomOp], *, replace: bool = False) -> None:
    """Make an operator known by its name, for networks that hold it as a node.

    Args:
        op: The operator, or its class. Of a class, objects with any values of attributes are then made as networks need
            them, by ``cls(**attributes)``.
        replace: Let the operator take the place of another one of its name.

    Raises:
        OperatorError: Another operator has the name, or it is no operator.
    """
    if not isinstance(op, CustomOp) and not (isinstance(op, type) and issubclass(op, CustomOp)):
        raise OperatorError(
            f"{shown(op)} cannot be registered as an operator; accepted are custom operators and their classes."
        )
    name = op.name if isinstance(op, CustomOp) else vars(op).get("name")
    if not isinstance(name, str):
        raise OperatorError(f"{shown(op)} has no name of its own; register an object of it.")
    source = _source(op) if isinstance(op, CustomOp) else op
    with _LOCK:
        entry = _ENTRIES.get(name)
        if entry is None or (replace and not _same(entry.source, source)):
            entry = _ENTRIES[name] = _Entry(source)
        elif not _same(entry.source, source):
            raise OperatorError(
                f"There is a custom operator named {name!r} already, {_described(entry.source)}; this one is "
                f"{_described(source)}. Give one of them another name, or replace it: register_custom_op(op, "
                f"replace=True)."
            )
        if isinstance(op, CustomOp) and all(_rounded(o.attributes) != _rounded(op.attributes) for o in entry.known):
            entry.known.append(op)


def find_custom_op(name: str, attributes: Mapping[str, Any] | None = None) -> CustomOp:
    """Return the operator of a name, with the values of its attributes.

    Args:
        name: The name.
        attributes: The values, as a network has them; numbers count as equal if their float32 are, as ONNX stores them.

    Raises:
        UnknownNameError: No operator of the name was registered.
        OperatorError: There is none with such attributes.
    """
    with _LOCK:
        entry = _ENTRIES.get(name)
        if entry is None:
            raise UnknownNameError(
                f"There is no custom operator named {name!r}.{near_miss(name, _ENTRIES)} Known: "
                f"{', '.join(sorted(_ENTRIES)) or 'none'}. Import the module that defines it, and make it known there "
                f"by register_custom_op(op)."
            )
        values = {key: attribute_value(value) for key, value in (attributes or {}).items()}
        found = next((op for op in entry.known if _rounded(op.attributes) == _rounded(values)), None)
        if found is None:
            found = _made(name, entry, values)
            entry.known.append(found)
        return found


def forget_custom_op(name: str) -> None:
    """Take a name back; nothing happens where there is none."""
    with _LOCK:
        _ENTRIES.pop(name, None)


def registered_custom_ops() -> list[str]:
    """Return all names, sorted."""
    with _LOCK:
        return sorted(_ENTRIES)


def _source(op: CustomOp) -> Any:
    """Return what makes two operators of one name the same, up to their attributes."""
    if isinstance(op, (CustomPythonOp, CppOp)):
        return type(op)
    return op.library.path if type(op) is NativeOp else op


def _same(one: Any, other: Any) -> bool:
    return one is other or (type(one) is type(other) and not isinstance(one, (type, CustomOp)) and one == other)


def _described(source: Any) -> str:
    return f"{source.__module__}.{source.__qualname__}" if isinstance(source, type) else shown(str(source))


def _made(name: str, entry: _Entry, values: Mapping[str, Any]) -> CustomOp:
    try:
        if isinstance(entry.source, type):
            made: CustomOp = entry.source(**values)
        elif entry.known and isinstance(entry.known[-1], NativeOp):
            made = entry.known[-1].with_attributes(**values)
        else:
            raise OperatorError("it cannot be made with other attributes than those it was registered with")
        _ = made.attributes
    except (OperatorError, TypeError, ValueError) as error:
        listed = ", ".join(f"{key}={shown(value)}" for key, value in values.items()) or "no attributes"
        raise OperatorError(f"The custom operator {name!r} with {listed} cannot be made: {error}") from error
    return made


def _rounded(values: Mapping[str, AttributeValue | None]) -> dict[str, Any]:
    """Return attributes as ONNX stores them: floats in float32, a list without entries without a type."""
    return {key: _stored(value) for key, value in values.items()}


def _stored(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(_stored(entry) for entry in value)
    if isinstance(value, float):
        with np.errstate(over="ignore"):
            rounded = np.float32(value)
        return "nan" if np.isnan(rounded) else float(rounded)
    return value
