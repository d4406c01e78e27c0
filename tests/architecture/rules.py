"""The rules of structure, each a function from a project's root to the list of its violations.

A violation is one line, ``path:line: what is wrong``, so that an editor can jump to it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

MAXIMUM_FILE_LINES = 400
MAXIMUM_FUNCTION_LINES = 60

#: What reads a clock, or times something on its own, with ``_ns`` or without.
CLOCKS = {"perf_counter", "monotonic", "process_time", "thread_time", "clock_gettime", "timeit"}


def files_too_long(root: Path) -> list[str]:
    """Find files of the package that are not under 400 lines."""
    lengths = ((path, len(path.read_text().splitlines())) for path in _python_files(root))
    return [
        f"{_name(root, path)}:{length}: {length} lines, must be under {MAXIMUM_FILE_LINES}"
        for path, length in lengths
        if length >= MAXIMUM_FILE_LINES
    ]


def functions_too_long(root: Path) -> list[str]:
    """Find functions, docstring included, that are not under 60 lines."""
    found = []
    for path, node in _nodes(root, ast.FunctionDef, ast.AsyncFunctionDef):
        length = (node.end_lineno or node.lineno) - node.lineno + 1
        if length >= MAXIMUM_FUNCTION_LINES:
            where = f"{_name(root, path)}:{node.lineno}"
            found.append(f"{where}: {node.name} has {length} lines, must be under {MAXIMUM_FUNCTION_LINES}")
    return found


def prints_in_library(root: Path) -> list[str]:
    """Find calls of ``print`` outside the command line."""
    return [
        f"{_name(root, path)}:{node.lineno}: print in the library"
        for path, node in _nodes(root, ast.Call)
        if isinstance(node.func, ast.Name)
        and node.func.id == "print"
        and not path.is_relative_to(root / "deep500" / "cli")
    ]


def swallowed_exceptions(root: Path) -> list[str]:
    """Find places that catch every exception and do nothing about it."""
    found = []
    for path, node in _nodes(root, ast.ExceptHandler, ast.Call):
        if isinstance(node, ast.ExceptHandler):
            swallows = _is_broad(node.type) and all(_does_nothing(statement) for statement in node.body)
        else:
            swallows = ast.unparse(node.func) in {"suppress", "contextlib.suppress"} and any(map(_is_broad, node.args))
        if swallows:
            found.append(f"{_name(root, path)}:{node.lineno}: any exception is swallowed")
    return found


def unfinished_marks(root: Path) -> list[str]:
    """Find notes of unfinished work in the sources."""
    pattern = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")
    files = [
        path
        for folder in ("deep500", "native_ops", "recipes")
        for path in sorted((root / folder).rglob("*"))
        if path.suffix in {".py", ".h", ".cpp", ".cu"}
    ]
    return [
        f"{_name(root, path)}:{number}: {line.strip()}"
        for path in files
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if pattern.search(line)
    ]


def adapters_that_differ(root: Path) -> list[str]:
    """Find public files that one adapter has and another lacks: a missing file is a missing feature."""
    frameworks = root / "deep500" / "frameworks"
    adapters = sorted(path.parent for path in frameworks.glob("*/__init__.py"))
    files = {adapter: _public_files(adapter) for adapter in adapters}
    lacking = {adapter: _lacking(adapter) for adapter in adapters}
    everything = sorted(set().union(*files.values())) if files else []
    return [
        f"{_name(root, adapter)}:1: has no {name}, which {_has_it(files, name)} has"
        for name in everything
        for adapter in adapters
        if name not in files[adapter] and name not in lacking[adapter] and name.split("/")[0] not in lacking[adapter]
    ]


def _lacking(adapter: Path) -> set[str]:
    """Return the files that an adapter says it does not have: the names in its ``LACKS``, which come with reasons."""
    for statement in _parse((adapter / "__init__.py").read_text()).body:
        if isinstance(statement, ast.Assign) and getattr(statement.targets[0], "id", "") == "LACKS":
            reasons: dict[str, str] = ast.literal_eval(statement.value)
            return {name for name, reason in reasons.items() if reason}
    return set()


def plugins_without_single_export(root: Path) -> list[str]:
    """Find plug-ins, in any folder that a registry reads, whose ``__all__`` does not name exactly one object."""
    found = []
    for package in plugin_folders(root):
        folder = root / package.replace(".", "/")
        for path in sorted([*folder.glob("[!_]*.py"), *folder.glob("[!_]*/__init__.py")]):
            exported = _exported_names(_parse(path.read_text()))
            if exported is None or len(exported) != 1:
                found.append(f"{_name(root, path)}:1: __all__ must name exactly the plug-in, it is {exported}")
    return found


def unit_tests_without_source(root: Path) -> list[str]:
    """Find ``tests/unit/**/test_X.py`` that have no ``deep500/**/X.py`` (nor package ``X``) at the same path."""
    unit = root / "tests" / "unit"
    found = []
    for path in sorted(unit.rglob("test_*.py")):
        folder = root / "deep500" / path.parent.relative_to(unit)
        name = path.stem.removeprefix("test_")
        candidates = [folder / f"{name}.py", folder / f"_{name}.py", folder / name / "__init__.py"]
        if not any(candidate.is_file() for candidate in candidates):
            found.append(f"{_name(root, path)}:1: {_name(root, candidates[0])} does not exist")
    return found


def imports_of_the_face(root: Path) -> list[str]:
    """Find modules of the package that import names from ``deep500`` itself, which reaches every level."""
    found = []
    face = root / "deep500" / "__init__.py"
    for path, node in _nodes(root, ast.Import, ast.ImportFrom):
        if path == face:
            continue
        if isinstance(node, ast.Import):
            through_face = any(alias.name == "deep500" for alias in node.names)
        else:
            names = [alias.name for alias in node.names if node.module == "deep500" and not node.level]
            through_face = any(not _is_module(root / "deep500" / name) for name in names)
        if through_face:
            found.append(
                f"{_name(root, path)}:{node.lineno}: imports from deep500 itself, not from the module of a level"
            )
    return found


def clocks_read_outside_measure(root: Path) -> list[str]:
    """Find readings of a clock outside of ``deep500/measure``: there is one way to time something."""
    measure = root / "deep500" / "measure"
    return [
        f"{_name(root, path)}:{line}: {clock} is read, use deep500.measure.clock"
        for path in _python_files(root)
        if not path.is_relative_to(measure)
        for line, clock in _clocks(_parse(path.read_text()))
    ]


def plugin_folders(root: Path) -> list[str]:
    """Return the packages whose files a ``Registry(kind, package)`` of the project offers one by one."""
    found = set()
    for _, node in _nodes(root, ast.Call):
        whole_module = any(keyword.arg == "whole_module" for keyword in node.keywords)
        if getattr(node.func, "id", "") == "Registry" and len(node.args) == 2 and not whole_module:
            found.add(ast.literal_eval(node.args[1]))
    return sorted(found)


@cache
def _parse(text: str) -> ast.Module:
    return ast.parse(text)


def _python_files(root: Path) -> list[Path]:
    return sorted((root / "deep500").rglob("*.py"))


def _nodes(root: Path, *kinds: type) -> Iterator[tuple[Path, ast.AST]]:
    for path in _python_files(root):
        for node in ast.walk(_parse(path.read_text())):
            if isinstance(node, kinds):
                yield path, node


def _name(root: Path, path: Path) -> str:
    return path.relative_to(root).as_posix()


def _is_module(path: Path) -> bool:
    return path.is_dir() or path.with_suffix(".py").is_file()


def _is_broad(caught: ast.expr | None) -> bool:
    kinds = caught.elts if isinstance(caught, ast.Tuple) else [caught]
    return any(kind is None or ast.unparse(kind) in {"Exception", "BaseException"} for kind in kinds)


def _does_nothing(statement: ast.stmt) -> bool:
    return isinstance(statement, (ast.Pass, ast.Continue)) or (
        isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    )


def _public_files(adapter: Path) -> set[str]:
    paths = [*adapter.glob("*.py"), *adapter.glob("lowering/*.py")]
    return {path.relative_to(adapter).as_posix() for path in paths if not path.name.startswith("_")}


def _has_it(files: dict[Path, set[str]], name: str) -> str:
    return next(adapter.name for adapter, names in files.items() if name in names)


def _clocks(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Find the clocks that imports and attributes reach, each with its line."""
    nodes = list(ast.walk(tree))
    aliases = [alias for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    names_of_time = {alias.asname or alias.name for alias in aliases if alias.name == "time"}
    for node in nodes:
        if isinstance(node, ast.Import):
            found = [alias.name for alias in node.names if alias.name in CLOCKS]
        elif isinstance(node, ast.ImportFrom):
            clocks = CLOCKS | ({"time", "*"} if node.module == "time" else set())
            names = [alias.name for alias in node.names if alias.name.removesuffix("_ns") in clocks]
            found = [node.module] if node.module in CLOCKS else [f"{node.module}.{name}" for name in names]
        elif isinstance(node, ast.Attribute):
            name = node.attr.removesuffix("_ns")
            is_clock = name in CLOCKS or (name == "time" and ast.unparse(node.value) in names_of_time)
            found = [ast.unparse(node)] if is_clock else []
        else:
            continue
        yield from ((node.lineno, clock) for clock in found)


def _exported_names(tree: ast.Module) -> list[str] | None:
    for statement in tree.body:
        if isinstance(statement, ast.Assign):
            targets: list[ast.expr] = statement.targets
        elif isinstance(statement, ast.AnnAssign):
            targets = [statement.target]
        else:
            continue
        if any(isinstance(target, ast.Name) and target.id == "__all__" for target in targets):
            return list(ast.literal_eval(statement.value)) if statement.value else None
    return None
