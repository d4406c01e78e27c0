"""The file of a matrix: YAML of plain values, held to a schema."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from importlib import resources
from pathlib import Path
from typing import Any

from deep500.core.errors import FleetError, near_miss
from deep500.core.files import read_regular
from deep500.core.texts import message_of, one_line, shown, shown_path
from deep500.fleet.libraries import YAML

__all__ = ["read_content"]

#: A matrix that people write is far from any of these.
_MOST_BYTES = 4_000_000
_MOST_VALUES = 200_000
_DEEPEST = 20
_LARGEST = 10**12

#: Texts for people, which may be written over several lines.
_PROSE = ("name", "reason")

#: What the schema calls kinds of values, in words.
_KINDS = {
    "array": "a list",
    "object": "keys with values",
    "string": "a text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "null": "null",
}


def read_content(place: Path) -> dict[str, Any]:
    """Return what the file of a matrix holds.

    Raises:
        FleetError: It cannot be read, or a key or value is not accepted.
        MissingDependencyError: The library that reads YAML is not installed.
    """
    YAML.require("Reading a matrix")
    try:
        data = read_regular(place)
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise FleetError(f"The matrix {shown_path(place)} is no UTF-8 (byte {error.start}); save it so.") from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or message_of(error)
        raise FleetError(f"The matrix {shown_path(place)} cannot be read: {reason}.") from error
    if len(data) > _MOST_BYTES:
        raise FleetError(
            f"The matrix {shown_path(place)} has {len(data):,} bytes; accepted are {_MOST_BYTES:,}. Is it another file?"
        )
    parsed = _parsed(text, place)
    if parsed is None:
        raise FleetError(f"The matrix {shown_path(place)} is empty; it needs at least the key 'frameworks'.")
    try:
        content: dict[str, Any] = _plain(parsed, (), iter(range(_MOST_VALUES)))
    except _RefusedError as error:
        raise FleetError(f"The matrix {shown_path(place)} is not accepted at {error}") from error
    _check(content, place)
    return content


def _parsed(text: str, place: Path) -> Any:
    import yaml

    try:
        return yaml.load(text, _loader())
    except (yaml.YAMLError, ValueError, OverflowError) as error:  # a date or a number that cannot be
        said = one_line(str(error)).replace('in "<unicode string>", ', "at ")
        raise FleetError(f"The matrix {shown_path(place)} is no YAML: {said}.") from error
    except RecursionError as error:
        raise FleetError(f"The matrix {shown_path(place)} is nested too deeply.") from error


def _loader() -> Any:
    """Return the safe loader, which in addition refuses a key that is given twice."""
    import yaml

    class Loader(yaml.SafeLoader):  # type: ignore[misc] # PyYAML brings no types
        """Reads plain values only."""

        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            """Return a mapping, unless it says something twice."""
            seen = set()
            for key, _ in node.value:
                if not isinstance(key, yaml.ScalarNode) or key.tag == "tag:yaml.org,2002:merge":
                    continue
                if (key.tag, key.value) in seen:
                    raise yaml.YAMLError(f"the key {shown(key.value)} is given twice{key.start_mark}")
                seen.add((key.tag, key.value))
            return super().construct_mapping(node, deep)

    return Loader


class _RefusedError(Exception):
    """A value is none that a matrix may hold."""

    def __init__(self, where: tuple[str, ...], said: str) -> None:
        super().__init__(f"{'.'.join(where) or 'the matrix itself'}: {said}")


def _plain(value: Any, where: tuple[str, ...], left: Iterator[int]) -> Any:
    """Return a value with texts as keys and nothing in it that JSON, a file's name or a terminal could trip over.

    Aliases of YAML become copies, so ``left`` bounds what a few lines of them can unfold to.
    """
    if next(left, None) is None:
        raise _RefusedError(where[:1], f"there are more than {_MOST_VALUES:,} values; shorten the matrix.")
    if len(where) > _DEEPEST:
        raise _RefusedError(where[:1], "it is nested too deeply.")
    if isinstance(value, dict):
        return {_key(key, where): _plain(item, (*where, str(key)), left) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item, (*where, str(number)), left) for number, item in enumerate(value)]
    if isinstance(value, str):
        return _text(" ".join(value.split()) if where and where[-1] in _PROSE else value, where)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, (int, float)):
        if not abs(value) <= _LARGEST:  # also what is no number at all
            raise _RefusedError(where, f"{shown(value)} is no number that could be meant.")
        return value
    raise _RefusedError(where, f"{shown(value)} is neither a text nor a number; write it in quotes if a text is meant.")


def _key(key: Any, where: tuple[str, ...]) -> str:
    if isinstance(key, str):
        return _text(key, where)
    raise _RefusedError(where, f"the key {shown(key)} is no text; write it in quotes.")


def _text(text: str, where: tuple[str, ...]) -> str:
    if not text.isprintable():
        raise _RefusedError(where, f"{shown(text)} holds a line break or a control character; leave it out.")
    return text


def _check(content: Any, place: Path) -> None:
    """Hold a matrix to its schema and name the first fault.

    Raises:
        FleetError: It does not follow it.
    """
    import jsonschema

    schema = json.loads(resources.files("deep500.fleet.compat").joinpath("matrix.schema.json").read_text("utf-8"))
    faults = sorted(
        jsonschema.Draft202012Validator(schema).iter_errors(content), key=lambda fault: list(fault.path) == []
    )
    if faults:
        fault = _deepest(faults[0])
        where = ".".join(str(part) for part in fault.absolute_path) or "the matrix itself"
        raise FleetError(f"The matrix {shown_path(place)} is not accepted at {where}: {_said(fault)}")
    twice = _same_distribution(content["frameworks"])
    if twice is not None:
        raise FleetError(
            f"The matrix {shown_path(place)} is not accepted at frameworks: {twice[0]!r} and {twice[1]!r} are one "
            "distribution; name it once."
        )


def _same_distribution(names: Iterable[str]) -> tuple[str, str] | None:
    """Return two names of one distribution: what differs in case or in the kind of dash only is the same."""
    seen: dict[str, str] = {}
    for name in names:
        other = seen.setdefault(re.sub(r"[-_.]+", "-", name).lower(), name)
        if other != name:
            return other, name
    return None


def _deepest(fault: Any) -> Any:
    """Return the fault within the alternative that the value comes nearest to."""

    def nearness(inner: Any) -> tuple[bool, int, bool]:
        of_another_kind = inner.validator == "type" and inner.absolute_path == fault.absolute_path
        return not of_another_kind, len(inner.absolute_path), inner.validator == "additionalProperties"

    return max(map(_deepest, fault.context), key=nearness) if fault.context else fault


def _said(fault: Any) -> str:
    """Return what is wrong, what is accepted and what to do."""
    value = fault.instance
    if fault.validator == "additionalProperties":
        known = list(fault.schema.get("properties", {}))
        unknown = next(key for key in value if key not in known)
        return f"the key {shown(unknown)} is not known.{near_miss(unknown, known)} Accepted: {', '.join(known)}."
    if fault.validator == "type":
        return _of_another_kind(value, _types(fault))
    if fault.validator == "required":
        missing = [key for key in fault.validator_value if key not in value]
        return f"the key {missing[0]!r} is missing."
    if fault.validator == "dependentRequired":
        return f"{one_line(fault.message)[:300]}; name both."
    if fault.validator in ("minItems", "minLength") or (fault.validator == "minProperties" and not value):
        return f"{shown(value)} is empty; name at least one, or leave the key out."
    if fault.validator == "minProperties":
        return f"{shown(dict(value))} says of no cell that it is meant; name a version or another key."
    if fault.validator == "pattern":
        wanted = fault.schema.get("description", f"what matches {fault.validator_value}")
        return f"{shown(value)} is not accepted; needed is {wanted}."
    return f"{one_line(fault.message)[:300]}."


def _of_another_kind(value: Any, types: list[str]) -> str:
    if "string" in types and isinstance(value, float):
        return f"{value!r} is a number; write it in quotes, since 3.10 without them is read as 3.1."
    if "string" in types and isinstance(value, int):
        return f"{value!r} is a number; write it in quotes." if not isinstance(value, bool) else _quoted(value)
    wanted = " or ".join(_KINDS[each] for each in types)
    hint = ""
    if types == ["array"] and not isinstance(value, (Mapping, type(None))):
        hint = f" Write [{json.dumps(value)}]." if len(str(value)) < 40 else " Put it in brackets."
    return f"{shown(value)} is not accepted; needed is {wanted}.{hint}"


def _quoted(value: bool) -> str:
    return f"{shown(value)} is what YAML makes of on, off, yes and no; write it in quotes."


def _types(fault: Any) -> list[str]:
    types = fault.validator_value
    return [types] if isinstance(types, str) else list(types)
