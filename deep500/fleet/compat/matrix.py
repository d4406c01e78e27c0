"""The matrix of a campaign: a YAML file that says what is combined with what."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import resources
from pathlib import Path
from typing import Any

from deep500._version import __version__
from deep500.core.errors import FleetError, near_miss
from deep500.core.files import read_regular
from deep500.core.texts import one_line, shown, shown_path
from deep500.fleet.libraries import YAML

__all__ = ["Matrix"]

#: Keys that pip's options stand under, and the options.
_PIP_TEXTS = {"index_url": "--index-url", "extra_index_url": "--extra-index-url", "find_links": "--find-links"}
_PIP_SWITCHES = {"no_index": "--no-index", "pre": "--pre"}

#: What stands for "without CUDA" among a framework's ways to install.
NO_CUDA = "none"


@dataclass(frozen=True)
class Matrix:
    """A matrix that follows the schema.

    Attributes:
        content: What the file holds.
        path: The file, absolute; paths within it are relative to its folder.
    """

    content: Mapping[str, Any]
    path: Path

    @classmethod
    def read(cls, path: str | Path) -> Matrix:
        """Return the matrix of a file.

        Raises:
            FleetError: It cannot be read, or a key or value is not accepted.
            MissingDependencyError: The library that reads YAML is not installed.
        """
        YAML.require("Reading a matrix")
        place = Path(path)
        try:
            text = read_regular(place).decode("utf-8-sig")
        except OSError as error:
            raise FleetError(f"The matrix {shown_path(place)} cannot be read: {error.strerror or error}.") from error
        except UnicodeDecodeError as error:
            raise FleetError(f"The matrix {shown_path(place)} is no UTF-8 (byte {error.start}); save it so.") from error
        content = _parsed(text, place)
        if content is None:
            raise FleetError(f"The matrix {shown_path(place)} is empty; it needs at least the key 'frameworks'.")
        _check(content, place)
        return cls(content, place.resolve())

    @property
    def hash(self) -> str:
        """The SHA-256 of what it says."""
        return hashlib.sha256(json.dumps(self.content, sort_keys=True).encode()).hexdigest()

    @property
    def name(self) -> str:
        """Its name: what it says, or that of its file."""
        return str(self.content.get("name", self.path.stem))

    @cached_property
    def frameworks(self) -> dict[str, dict[str, Any]]:
        """What is said of each distribution; a list of versions stands for a framework with these versions."""
        given = self.content["frameworks"]
        return {name: dict(said) if isinstance(said, dict) else {"versions": said} for name, said in given.items()}

    def axis(self, name: str, default: Sequence[Any]) -> list[Any]:
        """Return the values of an axis."""
        value = self.content.get(name, default)
        return list(value) if isinstance(value, (list, tuple)) else [value]

    def newest(self, framework: str) -> int | None:
        """Return how many of the newest versions of the package index are wanted; ``None`` where they are listed."""
        versions = self.frameworks[framework]["versions"]
        return int(versions.split()[1]) if isinstance(versions, str) else None

    def pip_options(self, framework: str, cuda: str | None) -> tuple[str, ...]:
        """Return pip's options for a framework as lines of a requirements file; paths become absolute."""
        said = self.frameworks[framework]
        layers = (self.content.get("pip"), said.get("pip"), self.way(framework, cuda).get("pip"))
        merged: dict[str, Any] = {}
        for layer in layers:
            merged.update(layer or {})
        lines = [option for key, option in _PIP_SWITCHES.items() if merged.get(key)]
        for key, option in _PIP_TEXTS.items():
            values = merged.get(key, [])
            lines += [f"{option} {self._located(value)}" for value in ([values] if isinstance(values, str) else values)]
        return tuple(lines)

    def way(self, framework: str, cuda: str | None) -> Mapping[str, Any]:
        """Return how a framework is installed for a CUDA runtime; empty where nothing special is said."""
        found: Mapping[str, Any] = self.frameworks[framework].get("cuda", {}).get(cuda or NO_CUDA, {})
        return found

    def requirements(self, framework: str, version: str, cuda: str | None, recipe: str | None) -> tuple[str, ...]:
        """Return what pip installs, the framework first."""
        said, way = self.frameworks[framework], self.way(framework, cuda)
        extras = [*said.get("extras", ()), *way.get("extras", ())]
        lines = [f"{framework}[{','.join(extras)}]=={version}" if extras else f"{framework}=={version}"]
        for layer in (way, said, self.content):
            lines += layer.get("extra_requirements", ())
        if recipe is not None:
            lines.append(self._deep500())
        return tuple(dict.fromkeys(map(self._with_location, lines)))

    def recipe(self, name: str | None) -> str | None:
        """Return a recipe as jobs name it: a file by its absolute path, one that comes with Deep500 by its name."""
        if name is None or not name.endswith(".py"):
            return name
        path = self._path(name)
        if not path.is_file():
            raise FleetError(f"The recipe {shown(name)} of the matrix is no file beside it.")
        return str(path)

    def probe(self, framework: str) -> str | None:
        """Return the name of a framework's snippets as the matrix gives it; that of a file becomes absolute.

        Raises:
            FleetError: There is no such file.
        """
        name: str | None = self.frameworks[framework].get("probe")
        if name is None or not name.endswith(".py"):
            return name
        path = self._path(name)
        if not path.is_file():
            raise FleetError(f"The probe {shown(name)} of {framework!r} in the matrix is no file beside it.")
        return str(path)

    def _deep500(self) -> str:
        return str(self.content.get("deep500", f"deep500=={__version__}"))

    def _located(self, value: str) -> str:
        """Return a place for pip; what is no address is a path."""
        return value if "://" in value else str(self._path(value))

    def _with_location(self, line: str) -> str:
        """Return a requirement; one that is a path becomes absolute."""
        if line.startswith((".", "/", "~")) or (line.endswith((".whl", ".tar.gz")) and "://" not in line):
            return str(self._path(line))
        return line

    def _path(self, value: str) -> Path:
        return (self.path.parent / Path(value).expanduser()).resolve()


def _parsed(text: str, place: Path) -> Any:
    import yaml

    try:
        return yaml.load(text, _loader())
    except yaml.YAMLError as error:
        raise FleetError(f"The matrix {shown_path(place)} is no YAML: {one_line(str(error))}.") from error
    except RecursionError as error:
        raise FleetError(f"The matrix {shown_path(place)} is nested too deeply.") from error


def _loader() -> Any:
    """Return the safe loader, which in addition refuses a key that is given twice."""
    import yaml

    class Loader(yaml.SafeLoader):  # type: ignore[misc] # PyYAML brings no types
        """Reads plain values only."""

        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            """Return a mapping, unless it says something twice."""
            keys = [self.construct_object(key, deep=True) for key, _ in node.value]
            for number, key in enumerate(keys):
                if key in keys[:number]:
                    raise yaml.YAMLError(f"the key {shown(key)} is given twice{node.value[number][0].start_mark}")
            return super().construct_mapping(node, deep)

    return Loader


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
    if isinstance(value, float) and "string" in _types(fault):
        return f"{value!r} is a number; write it in quotes, since 3.10 without them is read as 3.1."
    if fault.validator == "type" and isinstance(value, int) and "string" in _types(fault):
        return f"{value!r} is a number; write it in quotes."
    if fault.validator == "required":
        missing = [key for key in fault.validator_value if key not in value]
        return f"the key {missing[0]!r} is missing."
    if fault.validator == "pattern":
        return f"{shown(value)} is not accepted; needed is what matches {fault.validator_value}."
    return f"{one_line(fault.message)[:300]}."


def _types(fault: Any) -> Iterable[str]:
    types = fault.validator_value if fault.validator == "type" else ()
    return [types] if isinstance(types, str) else types
