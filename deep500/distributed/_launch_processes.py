"""Processes that a launcher started, directly or not: what state they are in, and how none is left behind."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import time
from collections.abc import Iterable
from pathlib import Path

from deep500.measure.clock import Stopwatch

__all__ = ["Member", "die_with_parent", "end_sessions", "session_of"]

_PROC = Path("/proc")
_PR_SET_PDEATHSIG = 1

#: Place of ``exit_code`` among the fields of ``/proc/PID/stat`` from the state on.
_EXIT_CODE = 49

#: What ranks have started (workers of an input pipeline) ends by itself within this time after them, s.
_LEFT_BEHIND_S = 2.0
_PAUSE_S = 0.02


class Member:
    """The process of a rank.

    Attributes:
        rank: Number of the rank.
        pid: Number of the process.
        session: Its session, in which what it starts is as well.
        watched: A descriptor that can be read from once the process has ended; ``None`` where the system has none.
    """

    def __init__(self, rank: int, pid: int) -> None:
        """Take hold of a process, which is there."""
        self.rank = rank
        self.pid = pid
        self.session = session_of(pid)
        self.watched: int | None = None
        if hasattr(os, "pidfd_open"):
            with contextlib.suppress(OSError):
                self.watched = os.pidfd_open(pid)

    def send(self, number: int) -> None:
        """Send a signal; one that has ended gets none, nor does another process with its number."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if self.watched is not None and hasattr(signal, "pidfd_send_signal"):
                signal.pidfd_send_signal(self.watched, number)
            else:
                os.kill(self.pid, number)

    def signal_that_ended(self) -> int | None:
        """Return the signal that ended it; ``None`` where none did, or its parent has already asked the system."""
        fields = _stat(self.pid)
        is_known = fields is not None and fields[0] == "Z" and len(fields) > _EXIT_CODE
        return (int(fields[_EXIT_CODE]) & 0x7F) or None if fields is not None and is_known else None

    def is_stopped(self) -> bool:
        """Return whether it was stopped (SIGSTOP, a debugger)."""
        fields = _stat(self.pid)
        return fields is not None and fields[0] in ("T", "t")

    def close(self) -> None:
        """Let go of the process."""
        if self.watched is not None:
            os.close(self.watched)
            self.watched = None


def die_with_parent() -> None:
    """Have the system kill this process when the one that started it ends, where the system can."""
    with contextlib.suppress(OSError, AttributeError):
        parent = os.getppid()
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os.kill(os.getpid(), signal.SIGKILL)


def session_of(pid: int) -> int | None:
    """Return the session of a process, or ``None`` where it is that of this process or the process has ended."""
    try:
        session = os.getsid(pid)
    except OSError:
        return None
    return None if session == os.getsid(0) else session


def end_sessions(sessions: Iterable[int], patience_s: float = _LEFT_BEHIND_S) -> None:
    """Wait until no process of some sessions is left, and kill those that are after a time.

    Args:
        sessions: Numbers of sessions.
        patience_s: The time.
    """
    known = set(sessions)
    if not known:
        return
    if not _PROC.is_dir():  # what was not put into a group of its own
        for session in known:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(session, signal.SIGKILL)
        return
    watch = Stopwatch()
    while left := _processes_of(known):
        if watch.elapsed_s() > patience_s:
            for pid in left:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
        if watch.elapsed_s() > patience_s + _LEFT_BEHIND_S:
            return  # the kernel holds it (a disk that does not answer); waiting longer does not help
        time.sleep(_PAUSE_S)


def _processes_of(sessions: set[int]) -> list[int]:
    found = []
    for entry in os.listdir(_PROC):
        if entry.isdigit():
            fields = _stat(int(entry))
            if fields is not None and fields[0] not in ("Z", "X") and int(fields[3]) in sessions:
                found.append(int(entry))
    return found


def _stat(pid: int) -> list[str] | None:
    """Return the fields of ``/proc/PID/stat`` from the state on; ``None`` where there is no such process or file."""
    try:
        return (_PROC / str(pid) / "stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return None
