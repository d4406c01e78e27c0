"""One cell of a matrix: a framework in one version, on one kind of machine, with so many ranks."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from deep500.core.errors import FleetError
from deep500.core.texts import shown

__all__ = ["Cell", "DroppedCell"]

#: Seconds of a job beside its environment and its probe: start, copying, a file lock.
_MARGIN_S = 60.0

#: What says that a cell is another one. The others (times, memory, where packages come from) say how it is run.
_IDENTITY = (
    "framework",
    "version",
    "python",
    "cuda",
    "compute_capability",
    "ranks",
    "recipe",
    "adapter",
    "requirements",
)


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and value.isprintable()


def _is_optional_text(value: Any) -> bool:
    return value is None or _is_text(value)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def _is_optional_count(value: Any) -> bool:
    return value is None or _is_count(value)


def _is_number(value: Any) -> bool:
    return value is None or (isinstance(value, str) and re.fullmatch(r"[0-9]+(\.[0-9]+)*", value) is not None)


def _is_time(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value < 1e9


#: What each field may hold where it is read, and how to say so; others hold a text or nothing.
_KINDS: dict[str, tuple[Callable[[Any], bool], str]] = {
    **dict.fromkeys(("framework", "version", "module"), (_is_text, "a text")),
    "python": (lambda value: value is not None and _is_number(value), "a version such as 3.11"),
    **dict.fromkeys(("cuda", "compute_capability"), (_is_number, "a version of numbers or null")),
    **dict.fromkeys(("ranks", "cpus"), (_is_count, "a whole number of at least 1")),
    "memory_mb": (_is_optional_count, "a whole number of at least 1 or null"),
    **dict.fromkeys(("timeout_s", "environment_timeout_s"), (_is_time, "a number of seconds")),
}


@dataclass(frozen=True)
class Cell:
    """A combination that is tried.

    Attributes:
        framework: The distribution that is installed.
        version: Its version.
        python: The version of Python, ``"3.11"``.
        cuda: The version of the CUDA runtime; ``None`` for none.
        compute_capability: That of the GPUs, ``"8.0"``; ``None`` for a machine without GPUs.
        ranks: How many processes work together, all on one machine.
        recipe: A recipe to run, by name or file; ``None`` for none.
        adapter: The name by which recipes know the framework; ``None`` where no recipe runs.
        module: The name under which the framework is imported.
        probe: The name of the file of its snippets, where that is neither the distribution nor the module.
        requirements: What pip installs, each as a line of a requirements file, the framework's own first.
        pip_options: Where pip finds it: lines of a requirements file that begin with ``--``.
        timeout_s: Longest time of the stages from ``import`` on.
        environment_timeout_s: Longest time of making the environment.
        cpus: Processor cores that are asked for.
        memory_mb: Memory that is asked for; ``None`` leaves it to the machine.
    """

    framework: str
    version: str
    python: str
    cuda: str | None = None
    compute_capability: str | None = None
    ranks: int = 1
    recipe: str | None = None
    adapter: str | None = None
    module: str = ""
    probe: str | None = None
    requirements: tuple[str, ...] = ()
    pip_options: tuple[str, ...] = ()
    timeout_s: float = 600.0
    environment_timeout_s: float = 1800.0
    cpus: int = 1
    memory_mb: int | None = None

    @property
    def gpus(self) -> int:
        """How many GPUs are asked for: one a rank, none where the cell has no compute capability."""
        return 0 if self.compute_capability is None else self.ranks

    @property
    def limit_s(self) -> float:
        """The longest time of its job, which a scheduler may enforce; the job ends itself before."""
        return self.environment_timeout_s + self.timeout_s + _MARGIN_S

    @property
    def cell_id(self) -> str:
        """A name for people and file systems, with the beginning of a hash of what the cell is."""
        parts = [self.framework, self.version, f"python{self.python}"]
        parts += [f"cuda{self.cuda}"] if self.cuda else []
        parts += [f"cc{self.compute_capability}"] if self.compute_capability else []
        parts += [f"ranks{self.ranks}"]
        parts += [re.sub(r"\.py$", "", self.recipe.rsplit("/", 1)[-1])] if self.recipe else []
        slug = re.sub(r"[^A-Za-z0-9._]+", "-", "-".join(parts)).strip("-.")[:96]
        content = json.dumps({name: getattr(self, name) for name in _IDENTITY}, sort_keys=True)
        return f"{slug}-{hashlib.sha256(content.encode()).hexdigest()[:8]}"

    def to_dict(self) -> dict[str, Any]:
        """Return the cell as what JSON can hold, with what follows from its fields."""
        fields = dataclasses.asdict(self)
        fields["requirements"], fields["pip_options"] = list(self.requirements), list(self.pip_options)
        return {"cell_id": self.cell_id, **fields, "gpus": self.gpus}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Cell:
        """Return the cell that :meth:`to_dict` wrote.

        Raises:
            FleetError: A field is missing, unknown or of a wrong kind.
        """
        if not isinstance(content, Mapping):
            raise FleetError(f"A cell is {shown(content)}; an object is needed.")
        names = {field.name for field in dataclasses.fields(cls)}
        given = {name: value for name, value in content.items() if name in names}
        for name in ("requirements", "pip_options"):
            value = given.get(name, [])
            if not isinstance(value, (list, tuple)) or not all(map(_is_text, value)):
                raise FleetError(f"{name!r} of a cell is {shown(value)}; a list of texts is needed.")
            given[name] = tuple(value)
        for name, value in given.items():
            fits, needed = _KINDS.get(name, (_is_optional_text, "a text or null"))
            if name not in ("requirements", "pip_options") and not fits(value):
                raise FleetError(f"{name!r} of a cell is {shown(value)}; {needed} is needed.")
        try:
            cell = cls(**given)
        except TypeError as error:
            raise FleetError(f"A cell cannot be read: {error}.") from error
        named = cell.cell_id
        if content.get("cell_id", named) != named:
            raise FleetError(
                f"The cell {shown(content['cell_id'])} holds what is named {named!r}: it was changed after it was "
                "planned. Plan the campaign anew."
            )
        return cell


@dataclass(frozen=True)
class DroppedCell:
    """A combination that is not tried.

    Attributes:
        cell: Which.
        source: What says so: ``pool``, ``package index``, ``rule``, ``newest``, ``matrix`` or ``duplicate``.
        reason: Why, in one sentence.
    """

    cell: Cell
    source: str
    reason: str

    def to_dict(self) -> dict[str, Any]:
        """Return it as what JSON can hold."""
        return {"cell": self.cell.to_dict(), "source": self.source, "reason": self.reason}

    @classmethod
    def from_dict(cls, content: Any) -> DroppedCell:
        """Return the cell that :meth:`to_dict` wrote.

        Raises:
            FleetError: A field is missing, or of a wrong kind.
        """
        if not isinstance(content, Mapping) or not all(_is_text(content.get(name)) for name in ("source", "reason")):
            raise FleetError(f"A dropped cell is {shown(content)}; its cell, source and reason are needed.")
        return cls(Cell.from_dict(content.get("cell", {})), content["source"], content["reason"])
