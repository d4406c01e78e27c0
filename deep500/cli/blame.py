"""Whose fault an error is: the system's, the recipe's, or Deep500's."""

from __future__ import annotations

import errno
import sys
import sysconfig
import traceback
from pathlib import Path

from deep500.core.texts import message_of, shown_path

__all__ = ["circumstance", "recipe_error"]

_PACKAGE = Path(__file__).resolve().parents[1]

#: What a system answers that has run out of something, or that has a broken disk.
_REFUSALS = {
    getattr(errno, name)
    for name in ("ENOSPC", "EDQUOT", "EFBIG", "EIO", "EROFS", "ENOMEM", "EMFILE", "ENFILE")
    if hasattr(errno, name)
}

#: Names of the errors by which frameworks say that a device's memory is full.
_OUT_OF_MEMORY = {"OutOfMemoryError", "ResourceExhaustedError"}


def circumstance(error: BaseException) -> str | None:
    """Return what to say of an error that the machine caused, not Deep500; ``None`` for any other."""
    if isinstance(error, MemoryError) or _OUT_OF_MEMORY & {kind.__name__ for kind in type(error).__mro__}:
        return f"There is not enough memory ({message_of(error)}). A smaller model or batch_size needs less."
    if isinstance(error, OSError) and error.errno in _REFUSALS:
        what = shown_path(error.filename) if isinstance(error.filename, str) else "the output"
        return f"The system refused {what}: {error.strerror}. Make room, or write elsewhere."
    if isinstance(error, ValueError) and getattr(sys.stdout, "closed", False):
        return "The standard output was closed while the command ran. A recipe must leave it open."
    return None


def recipe_error(path: str | None, error: BaseException) -> str | None:
    """Return ``file:line: what`` when the recipe's own code, or that of modules beside it, took part in an error."""
    if path is None:
        return None
    folder = Path(path).resolve().parent
    library = [_PACKAGE, *(Path(sysconfig.get_path(name)) for name in ("stdlib", "purelib", "platlib"))]

    def is_own(file: str) -> bool:
        if file == path:
            return True
        if file.startswith("<"):
            return False
        place = Path(file).resolve()
        return place.is_relative_to(folder) and not any(place.is_relative_to(known) for known in library)

    own = [frame for frame in traceback.extract_tb(error.__traceback__) if is_own(frame.filename)]
    if not own:
        return None
    return f"{shown_path(own[-1].filename)}:{own[-1].lineno}: {type(error).__name__}: {message_of(error)}"
