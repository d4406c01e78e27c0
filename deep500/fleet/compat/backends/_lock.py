"""One process at a time works on what a backend remembers."""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["locked"]

#: A file system without locks says one of these.
_NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP)


@contextmanager
def locked(folder: Path) -> Iterator[int]:
    """Keep other processes, also on other nodes, from what is remembered there; return the handle of the lock.

    A child that inherits the handle keeps the lock for as long as it lives. Where the file system knows no locks, there
    is none.
    """
    folder.mkdir(parents=True, exist_ok=True)
    handle = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT, 0o666)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
        except OSError as error:
            if error.errno not in _NO_LOCKS:
                raise
        yield handle
    finally:
        os.close(handle)
