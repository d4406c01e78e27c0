"""Folders that last as long as what uses them, and what is left of those whose process was killed.

A process holds a lock on its folder, which the system takes back when the process ends, however it does. So the next
one of its kind sees which folders nobody will ever remove, and removes them.
"""

from __future__ import annotations

import contextlib
import os
import re
import socket
import stat
import tempfile
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path

from deep500.core.errors import FileWriteError

try:
    import fcntl

    _HAS_LOCKS = True
except ImportError:  # a system without locks of this kind: nothing is removed there
    _HAS_LOCKS = False

__all__ = ["SOCKET_NAME", "remove_abandoned", "run_folder"]

#: Name of a launcher's socket in its folder.
SOCKET_NAME = "s"

#: A folder that has changed within this time may be one that is just being made or removed, s.
_YOUNG_S = 60.0

#: A path of a socket may not be longer.
_MOST_CHARACTERS = 90


@contextlib.contextmanager
def run_folder(prefix: str, names: re.Pattern[str]) -> Iterator[Path]:
    """Return a block with an empty folder that nobody else can read, which is removed at its end.

    Folders of the same kind that were left behind are removed first.

    Args:
        prefix: What its name begins with, which no other kind's does.
        names: What files in such a folder are called; one that holds anything else is never removed for another.

    Raises:
        FileWriteError: No folder can be made.
    """
    try:
        place = tempfile.gettempdir()
        place = place if len(place) < _MOST_CHARACTERS else "/tmp"
        remove_abandoned(place, prefix, names)
        made = tempfile.TemporaryDirectory(prefix=prefix, dir=place, ignore_cleanup_errors=True)
    except OSError as error:
        raise FileWriteError(
            f"No folder can be made for what ranks exchange with their launcher: {error.strerror or error}. Name one "
            f"that can be written to in the variable TMPDIR."
        ) from error
    with made as folder:
        lock = _locked(folder)
        try:
            yield Path(folder)
        finally:
            if lock is not None:
                os.close(lock)


def remove_abandoned(place: str, prefix: str, names: re.Pattern[str]) -> list[str]:
    """Remove this user's folders of a kind whose process has ended without removing them.

    Nothing is followed that a name leads to, and a folder stays as it is that is in use, was changed a moment ago, or
    holds what does not belong there.

    Args:
        place: Where they lie.
        prefix: What their names begin with.
        names: What the files in them are called.

    Returns:
        The paths of those that were removed.
    """
    removed: list[str] = []
    if not _HAS_LOCKS:
        return removed
    with contextlib.suppress(OSError):
        for entry in list(os.scandir(place)):
            if entry.name.startswith(prefix) and entry.is_dir(follow_symlinks=False):
                with contextlib.suppress(OSError):
                    if _remove_if_abandoned(entry.path, names):
                        removed.append(entry.path)
    return removed


def _remove_if_abandoned(path: str, names: re.Pattern[str]) -> bool:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        status = os.fstat(descriptor)
        is_old = datetime.now(timezone.utc).timestamp() - status.st_mtime > _YOUNG_S
        if not (stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid() and is_old):
            return False
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)  # an OSError: somebody uses it
        found = os.listdir(descriptor)
        if not all(names.fullmatch(name) for name in found) or _is_answered(os.path.join(path, SOCKET_NAME)):
            return False
        for name in found:
            os.unlink(name, dir_fd=descriptor)
        os.rmdir(path)
        return True
    finally:
        os.close(descriptor)


def _locked(folder: str) -> int | None:
    """Return a descriptor that holds the lock of a folder; the processes that this one starts do not get it."""
    if not _HAS_LOCKS:
        return None
    descriptor = os.open(folder, os.O_RDONLY)
    with contextlib.suppress(OSError):  # a file system without locks
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return descriptor


def _is_answered(path: str) -> bool:
    """Return whether somebody listens at a socket: a launcher of a version that holds no lock."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as caller:
        caller.settimeout(1.0)
        try:
            caller.connect(path)
        except (FileNotFoundError, ConnectionRefusedError):
            return False
        except OSError:
            return True  # it is not known
    return True
