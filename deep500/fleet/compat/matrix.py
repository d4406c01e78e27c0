"""The matrix of a campaign: a YAML file that says what is combined with what."""

from __future__ import annotations

import hashlib
import json
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import resources
from pathlib import Path
from typing import Any

from deep500._version import __version__
from deep500.core.errors import FleetError, near_miss
from deep500.core.texts import message_of, shown
from deep500.fleet.compat._matrix_file import read_content
from deep500.fleet.libraries import PACKAGING
from deep500.recipe.shipped import shipped_recipes

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
        place = Path(path)
        return cls(read_content(place), place.resolve())

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
            places = [values] if isinstance(values, str) else values
            lines += [f"{option} {shlex.quote(self._located(value))}" for value in places]
        return tuple(lines)

    def way(self, framework: str, cuda: str | None) -> Mapping[str, Any]:
        """Return how a framework is installed for a CUDA runtime; empty where nothing special is said."""
        found: Mapping[str, Any] = self.frameworks[framework].get("cuda", {}).get(cuda or NO_CUDA, {})
        return found

    def requirements(self, framework: str, version: str, cuda: str | None, recipe: str | None) -> tuple[str, ...]:
        """Return what pip installs, the framework first.

        Raises:
            FleetError: A line names no package.
        """
        said, way = self.frameworks[framework], self.way(framework, cuda)
        extras = [*said.get("extras", ()), *way.get("extras", ())]
        lines = [f"{framework}[{','.join(extras)}]=={version}" if extras else f"{framework}=={version}"]
        for layer in (way, said, self.content):
            lines += layer.get("extra_requirements", ())
        if recipe is not None:
            lines.append(self._deep500())
        return tuple(dict.fromkeys(map(self._requirement, lines)))

    def recipe(self, name: str | None) -> str | None:
        """Return a recipe as jobs name it: a file by its absolute path, one that comes with Deep500 by its name.

        Raises:
            FleetError: There is no such file; or no such recipe, where cells install this release of Deep500.
        """
        if name is not None and not name.endswith(".py"):
            known = shipped_recipes()
            if "deep500" not in self.content and name not in known:
                raise FleetError(
                    f"There is no recipe {shown(name)}, which the matrix names.{near_miss(name, known)} There are: "
                    f"{', '.join(known)}, and files of your own (mine.py)."
                )
        if name is None or not name.endswith(".py"):
            return name
        return str(self._file(name, f"The recipe {shown(name)} of the matrix"))

    def probe(self, framework: str) -> str | None:
        """Return the name of a framework's snippets as the matrix gives it; that of a file becomes absolute.

        Raises:
            FleetError: There are none.
        """
        name: str | None = self.frameworks[framework].get("probe")
        if name is None:
            return name
        if name.endswith(".py"):
            return str(self._file(name, f"The probe {shown(name)} of {framework!r} in the matrix"))
        folder = resources.files("deep500.fleet.compat").joinpath("probes")
        known = sorted(each.name.partition(".")[0] for each in folder.iterdir() if each.name.endswith(".py.tmpl"))
        if re.sub(r"[-_.]+", "_", name.lower()) not in known:
            raise FleetError(
                f"There is no probe {shown(name)}, which {framework!r} in the matrix names.{near_miss(name, known)} "
                f"There are: {', '.join(known)}, and files of your own (mine.py)."
            )
        return name

    def _deep500(self) -> str:
        return str(self.content.get("deep500", f"deep500=={__version__}"))

    def _located(self, value: str) -> str:
        """Return a place for pip; what is no address is a path."""
        return value if "://" in value else str(self._path(value))

    def _requirement(self, line: str) -> str:
        """Return a requirement as pip is given it; one that is a path becomes absolute."""
        if line.startswith((".", "/", "~")) or (line.endswith((".whl", ".tar.gz")) and "://" not in line):
            path = self._path(line)
            if not path.exists():
                raise FleetError(f"The requirement {shown(line)} of the matrix is no file or folder beside it.")
            return str(path)
        if line.startswith("-"):
            raise FleetError(
                f"The requirement {shown(line)} of the matrix is an option of pip; write packages, and options under "
                "the key 'pip'."
            )
        if "://" not in line:
            _check_requirement(line)
        return line

    def _file(self, name: str, what: str) -> Path:
        path = self._path(name)
        if not path.is_file():
            raise FleetError(f"{what} is no file beside it.")
        return path

    def _path(self, value: str) -> Path:
        """Return a path of the matrix, absolute.

        Raises:
            FleetError: It cannot be one: a user that there is not, a link to itself, a name that is too long.
        """
        try:
            path = (self.path.parent / Path(value).expanduser()).resolve()
            path.exists()
        except (OSError, RuntimeError, ValueError) as error:
            reason = getattr(error, "strerror", None) or message_of(error)
            raise FleetError(f"{shown(value)} of the matrix is no path: {reason.rstrip('.')}.") from error
        return path


def _check_requirement(line: str) -> None:
    """Hold a line to what a requirement is, so that a slip does not fail in every cell.

    Raises:
        FleetError: It is none.
    """
    PACKAGING.require("Planning a campaign")
    from packaging.requirements import InvalidRequirement, Requirement

    try:
        Requirement(line)
    except InvalidRequirement as error:
        raise FleetError(
            f"The requirement {shown(line)} of the matrix is none, such as 'scipy>=1.11' (PEP 508); correct it."
        ) from error
