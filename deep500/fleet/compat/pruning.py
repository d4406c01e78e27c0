"""Why a cell of a matrix need not be tried: no machine, no package, a rule that is known, or too old."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from deep500.core.errors import FleetError, near_miss
from deep500.core.texts import shown
from deep500.fleet.compat.cell import Cell
from deep500.fleet.compat.matrix import NO_CUDA, Matrix
from deep500.fleet.compat.package_index import PackageIndex
from deep500.fleet.libraries import PACKAGING

PACKAGING.require("Planning a campaign")
from packaging.specifiers import InvalidSpecifier, SpecifierSet  # noqa: E402 - what it is needed for is said first
from packaging.version import InvalidVersion, Version  # noqa: E402

__all__ = ["Pruner", "newest_first"]

#: Keys of a rule that are compared as versions.
_COMPARED = ("version", "python", "cuda", "compute_capability", "ranks")


class Pruner:
    """Says of each cell why it is dropped, if it is.

    What costs nothing to find out is asked first, and the package index last.

    Attributes:
        notes: What could not be found out or has no effect, each once.
    """

    def __init__(self, matrix: Matrix, index: PackageIndex) -> None:
        """Take what there is to know.

        Raises:
            FleetError: A version or a specifier of the matrix is none.
        """
        self._matrix, self._index = matrix, index
        self._rules = [(rule, _conditions(rule, matrix)) for rule in matrix.content.get("rules", ())]
        self._newest = {name: self._kept(name) for name in matrix.frameworks}
        self.notes: list[str] = [
            f"The rule {shown(rule['reason'])} is of {rule['framework']}, which the matrix does not try."
            f"{near_miss(rule['framework'], matrix.frameworks)}"
            for rule, _ in self._rules
            if rule.get("framework", next(iter(matrix.frameworks))) not in matrix.frameworks
        ]

    def reason(self, cell: Cell) -> tuple[str, str] | None:
        """Return what says that a cell is dropped, and why; ``None`` for one that is tried."""
        checks: tuple[tuple[str, Callable[[Cell], str | None]], ...] = (
            ("matrix", self._way),
            ("newest", self._age),
            ("rule", self._rule),
            ("pool", self._pool),
            ("package index", self._offered),
        )
        for source, check in checks:
            reason = check(cell)
            if reason is not None:
                return source, reason
        return None

    def _way(self, cell: Cell) -> str | None:
        """Return why the matrix' axes do not go together."""
        if cell.recipe is not None and cell.adapter is None:
            return f"the matrix does not say by which name recipes know {cell.framework} (its key 'adapter')"
        if cell.cuda is not None and cell.compute_capability is None:
            return f"CUDA {cell.cuda} needs a GPU, and the cell has none"
        ways = self._matrix.frameworks[cell.framework].get("cuda")
        if cell.cuda is not None and (ways is None or cell.cuda not in ways):
            return f"the matrix does not say how {cell.framework} is installed for CUDA {cell.cuda}"
        if cell.cuda is None and cell.compute_capability is not None and ways is not None and NO_CUDA not in ways:
            return f"the matrix says for which CUDA {cell.framework} is installed, and the cell has none"
        return None

    def _kept(self, framework: str) -> set[str] | None:
        """Return the newest versions of a list; ``None`` where all are kept."""
        count, versions = self._matrix.content.get("newest"), self._matrix.frameworks[framework]["versions"]
        if isinstance(versions, str):
            return None
        ordered = newest_first(versions)
        return None if count is None else set(ordered[:count])

    def _age(self, cell: Cell) -> str | None:
        kept = self._newest[cell.framework]
        if kept is None or cell.version in kept:
            return None
        return f"it is not among the newest {self._matrix.content['newest']} versions of {cell.framework}"

    def _rule(self, cell: Cell) -> str | None:
        for rule, conditions in self._rules:
            if all(holds(cell) for holds in conditions):
                return str(rule["reason"])
        return None

    def _pool(self, cell: Cell) -> str | None:
        """Return why no machine of the pool fits; the last thing that was missing is named."""
        machines = self._matrix.content.get("pool")
        if machines is None:
            return None
        left: Sequence[Mapping[str, Any]] = machines
        for what, fits in _POOL_CHECKS:
            left = [machine for machine in left if fits(machine, cell)]
            if not left:
                return f"no machine of the pool {what(cell)}"
        return None

    def _offered(self, cell: Cell) -> str | None:
        pre = _version(cell.version).is_prerelease
        offer = self._index.offer(cell.framework, cell.python, cell.pip_options, pre)
        wanted = _version(cell.version)
        found = [_version(version) for version in offer.versions]
        if wanted in found or (wanted.local is None and wanted.public in {version.public for version in found}):
            return None
        if offer.fault is not None:
            note = f"Whether {cell.framework} is offered for Python {cell.python} is not known: {offer.fault}."
            if note not in self.notes:
                self.notes.append(note)
            return None
        if not offer.versions:
            return f"the package index offers no {cell.framework} for Python {cell.python}"
        return f"the package index does not offer it for Python {cell.python}; its newest is {offer.versions[0]}"


def newest_first(versions: Sequence[str]) -> list[str]:
    """Return versions in their order.

    Raises:
        FleetError: One of them is no version.
    """
    return sorted(versions, key=_version, reverse=True)


def _version(text: str) -> Version:
    try:
        return Version(text)
    except InvalidVersion as error:
        raise FleetError(f"{shown(text)} is no version, such as 2.13.0 (PEP 440); correct the matrix.") from error


def _specifiers(said: Any) -> SpecifierSet:
    """Return what a rule says of versions; a version by itself means itself."""
    text = str(said)
    try:
        return SpecifierSet(f"=={Version(text)}")
    except InvalidVersion:
        return SpecifierSet(text)


def _conditions(rule: Mapping[str, Any], matrix: Matrix) -> list[Callable[[Cell], bool]]:
    """Return what has to hold for a rule."""

    def compared(name: str, specifiers: SpecifierSet) -> Callable[[Cell], bool]:
        def holds(cell: Cell) -> bool:
            value = getattr(cell, name)
            return value is not None and specifiers.contains(_version(str(value)), prereleases=True)

        return holds

    conditions: list[Callable[[Cell], bool]] = []
    for name in _COMPARED:
        if name not in rule:
            continue
        if rule[name] == NO_CUDA:
            conditions.append(lambda cell, name=name: getattr(cell, name) is None)  # type: ignore[misc]
            continue
        try:
            conditions.append(compared(name, _specifiers(rule[name])))
        except InvalidSpecifier as error:
            raise FleetError(
                f"{shown(rule[name])} of the rule {shown(rule['reason'])} is no version, no specifier such as '<2.16' "
                f"or '>=3.10,<3.12' (PEP 440), nor '{NO_CUDA}'; correct {name!r}."
            ) from error
    if "framework" in rule:
        conditions.append(lambda cell: cell.framework == rule["framework"])
    if "recipe" in rule:
        recipe = None if rule["recipe"] == NO_CUDA else matrix.recipe(rule["recipe"])
        conditions.append(lambda cell: cell.recipe == recipe)
    return conditions


def _at_least(machine: Mapping[str, Any], key: str, wanted: float | None) -> bool:
    """Whether a machine has as much; what is not said of it is not held against it."""
    return wanted is None or key not in machine or machine[key] >= wanted


_Check = tuple[Callable[[Cell], str], Callable[[Mapping[str, Any], Cell], bool]]
_POOL_CHECKS: tuple[_Check, ...] = (
    (
        lambda cell: f"has GPUs of compute capability {cell.compute_capability}",
        lambda machine, cell: (
            cell.compute_capability is None or machine.get("compute_capability") == cell.compute_capability
        ),
    ),
    (
        lambda cell: f"has {cell.gpus} such GPUs",
        lambda machine, cell: machine.get("gpus", 0) >= cell.gpus,
    ),
    (
        lambda cell: f"with them has a driver for CUDA {cell.cuda}",
        lambda machine, cell: (
            cell.cuda is None
            or "cuda_at_most" not in machine
            or _version(cell.cuda) <= _version(machine["cuda_at_most"])
        ),
    ),
    (
        lambda cell: f"that is left has Python {cell.python}",
        lambda machine, cell: "python" not in machine or cell.python in machine["python"],
    ),
    (
        lambda cell: f"that is left has {cell.cpus} processor cores",
        lambda machine, cell: _at_least(machine, "cpus", cell.cpus),
    ),
    (
        lambda cell: f"that is left has {cell.memory_mb} MB of memory",
        lambda machine, cell: _at_least(machine, "memory_mb", cell.memory_mb),
    ),
)
