"""Files that appear whole or not at all, and files that are read whole."""

from __future__ import annotations

import errno
import os
import stat
import tempfile
from collections.abc import Iterable, Mapping
from os import PathLike
from pathlib import Path

from deep500.core.errors import FileWriteError
from deep500.core.signals import signals_deferred
from deep500.core.texts import shown_path

__all__ = ["check_separate", "check_writable", "read_regular", "write_atomically"]


def write_atomically(path: str | PathLike[str], content: str | bytes, what: str = "file") -> None:
    """Write a file; it appears whole or not at all, and replaces an older one.

    A process that is killed at any moment leaves the older file or the new one (and perhaps a hidden ``*.partial``
    beside it). A link is kept, and what it leads to is replaced.

    Args:
        path: Where to.
        content: What; texts are written as UTF-8.
        what: What it is, for the message.

    Raises:
        FileWriteError: The file cannot be written.
    """
    target = _target(path, what)
    data = content.encode("utf-8") if isinstance(content, str) else content
    try:
        with signals_deferred():
            handle, temporary = _temporary_beside(target)
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(data)
                    file.flush()
                    os.fsync(file.fileno())
                os.replace(temporary, target)
            except BaseException:
                os.unlink(temporary)
                raise
    except OSError as error:
        raise _refused(path, what, error) from error


def check_writable(path: str | PathLike[str], what: str = "file") -> None:
    """Check, before hours of work, that :func:`write_atomically` will be able to write; leave nothing behind.

    Raises:
        FileWriteError: The file cannot be written.
    """
    target = _target(path, what)
    try:
        with signals_deferred():
            handle, temporary = _temporary_beside(target)
            os.close(handle)
            os.unlink(temporary)
    except OSError as error:
        raise _refused(path, what, error) from error


def check_separate(
    outputs: Mapping[str, str | PathLike[str] | None], inputs: Iterable[str | PathLike[str]] = ()
) -> None:
    """Check that no output replaces another, or one of the files that are read.

    Args:
        outputs: Where each is written to, by what it is; ``None`` for what is not written.
        inputs: The files that are read.

    Raises:
        FileWriteError: Two of them are one file.
    """
    taken = {os.path.realpath(path): f"{shown_path(path)}, which is read" for path in inputs}
    for what, path in outputs.items():
        if path is None:
            continue
        place = os.path.realpath(path)
        if place in taken:
            raise FileWriteError(f"The {what} cannot be written to {taken[place]}; name another file.")
        taken[place] = f"{shown_path(path)}, where the {what} goes"


def _refused(path: str | PathLike[str], what: str, error: OSError) -> FileWriteError:
    return FileWriteError(f"The {what} cannot be written to {shown_path(path)}: {error.strerror or error}")


def _target(path: str | PathLike[str], what: str) -> Path:
    """Return where the file will lie; a link is kept and what it leads to is replaced."""
    text = os.fspath(path)
    if not text or text.endswith(("/", os.sep)):
        raise FileWriteError(f"The {what} cannot be written to {text!r}: that is not the name of a file.")
    try:
        target = Path(text).resolve()
        mode = target.stat().st_mode if target.exists() else None
    except (OSError, RuntimeError, ValueError) as error:  # a link to itself, a name that is too long, a null byte
        raise FileWriteError(f"The {what} cannot be written to {text!r}: {error}") from error
    if mode is not None and not stat.S_ISREG(mode):
        kind = "a folder" if stat.S_ISDIR(mode) else "not a regular file"
        raise FileWriteError(f"The {what} cannot be written to {shown_path(text)}: it is {kind}.")
    return target


def _temporary_beside(target: Path) -> tuple[int, str]:
    """Open a new file in the target's folder, with the permissions that the target will have."""
    handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".partial")
    mask = os.umask(0)
    os.umask(mask)
    os.fchmod(handle, 0o666 & ~mask)
    return handle, temporary


def read_regular(path: str | PathLike[str]) -> bytes:
    """Return the bytes of a regular file. A pipe or a device, which may never end, is not waited for.

    Raises:
        OSError: It cannot be read, or is no regular file.
    """
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    try:
        mode = os.fstat(handle).st_mode
        if stat.S_ISDIR(mode):
            raise OSError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
        if not stat.S_ISREG(mode):
            raise OSError(errno.EINVAL, "It is no regular file", os.fspath(path))
        with open(handle, "rb", buffering=0, closefd=False) as file:
            return bytes(file.readall())
    finally:
        os.close(handle)
