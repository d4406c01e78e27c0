"""Finding a Python object by ``package.module:attribute``, and saying precisely why it cannot be found."""

from __future__ import annotations

import contextlib
import importlib
import os
import pkgutil
import sys
import traceback
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from deep500.core.errors import Deep500Error, MeasurementError, near_miss
from deep500.core.texts import message_of, shown_path
from deep500.measure.workload import WORKLOADS

__all__ = ["find_object", "importable_folder"]


def find_object(name: str) -> Any:
    """Import a module and return an attribute of it.

    Args:
        name: ``package.module:attribute``; the attribute may be dotted, as in ``my_module:Class.method``.

    Raises:
        MeasurementError: The name has another form; there is no such module; importing it fails; or it has no such
            attribute.
    """
    module_name, _, path = name.partition(":")
    _check_name(name, module_name, path)
    found: Any = _import(name, module_name)
    where = module_name
    for part in path.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            known = [n for n in dir(found) if not n.startswith("__")]
            raise MeasurementError(f"{name!r}: {where} has no {part!r}.{near_miss(part, known)}") from None
        where = f"{where}.{part}"
    return found


@contextlib.contextmanager
def importable_folder() -> Iterator[None]:
    """Make the modules in the working folder importable, as ``python -m`` does, and leave the path as it was."""
    try:
        folder = os.getcwd()
    except OSError:  # it was removed: there is nothing to import from it
        yield
        return
    # Python's own switch against it (-P, PYTHONSAFEPATH; from 3.11) is obeyed.
    if getattr(sys.flags, "safe_path", False) or folder in sys.path or "" in sys.path:
        yield
        return
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        with contextlib.suppress(ValueError):  # the module itself may have removed it
            sys.path.remove(folder)


def _check_name(name: str, module_name: str, path: str) -> None:
    if module_name == "__main__":
        raise MeasurementError(
            f"{name!r} is in the script that is running, which other processes cannot import. Put the function into a "
            "module of its own, and name that."
        )
    if "<" in path:
        raise MeasurementError(
            f"{name!r} names a lambda or a function within a function, which cannot be imported. Define it with a name "
            "at the top level of a module."
        )
    if not all(part.isidentifier() for part in (*module_name.split("."), *path.split("."))):
        raise MeasurementError(f"{name!r} names no Python object; accepted is package.module:function.")


def _import(name: str, module_name: str) -> ModuleType:
    importlib.invalidate_caches()  # of a file that was written just now
    try:
        return importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        missing = error.name or ""
        if module_name != missing and not module_name.startswith(f"{missing}."):
            raise _failed(name, module_name, error) from error
        raise MeasurementError(_no_module(name, missing)) from None
    except Deep500Error:
        raise
    except (Exception, SystemExit) as error:
        raise _failed(name, module_name, error) from error


def _failed(name: str, module_name: str, error: BaseException) -> MeasurementError:
    """Return the error that says where in the user's own code an import failed."""
    if isinstance(error, SystemExit):
        what = "it exits while it is imported; what it runs as a script belongs under: if __name__ == '__main__'"
    else:
        what = f"{type(error).__name__}: {message_of(error)}"
    frames = [f for f in traceback.extract_tb(error.__traceback__) if os.path.isfile(f.filename)]
    foreign = [f for f in frames if f.filename != __file__ and f.filename != importlib.__file__]
    place = f" in {shown_path(foreign[-1].filename)}:{foreign[-1].lineno}" if foreign else ""
    return MeasurementError(f"{name!r} cannot be measured: importing {module_name} failed{place}: {what}")


def _no_module(name: str, missing: str) -> str:
    """Return what to say of a module that is not there."""
    parent, _, last = missing.rpartition(".")
    begin = f"{name!r} cannot be measured: there is no module {missing!r}"
    if not parent:
        # "modle:lenet" was meant for one of the kinds.
        known = [*(module.name for module in pkgutil.iter_modules([os.curdir])), *WORKLOADS.names()]
        return f"{begin}, neither in the working folder nor installed.{near_miss(last, known)}"
    folders = getattr(sys.modules.get(parent), "__path__", None)
    if folders is None:
        return f"{begin}; {parent} is a module, not a package. An attribute stands after a colon: {parent}:{last}."
    return f"{begin} in the package {parent}.{near_miss(last, [m.name for m in pkgutil.iter_modules(folders)])}"
