"""Downloading published files: resumed where it stopped, checked by SHA-256, there whole or not at all."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import http.client
import logging
import os
import re
import shutil
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlsplit

from deep500._version import __version__
from deep500.core.errors import DatasetError
from deep500.core.texts import escaped, shown_path

__all__ = ["OFFLINE_VARIABLE", "RemoteFile", "fetch", "file_sha256", "how_to_get", "is_offline", "obtain"]

logger = logging.getLogger(__name__)

#: Environment variable that forbids every download; empty and ``0`` allow them.
OFFLINE_VARIABLE = "DEEP500_OFFLINE"

_BLOCK_BYTES = 1 << 18
_SCHEMES = ("http", "https")


@dataclass(frozen=True)
class RemoteFile:
    """A file that somebody published.

    Attributes:
        name: Name under which it is kept.
        addresses: Where it is published, the first choice first; http or https.
        sha256: Its SHA-256 in hexadecimal digits.
        size_bytes: Its size.
    """

    name: str
    addresses: tuple[str, ...]
    sha256: str
    size_bytes: int

    def __post_init__(self) -> None:
        """Check the description, which is written by hand."""
        wrong = [address for address in self.addresses if urlsplit(address).scheme not in _SCHEMES]
        if wrong or not self.addresses:
            raise DatasetError(f"{self.name} has the addresses {self.addresses!r}; accepted are http and https ones.")
        if Path(self.name).name != self.name or self.name in ("", ".", ".."):
            raise DatasetError(f"A published file was named {self.name!r}; accepted is a name without a folder.")
        if not re.fullmatch(r"[0-9a-f]{64}", self.sha256):
            raise DatasetError(f"{self.name} has the SHA-256 {self.sha256!r}; accepted are 64 hexadecimal digits.")


class _RefusedError(Exception):
    """An address does not send the file, and asking again would not help."""


def is_offline() -> bool:
    """Whether the environment variable ``DEEP500_OFFLINE`` forbids downloads."""
    return os.environ.get(OFFLINE_VARIABLE, "") not in ("", "0")


def obtain(what: str, file: RemoteFile, folder: Path, *, download: bool = True) -> Path:
    """Return the path of a published file, which is downloaded when it is not there.

    Args:
        what: The data set's name, for messages.
        file: The file.
        folder: Where it is kept.
        download: Whether it may be downloaded.

    Raises:
        DatasetError: It is not there and cannot, or may not, be downloaded. The message says address, checksum and
            folder.
    """
    target = folder / file.name
    if target.is_file():
        return target
    missing = f"{what} is not there: {shown_path(folder)} holds no {file.name}."
    if not isinstance(download, bool):
        raise DatasetError(f"download was given as {download!r}; accepted are True and False.")
    if not download:
        raise DatasetError(f"{missing} Downloading was turned off. {how_to_get(file, folder)}")
    if is_offline():
        raise DatasetError(
            f"{missing} It was not downloaded because {OFFLINE_VARIABLE} is set. {how_to_get(file, folder)}"
        )
    try:
        return fetch(file, folder)
    except DatasetError as error:
        raise DatasetError(f"{missing} {error} {how_to_get(file, folder)}") from error


def how_to_get(file: RemoteFile, folder: Path) -> str:
    """Return the sentence that says where a file is published and where to put it."""
    return (
        f"Get {' or '.join(file.addresses)} (SHA-256 {file.sha256}) and put it in {shown_path(folder)}; another folder "
        f"can be named with folder=... or the environment variable DEEP500_DATA."
    )


def fetch(file: RemoteFile, folder: Path, *, timeout_s: float = 30.0, attempts: int = 3, pause_s: float = 0.5) -> Path:
    """Download a file unless it is there; processes that ask for the same file take turns.

    What arrives is kept in a hidden ``*.partial`` beside the target, so that an interrupted download goes on where it
    stopped (HTTP Range). Only when size and SHA-256 are right is it moved to its name.

    Args:
        file: The file.
        folder: Where to; it is made, for the user alone, when it is missing.
        timeout_s: Longest silence of a server, in seconds.
        attempts: How often each address is asked when the connection breaks.
        pause_s: Seconds before the second attempt, doubled for each further one.

    Returns:
        The path of the complete file.

    Raises:
        DatasetError: No address sent the file, or the folder cannot be written.
    """
    target = folder / file.name
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _partial_file(target) as partial:
            if partial is None:
                return target
            _receive(file, partial, timeout_s, attempts, pause_s)
            os.fsync(partial.fileno())
            os.replace(_partial_path(target), target)
    except OSError as error:
        raise DatasetError(f"It cannot be downloaded to {shown_path(target)}: {error.strerror or error}.") from error
    return target


def file_sha256(path: Path) -> str:
    """Return a file's SHA-256 in hexadecimal digits.

    Raises:
        DatasetError: It cannot be read.
    """
    try:
        with path.open("rb") as file:
            return _sha256(file)
    except OSError as error:
        raise DatasetError(f"{shown_path(path)} cannot be read: {error.strerror or error}.") from error


def _receive(file: RemoteFile, partial: IO[bytes], timeout_s: float, attempts: int, pause_s: float) -> None:
    """Fill the partial file from the first address that sends what was published."""
    if partial.seek(0, os.SEEK_END) == file.size_bytes and _sha256(partial) == file.sha256:
        return
    free = shutil.disk_usage(partial.fileno()).free
    if free < file.size_bytes - partial.seek(0, os.SEEK_END):
        raise OSError(errno.ENOSPC, f"{file.size_bytes:,} bytes are needed and {free:,} are free")
    reasons = []
    for address in file.addresses:
        for attempt in range(attempts):
            if attempt:
                time.sleep(pause_s * 2 ** (attempt - 1))
            try:
                _transfer(address, file, partial, timeout_s)
                return
            except _RefusedError as error:
                reason = str(error)
                break
            except urllib.error.HTTPError as error:
                reason = f"the server answered {error.code} {error.reason}"
                error.close()
                if error.code < 500 and error.code not in (408, 416, 429):
                    break
            except (urllib.error.URLError, http.client.HTTPException, TimeoutError, ConnectionError) as error:
                reason = str(getattr(error, "reason", "") or error) or type(error).__name__
        logger.warning("%s was not received from %s: %s", file.name, address, escaped(reason))
        reasons.append(f"{address}: {escaped(reason)}")
    raise DatasetError(f"It cannot be downloaded ({'; '.join(reasons)}).")


def _transfer(address: str, file: RemoteFile, partial: IO[bytes], timeout_s: float) -> None:
    """Receive what is missing of the file, and check the whole."""
    have = partial.seek(0, os.SEEK_END)
    if have >= file.size_bytes:
        have = _emptied(partial)
    headers = {"User-Agent": f"deep500/{__version__}", "Accept-Encoding": "identity"}
    if have:
        headers["Range"] = f"bytes={have}-"
    try:
        response = _opener().open(urllib.request.Request(address, headers=headers), timeout=timeout_s)
    except urllib.error.HTTPError as error:
        if error.code == 416:  # what was kept does not belong to this file
            _emptied(partial)
        raise
    with response, _progress(file, have) as show:
        continued = response.status == 206 and response.headers.get("Content-Range", "").startswith(f"bytes {have}-")
        if have and not continued:  # the server sends all of it
            have = _emptied(partial)
        if response.status == 206 and not continued:
            raise ConnectionError("the server sent another part of the file than was asked for")
        logger.info("downloading %s from %s, from byte %d of %d", file.name, address, have, file.size_bytes)
        while block := response.read(_BLOCK_BYTES):
            have += len(block)
            if have > file.size_bytes:
                _emptied(partial)
                raise _RefusedError(f"it sends more than the published {file.size_bytes:,} bytes")
            partial.write(block)
            show(have)
    partial.flush()
    if have < file.size_bytes:
        raise ConnectionError(f"the transfer ended after {have:,} of {file.size_bytes:,} bytes")
    digest = _sha256(partial)
    if digest != file.sha256:
        _emptied(partial)
        raise _RefusedError(f"what it sends has the SHA-256 {digest} instead of the published {file.sha256}")


class _CheckedRedirects(urllib.request.HTTPRedirectHandler):
    """Follows redirections to http and https only, and none that gives up encryption."""

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        scheme = urlsplit(newurl).scheme
        if scheme not in _SCHEMES or (scheme == "http" and urlsplit(req.full_url).scheme == "https"):
            raise _RefusedError(f"it leads to {newurl!r}, which is not accepted")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _opener() -> urllib.request.OpenerDirector:
    """Return what opens http and https addresses and, unlike ``urlopen``, nothing else, such as ``file:``."""
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler(),
        urllib.request.HTTPHandler(),
        urllib.request.HTTPSHandler(),
        urllib.request.HTTPDefaultErrorHandler(),
        urllib.request.HTTPErrorProcessor(),
        _CheckedRedirects(),
    ):
        opener.add_handler(handler)
    return opener


@contextmanager
def _partial_file(target: Path) -> Iterator[IO[bytes] | None]:
    """Open and lock the partial file; ``None`` when another process completed the file in the meantime."""
    path = _partial_path(target)
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
        with os.fdopen(handle, "r+b") as partial:
            fcntl.flock(partial, fcntl.LOCK_EX)  # released when the file is closed, also by a killed process
            if target.is_file():
                path.unlink(missing_ok=True)
                yield None
                return
            if path.exists() and path.stat().st_ino == os.fstat(partial.fileno()).st_ino:
                yield partial
                return
        # Another process removed or moved the file while this one waited for it: begin anew.


def _partial_path(target: Path) -> Path:
    return target.with_name(f".{target.name}.partial")


def _emptied(partial: IO[bytes]) -> int:
    partial.seek(0)
    partial.truncate()
    return 0


def _sha256(file: IO[bytes]) -> str:
    file.seek(0)
    digest = hashlib.sha256()
    while block := file.read(1 << 20):
        digest.update(block)
    return digest.hexdigest()


@contextmanager
def _progress(file: RemoteFile, have: int) -> Iterator[Callable[[int], None]]:
    """Show a bar on the standard error while it is a terminal."""
    if not sys.stderr.isatty():
        yield lambda received: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True)) as bar:
        task = bar.add_task(file.name, total=file.size_bytes, completed=have)
        yield lambda received: bar.update(task, completed=received)
