"""Executing an author's Python file as a module; each failure of it is told in one line with its place."""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import sys
import traceback
import types
from collections.abc import Iterator
from pathlib import Path

from deep500.core.errors import Deep500Error, OperatorError
from deep500.core.texts import message_of, one_line, shown_path
from deep500.operators.custom.catalogue import forget_custom_op, registered_custom_ops

__all__ = ["execute_file"]

#: Modules by path and content, so that a process that opens an operator several times has one class of it.
_EXECUTED: dict[tuple[Path, str], types.ModuleType] = {}


def execute_file(path: Path) -> types.ModuleType:
    """Return the module of a Python file.

    A file of a package is imported as a part of it. Any other one is executed as a module of its own, not as
    ``__main__``; it can import the modules beside it, at its top level. Operators that it registers are known to
    networks of that file only, so that files with operators of one name can be opened side by side.

    Args:
        path: The file.

    Raises:
        OperatorError: It cannot be read, is no Python, or fails while it is executed.
        CompileError: It compiles an operator, which fails.
    """
    try:
        source = path.read_bytes()
        key = path.resolve(), hashlib.sha256(source).hexdigest()
        if key not in _EXECUTED:
            compile(source, str(path), "exec", dont_inherit=True)
            _EXECUTED[key] = _imported(path) if (path.parent / "__init__.py").is_file() else _executed(path, source)
        return _EXECUTED[key]
    except OSError as error:
        raise OperatorError(f"{shown_path(path)} cannot be read: {error.strerror or error}") from error
    except SyntaxError as error:
        place = f"{shown_path(path)}:{error.lineno or 1}"
        raise OperatorError(f"{place}: {type(error).__name__}: {one_line(error.msg)}") from error
    except ValueError as error:
        if isinstance(error, Deep500Error):
            raise
        raise OperatorError(f"{shown_path(path)}:1: this is not a Python file: {error}") from error
    except (MemoryError, RecursionError) as error:
        raise OperatorError(f"{shown_path(path)}: an expression is nested too deeply for Python to read it.") from error


def _executed(path: Path, source: bytes) -> types.ModuleType:
    name = _name_of(path)
    module = types.ModuleType(name)
    module.__file__ = str(path)
    code = compile(source, str(path), "exec", dont_inherit=True)
    previous, known = sys.modules.get(name), set(registered_custom_ops())
    sys.modules[name] = module  # classes look up their file there
    with _neighbours_importable(path.resolve().parent):
        try:
            exec(code, module.__dict__)
        except BaseException as error:
            _restore(name, previous)
            raise _failure(path, error) from error
        finally:
            for registered in set(registered_custom_ops()) - known:
                forget_custom_op(registered)
    return module


def _imported(path: Path) -> types.ModuleType:
    """Import a file of a package under its full name."""
    names, folder = [path.stem] if path.stem != "__init__" else [], path.resolve().parent
    while (folder / "__init__.py").is_file():
        names.insert(0, folder.name)
        folder = folder.parent
    sys.path.insert(0, str(folder))
    try:
        module = importlib.import_module(".".join(names))
    except BaseException as error:
        raise _failure(path, error) from error
    finally:
        with contextlib.suppress(ValueError):  # the file itself may have removed it
            sys.path.remove(str(folder))
    if Path(module.__file__ or "").resolve() != path.resolve():
        raise OperatorError(
            f"{shown_path(path)} is the module {'.'.join(names)}, and another file of this name is imported already: "
            f"{shown_path(module.__file__ or 'unknown')}. Rename one of the packages."
        )
    return module


def _failure(path: Path, error: BaseException) -> BaseException:
    """Return the error that tells, in one line, where a file failed; Ctrl-C stays what it is."""
    if isinstance(error, KeyboardInterrupt):
        return error
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if frame.filename == str(path)]
    place = f"{shown_path(path)}:{lines[-1]}" if lines else shown_path(path)
    if isinstance(error, SystemExit):
        return OperatorError(
            f"{place}: exits while it is read; what it runs as a script belongs under: if __name__ == '__main__'"
        )
    if isinstance(error, Deep500Error):
        return OperatorError(f"{place}: {message_of(error)}")
    return OperatorError(f"{place}: {type(error).__name__}: {message_of(error)}")


@contextlib.contextmanager
def _neighbours_importable(folder: Path) -> Iterator[None]:
    """Let a file import the modules beside it, which are forgotten afterwards: other folders have such names too."""
    is_known, before = str(folder) in sys.path, dict(sys.modules)
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        with contextlib.suppress(ValueError):  # the file itself may have removed it
            sys.path.remove(str(folder))
        for name, module in list(sys.modules.items()):
            file = Path(getattr(module, "__file__", None) or "/")
            is_new = name not in before and name != _name_of(file)  # the file itself stays
            if is_new and not is_known and file.parent == folder:
                del sys.modules[name]


def _name_of(path: Path) -> str:
    """Return the name of a file's module: the same in every process, since frameworks name compiled graphs for it."""
    return f"{path.stem}_{hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:12]}"


def _restore(name: str, previous: types.ModuleType | None) -> None:
    if previous is None:
        del sys.modules[name]
    else:
        sys.modules[name] = previous
