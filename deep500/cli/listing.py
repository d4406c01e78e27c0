"""What there is: the plug-ins of each kind, with a line on each, read from their files without importing them."""

from __future__ import annotations

import ast
import importlib.metadata
import importlib.util
import re
from collections.abc import Callable, Iterator
from pathlib import Path

from deep500.cli.plain_formula import plain_formula
from deep500.core.errors import UnknownNameError, near_miss
from deep500.core.registry import Registry
from deep500.core.requirement import Requirement
from deep500.frameworks import FRAMEWORKS
from deep500.recipe.shipped import shipped_recipes

__all__ = ["KINDS", "list_kind", "one_line_description"]

Row = tuple[str, ...]


def list_kind(kind: str) -> list[Row]:
    """Return a row for each plug-in of a kind: its name, and one line on it.

    Args:
        kind: A key of :data:`KINDS`.

    Raises:
        UnknownNameError: There is no such kind.
    """
    if kind not in KINDS:
        raise UnknownNameError(f"There is no kind {kind!r} to list.{near_miss(kind, KINDS)} Kinds: {', '.join(KINDS)}.")
    return list(KINDS[kind]())


def one_line_description(file: Path) -> str:
    """Return the first line of the docstring of what a plug-in file exports; of the file's own where that has none."""
    tree = ast.parse(file.read_bytes(), filename=str(file))
    exported = _exported_names(tree)
    for node in tree.body:
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)) and exported == [node.name]:
            text = ast.get_docstring(node)
            if text:
                return _first_sentence(text)
    return _first_sentence(ast.get_docstring(tree) or "")


def _first_sentence(text: str) -> str:
    """Return a docstring's first sentence as plain text, without the marks of reStructuredText."""
    paragraph = " ".join(text.partition("\n\n")[0].split())
    sentence = re.split(r"(?<=[^.]{2})\. (?=[A-Z])", paragraph)[0].rstrip(".")
    return re.sub(r":([a-z]+):`~?([^`]*)`|``([^`]*)``", _without_marks, sentence)


def _without_marks(match: re.Match[str]) -> str:
    return plain_formula(match[2]) if match[1] == "math" else match[2] or match[3]


def _exported_names(tree: ast.Module) -> list[str]:
    for node in tree.body:
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == "__all__" for t in node.targets):
            names = ast.literal_eval(node.value)
            return [str(name) for name in names]
    return []


def _plugins(*packages: str) -> Callable[[], Iterator[Row]]:
    def rows() -> Iterator[Row]:
        found: dict[str, Row] = {}
        for package in packages:
            for name in Registry("plug-in", package=package).names():
                found.setdefault(name, (name, _described(package, name)))
        yield from (found[name] for name in sorted(found))

    return rows


def _communicators() -> Iterator[Row]:
    """Yield the transports, those of the adapters too."""
    from deep500.distributed.catalogue import COMMUNICATORS

    for name in COMMUNICATORS.names():
        adapter = COMMUNICATORS.adapter_of(name)
        place = (COMMUNICATORS.package, name) if adapter is None else (adapter, COMMUNICATORS.kind)
        yield name, _described(*place)


def _described(package: str, name: str) -> str:
    spec = importlib.util.find_spec(package)
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        for file in (Path(folder) / f"{name}.py", Path(folder) / name / "__init__.py"):
            if file.is_file():
                return one_line_description(file)
    points = importlib.metadata.entry_points(group=package, name=name)
    sources = [f"{point.dist.name} {point.dist.version}" for point in points if point.dist is not None]
    return f"From {', '.join(sources)}" if sources else ""


def _frameworks() -> Iterator[Row]:
    for name in FRAMEWORKS.names():
        requirement = getattr(FRAMEWORKS.get(name), "REQUIREMENT", None)
        if not isinstance(requirement, Requirement):
            state = "installed"
        elif requirement.is_installed():
            state = requirement.version()
        else:
            state = f"pip install 'deep500[{requirement.extra}]'"
        yield name, state, _described(FRAMEWORKS.package, name)


def _recipes() -> Iterator[Row]:
    for name, file in shipped_recipes().items():
        yield name, one_line_description(file)


#: What can be listed. A row of frameworks has their installed version, or how to install them, in between.
KINDS: dict[str, Callable[[], Iterator[Row]]] = {
    "frameworks": _frameworks,
    "models": _plugins("deep500.networks.models"),
    "datasets": _plugins("deep500.datasets.library"),
    "augmentations": _plugins("deep500.datasets.augmentations"),
    "optimizers": _plugins("deep500.training.optimizers"),
    "samplers": _plugins("deep500.training.samplers"),
    "schedules": _plugins("deep500.training.schedules"),
    "losses": _plugins("deep500.networks.losses"),
    "transformations": _plugins("deep500.networks.transforms"),
    "metrics": _plugins("deep500.measure.metrics", "deep500.training.metrics", "deep500.distributed.metrics"),
    "events": _plugins("deep500.training.events"),
    "schemes": _plugins("deep500.distributed.schemes"),
    "communicators": _communicators,
    "distributed_metrics": _plugins("deep500.distributed.metrics"),
    "exchange_algorithms": _plugins("deep500.distributed.simulation.algorithms"),
    "operators": _plugins("deep500.operators.library"),
    "recipes": _recipes,
    "workloads": _plugins("deep500.workloads"),
    "outcome_readers": _plugins("deep500.fleet.readers"),
    "problem_sets": _plugins("deep500.operators.problem_sets"),
}
