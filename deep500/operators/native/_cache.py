"""The folder of compiled libraries: private to its user, written by one process at a time."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import stat
import time
from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from typing import Any

from deep500.core.errors import CompileError
from deep500.core.files import write_atomically
from deep500.core.texts import shown_path
from deep500.measure.clock import Stopwatch

__all__ = ["CACHE_VARIABLE", "cache_folder", "digest", "find_cached", "locked", "private_folder", "record"]

#: Environment variable that names the folder.
CACHE_VARIABLE = "DEEP500_NATIVE_CACHE"

#: What a folder of the cache holds beside the library: how it came about.
_MANIFEST = "built.json"

#: Seconds between two attempts to get a lock.
_LOCK_PAUSE_S = 0.02


def digest(*parts: str | bytes) -> str:
    """Return a hash of texts or bytes, as 40 hexadecimal digits; where one ends and the next begins counts."""
    result = hashlib.blake2b(digest_size=20)
    for part in parts:
        data = part.encode("utf-8", "surrogateescape") if isinstance(part, str) else part
        result.update(len(data).to_bytes(8, "little"))
        result.update(data)
    return result.hexdigest()


def cache_folder(folder: str | PathLike[str] | None = None) -> Path:
    """Return the folder of compiled libraries; make it, for this user only, where it is missing.

    Args:
        folder: The folder; by default the one that the environment variable ``DEEP500_NATIVE_CACHE`` names, else
            ``deep500/native`` in the user's cache (``~/.cache`` on Linux, unless ``XDG_CACHE_HOME`` says otherwise).

    Raises:
        CompileError: It cannot be made, or others could put libraries into it.
    """
    named = folder if folder else os.environ.get(CACHE_VARIABLE)
    if named:
        path = Path(named).absolute()
        try:
            path.mkdir(parents=True, exist_ok=True)
            mode = path.stat().st_mode
        except OSError as error:
            raise _cannot_be_made(path, error) from error
        if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
            raise CompileError(
                f"The folder {shown_path(path)} for compiled operators can be changed by every user of this machine. "
                f"Take that right away (chmod o-w), or give another folder."
            )
        return path
    import platformdirs

    return private_folder(platformdirs.user_cache_path("deep500", appauthor=False) / "native")


def private_folder(path: Path) -> Path:
    """Make a folder that only this user may change, and check one that is there: code is loaded from it.

    Raises:
        CompileError: It belongs to somebody else, or others may change it.
    """
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        state = path.lstat()
    except OSError as error:
        raise _cannot_be_made(path, error) from error
    if not stat.S_ISDIR(state.st_mode):
        raise CompileError(
            f"{shown_path(path)} is to hold compiled operators and is no folder (a link is not followed)."
        )
    if state.st_uid != os.geteuid() or state.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise CompileError(
            f"The folder {shown_path(path)} for compiled operators belongs to another user or can be changed by "
            f"others, who could put code there. Remove it, or name another one in the variable {CACHE_VARIABLE}."
        )
    return path


def _cannot_be_made(path: Path, error: OSError) -> CompileError:
    return CompileError(
        f"The folder {shown_path(path)} for compiled operators cannot be made: {error.strerror}. Name another one in "
        f"the variable {CACHE_VARIABLE}."
    )


def find_cached(entry: Path) -> Path | None:
    """Return the library of an entry; ``None`` where there is none, it is damaged, or a header has changed."""
    try:
        manifest: Any = json.loads((entry / _MANIFEST).read_bytes())
        library = entry / manifest["library"]
        if digest(library.read_bytes()) != manifest["hash"]:
            return None
        if any(digest(Path(path).read_bytes()) != value for path, value in manifest["dependencies"].items()):
            return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):  # missing, or not what was written
        return None
    return Path(library)


def record(entry: Path, library: Path, name: str, dependencies: list[Path], **about: Any) -> Path:
    """Move a new library into its entry, and write down what it was built from; return where it is."""
    content = library.read_bytes()
    installed = entry / f"{name}-{digest(content)[:16]}.so"  # a new name: the old one may be loaded
    os.replace(library, installed)
    manifest = {
        "library": installed.name,
        "hash": digest(content),
        "dependencies": {str(path): digest(path.read_bytes()) for path in dependencies},
        **about,
    }
    write_atomically(entry / _MANIFEST, json.dumps(manifest, indent=1))
    return installed


@contextlib.contextmanager
def locked(entry: Path, timeout_s: float) -> Iterator[None]:
    """Hold the lock of an entry: one process or thread builds, the others wait for it.

    Raises:
        CompileError: The lock was not free in time.
    """
    watch = Stopwatch()
    handle = os.open(entry / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if watch.elapsed_s() > timeout_s:
                    raise CompileError(
                        f"Another process has been compiling into {shown_path(entry)} for {timeout_s:g} s. Wait for "
                        f"it, or end it."
                    ) from None
                time.sleep(_LOCK_PAUSE_S)
        yield
    finally:
        os.close(handle)  # frees the lock
