"""Reading recipe files: Python files that define FIXED, MUTABLE and METRICS."""

from __future__ import annotations

import contextlib
import importlib.util
import linecache
import os
import sys
import traceback
import types
from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from typing import Any

from deep500.core.errors import Deep500Error, MissingDependencyError, RecipeError, near_miss
from deep500.core.texts import message_of, one_line, shown_path
from deep500.recipe.describe import RECIPE_MODULE_PREFIX
from deep500.recipe.recipe import Recipe
from deep500.recipe.shipped import SHIPPED, shipped_recipes

__all__ = ["is_loading", "load_recipe"]

_loading: list[Path] = []


def is_loading() -> bool:
    """Whether a recipe file is being read right now, so that nothing may run."""
    return bool(_loading)


def load_recipe(source: str | PathLike[str]) -> Recipe:
    """Read a recipe from a file, or one that comes with Deep500 by its name.

    The file is executed as a module of its own, not as ``__main__``: what stands under ``if __name__ == "__main__"``
    does not run. As when it is run as a script, it can import the modules beside it; no bytecode is written. In it
    ``from recipes.recipe import run_recipe`` works wherever the file lies.

    Args:
        source: A path, or a name that :func:`deep500.recipe.shipped.shipped_recipes` lists, such as ``"digits_lenet"``.

    Raises:
        RecipeError: There is no such file, it cannot be executed, it does not define FIXED, MUTABLE and METRICS, or
            these are no recipe.
    """
    path = _find(source)
    if path in _loading:
        raise RecipeError(f"{shown_path(path)}: the recipe reads itself.")
    module = _execute(path)
    try:
        missing = [name for name in ("FIXED", "MUTABLE", "METRICS") if not hasattr(module, name)]
        if missing:
            raise RecipeError(f"defines no {', '.join(missing)}; a recipe defines FIXED, MUTABLE and METRICS.")
        return Recipe(module.FIXED, module.MUTABLE, module.METRICS, name=path.stem, path=str(path))
    except RecipeError as error:
        raise RecipeError(f"{shown_path(path)}: {error}") from error
    except Exception as error:
        # Code of the recipe file that runs while its values are looked at: a __repr__, a __getattr__.
        if not _lines(path, error):
            raise
        raise RecipeError(_failure(path, error)) from error


def _find(source: str | PathLike[str]) -> Path:
    path = Path(source)
    if os.path.isfile(path):  # false, not an error, for names that no file can have
        return path
    known = shipped_recipes()
    if str(source) in known:
        return known[str(source)]
    if os.path.isdir(path):
        inside = shown_path(path / "my_recipe.py")
        raise RecipeError(f"{shown_path(path)} is a folder; accepted is a recipe file in it, such as {inside}.")
    beside = [str(p) for p in path.parent.glob("*.py")] if os.path.isdir(path.parent) else []
    hint = near_miss(str(source), [*known, *beside])
    raise RecipeError(
        f"There is no recipe file {str(source)!r}.{hint} Recipes that come with Deep500: {', '.join(known) or 'none'}."
    )


def _execute(path: Path) -> types.ModuleType:
    """Execute a recipe file; every failure of it becomes one line that names the place."""
    linecache.checkcache(str(path))
    name = f"{RECIPE_MODULE_PREFIX}{path.stem}"
    module = types.ModuleType(name)
    module.__file__ = str(path)
    try:
        source = path.read_bytes()
        code = compile(source, str(path), "exec", dont_inherit=True)
    except OSError as error:
        raise RecipeError(f"The recipe file cannot be read: {error}") from error
    except SyntaxError as error:
        place = f"{shown_path(path)}:{error.lineno or 1}"
        raise RecipeError(f"{place}: {type(error).__name__}: {one_line(error.msg)}") from error
    except ValueError as error:  # a null byte
        raise RecipeError(f"{shown_path(path)}:1: this is not a Python file: {error}") from error
    except (MemoryError, RecursionError) as error:
        raise RecipeError(f"{shown_path(path)}: an expression is nested too deeply for Python to read it.") from error
    previous = sys.modules.get(name)
    sys.modules[name] = module  # dataclasses and pickle look their module up
    try:
        with _import_environment(path):
            exec(code, module.__dict__)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        if previous is None:
            del sys.modules[name]
        else:
            sys.modules[name] = previous
        raise RecipeError(_failure(path, error)) from error
    return module


def _failure(path: Path, error: BaseException) -> str:
    """Return ``file:line: what`` for an error in a recipe file; the line is that of the file itself."""
    lines = _lines(path, error)
    place = f"{shown_path(path)}:{lines[-1]}" if lines else shown_path(path)
    if isinstance(error, SystemExit):
        return f"{place}: exits while it is read; what a recipe runs belongs under: if __name__ == '__main__'"
    if isinstance(error, (RecipeError, MissingDependencyError)):
        return f"{place}: {message_of(error)}"
    kind = "" if isinstance(error, Deep500Error) else f"{type(error).__name__}: "
    return f"{place}: {kind}{message_of(error)}"


def _lines(path: Path, error: BaseException) -> list[int]:
    """Return the lines of a file that took part in an error, the innermost last."""
    frames = traceback.extract_tb(error.__traceback__)
    return [frame.lineno or 1 for frame in frames if frame.filename == str(path)]


@contextlib.contextmanager
def _import_environment(path: Path) -> Iterator[None]:
    """Make imports in a recipe file work as in a script, and leave the interpreter as it was found."""
    folder = str(path.resolve().parent)
    known_folder = folder in sys.path
    modules, bytecode = dict(sys.modules), sys.dont_write_bytecode
    sys.path.insert(0, folder)
    sys.dont_write_bytecode = True
    stand_ins = _stand_in_for_recipes()
    _loading.append(path)
    try:
        yield
    finally:
        _loading.pop()
        sys.dont_write_bytecode = bytecode
        with contextlib.suppress(ValueError):  # the recipe itself may have removed it
            sys.path.remove(folder)
        # A module beside the recipe must not be taken for the one of the same name beside the next recipe.
        beside = () if known_folder else [n for n, m in sys.modules.items() if _is_in(m, folder)]
        for name in {*stand_ins, *beside}:
            if name in modules:
                sys.modules[name] = modules[name]
            else:
                del sys.modules[name]


def _is_in(module: types.ModuleType, folder: str) -> bool:
    file = getattr(module, "__file__", None)
    return bool(file) and not module.__name__.startswith(RECIPE_MODULE_PREFIX) and str(Path(str(file)).parent) == folder


def _stand_in_for_recipes() -> list[str]:
    """Provide ``recipes.recipe`` where there is none to import; return the names of the modules that were added."""
    added = []
    try:
        if importlib.util.find_spec(f"{SHIPPED}.recipe") is not None:
            return []
    except ModuleNotFoundError:  # there is no package of recipes at all
        package = types.ModuleType(SHIPPED)
        package.__path__ = []
        sys.modules[SHIPPED] = package
        added.append(SHIPPED)
    from deep500.recipe.runner import run_recipe

    module: Any = types.ModuleType(f"{SHIPPED}.recipe")
    module.run_recipe = run_recipe
    sys.modules[module.__name__] = module
    return [*added, module.__name__]
