"""Where the output of ranks goes: rank 0's to the launcher's own streams, the others' to a file each."""

from __future__ import annotations

import array
import contextlib
import errno
import os
from collections.abc import Callable
from pathlib import Path

from deep500.core.errors import FileWriteError
from deep500.core.texts import shown_path
from deep500.distributed._launch_records import RankRecord, record_of_line

try:
    import fcntl
    import termios
except ImportError:  # a system without terminals of this kind
    fcntl = termios = None  # type: ignore[assignment]

__all__ = ["STANDARD", "LauncherOutput", "RankStreams", "last_lines", "write_all"]

#: The launcher's own standard output and error.
STANDARD = (1, 2)

_READ_BYTES = 1 << 16
_LAST_BYTES = 4096

#: What MPICH's launcher tells of a rank that ended badly, which the launcher here tells in its own words.
_BANNER = ("=====", "=   ", "YOUR APPLICATION TERMINATED", "This typically refers to a problem", "Please see the FAQ")
_BANNER_PID, _BANNER_END = "=   PID ", "YOUR APPLICATION TERMINATED WITH THE EXIT STRING: "


class RankStreams:
    """The streams of each rank.

    Rank 0 writes to the launcher's own standard output and error, so that a terminal is one for it. With a folder for
    logs its output is copied there as well, through a terminal of its own where the launcher's is one.
    """

    def __init__(self, folder: Path, logs: Path | None, carry: Callable[[int, Callable[[], bool]], None]) -> None:
        """Make the folder of the logs.

        Args:
            folder: Where the output of the other ranks is kept while they run, where nobody asked for it.
            logs: Where the output of each rank is kept.
            carry: Called with a descriptor and what moves on what comes from it, which returns whether more may come.

        Raises:
            FileWriteError: The logs cannot be written.
        """
        self._folder = folder if logs is None else logs
        self._logs = logs
        self._carry = carry
        self._copies: list[_Copy] = []
        if logs is not None:
            try:
                logs.mkdir(parents=True, exist_ok=True)
                self.log(0).write_bytes(b"")
            except OSError as error:
                raise FileWriteError(
                    f"The logs of ranks cannot be written to {shown_path(logs)}: {error.strerror}. Name a folder that "
                    f"can be made or written to."
                ) from error

    def log(self, rank: int) -> Path:
        """Return the file of a rank's output; rank 0's is there only where logs were asked for."""
        return self._folder / f"rank-{rank}.log"

    def of(self, rank: int) -> tuple[tuple[int, int], Callable[[], None]]:
        """Return descriptors for a rank's standard output and error, and what closes them here."""
        if rank == 0 and self._logs is None:
            return STANDARD, lambda: None
        log = os.open(self.log(rank), os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o666)
        if rank:
            return (log, log), lambda: os.close(log)
        copies = [_Copy(target, log) for target in STANDARD]
        self._copies += copies
        for copy in copies:
            self._carry(copy.source, copy.move)

        def close() -> None:
            for copy in copies:
                os.close(copy.given)

        return (copies[0].given, copies[1].given), close

    def drain(self) -> None:
        """Write what rank 0 has left."""
        for copy in self._copies:
            copy.move()


class _Copy:
    """One stream of rank 0, copied to the launcher's and to a file; a terminal where the launcher's is one."""

    def __init__(self, target: int, log: int) -> None:
        self._targets = [target, log]
        if termios is not None and os.isatty(target):
            self.source, self.given = os.openpty()
            attributes = termios.tcgetattr(self.given)
            attributes[1] &= ~termios.OPOST  # bytes stay as they are; the launcher's terminal does the rest
            termios.tcsetattr(self.given, termios.TCSANOW, attributes)
            size = array.array("H", [0] * 4)
            fcntl.ioctl(target, termios.TIOCGWINSZ, size)
            fcntl.ioctl(self.given, termios.TIOCSWINSZ, size)
        else:
            self.source, self.given = os.pipe()
        os.set_blocking(self.source, False)

    def move(self) -> bool:
        while content := _read(self.source):
            for target in self._targets:
                write_all(target, content)
        return content is None


class LauncherOutput:
    """What MPI's launcher writes: its own words, and the output of ranks that the launcher here does not reach.

    Attributes:
        ended_pid: The process that ended badly first, where the launcher has told it.
        ended_by: The signal that ended it, where one did.
    """

    def __init__(self, source: int, target: int, found: Callable[[RankRecord], None]) -> None:
        """Pass on what comes.

        Args:
            source: Where it is read from.
            target: Where it is passed on to.
            found: Is given the records among it.
        """
        self.source = source
        self.ended_pid: int | None = None
        self.ended_by: int | None = None
        self._target = target
        self._found = found
        self._rest = b""
        self._blank: list[bytes] = []
        os.set_blocking(source, False)

    def move(self) -> bool:
        """Pass on what has come by now, line by line, and return whether more may come."""
        while content := _read(self.source):
            *lines, self._rest = (self._rest + content).split(b"\n")
            for line in lines:
                self._line(line + b"\n")
        if self._rest and not self._rest.startswith((b"=", b"\x1e", b"Y", b"T", b"P")):
            write_all(self._target, self._rest)  # a rank's line without an end, such as a question
            self._rest = b""
        return content is None

    def close(self) -> None:
        """Pass on what is left."""
        self.move()
        if self._rest:
            self._line(self._rest)
            self._rest = b""

    def _line(self, line: bytes) -> None:
        text = line.decode("utf-8", "replace")
        record = record_of_line(text)
        if record is not None:
            self._found(record)
        elif text.startswith(_BANNER_PID):
            pid = text[len(_BANNER_PID) :].split()[0]
            self.ended_pid = int(pid) if pid.isdigit() else None
        elif text.startswith(_BANNER_END):
            number = text.rpartition("(signal ")[2].strip().rstrip(")")
            self.ended_by = int(number) if number.isdigit() else None
        elif not text.strip():
            self._blank.append(line)  # MPICH's launcher puts some before its own words
            return
        elif not text.startswith(_BANNER):
            write_all(self._target, b"".join([*self._blank, line]))
        self._blank.clear()


def last_lines(path: Path, most: int = 20) -> list[str]:
    """Return the last lines of a file; none where it is not there."""
    with contextlib.suppress(OSError), path.open("rb") as file:
        file.seek(0, os.SEEK_END)
        file.seek(max(0, file.tell() - _LAST_BYTES))
        return file.read().decode("utf-8", "replace").splitlines()[-most:]
    return []


def write_all(target: int, content: bytes) -> None:
    """Write to a descriptor; what nobody reads any more is dropped."""
    with contextlib.suppress(OSError):
        while content:
            content = content[os.write(target, content) :]


def _read(source: int) -> bytes | None:
    """Return what can be read now; nothing at the end, and ``None`` where something may come later."""
    try:
        return os.read(source, _READ_BYTES)
    except OSError as error:
        if error.errno == errno.EAGAIN:
            return None
        if error.errno == errno.EIO:  # nobody has the terminal open any more
            return b""
        raise
