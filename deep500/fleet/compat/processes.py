"""Processes that end in time, with all that they started.

A job runs this file where Deep500 is not installed: it needs nothing but the standard library.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING or __package__:
    from deep500.measure.clock import now_ns
else:  # as a job: it is brought along
    from clock import now_ns

__all__ = ["Ended", "OutOfTimeError", "end_when_alone", "now_s", "run", "terminated_as_exit", "without_python_settings"]

#: So long a process may take to end after it was asked to.
_GRACE_S = 3.0


class OutOfTimeError(Exception):
    """The deadline passed."""


class Ended(BaseException):
    """Someone asked the job to end, with this signal."""

    def __init__(self, number: int) -> None:
        """Take the signal's number."""
        super().__init__(signal.Signals(number).name)
        self.number = number


def now_s() -> float:
    """Return the seconds of a clock that nobody sets, from an arbitrary moment."""
    return now_ns() * 1e-9


@contextmanager
def terminated_as_exit() -> Iterator[None]:
    """Raise :class:`Ended` in the main thread on SIGTERM, SIGINT and SIGHUP, so that what was started is ended."""

    def raise_ended(number: int, _: object) -> None:
        for each in numbers:
            signal.signal(each, signal.SIG_IGN)  # one is enough: what follows must not be cut short
        raise Ended(number)

    numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    before = [signal.signal(number, raise_ended) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, before):
            signal.signal(number, handler)


def run(
    command: Sequence[str],
    deadline: float,
    output: IO[str] | int,
    errors: IO[str] | int,
    *,
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
    kept: Sequence[int] = (),
) -> int:
    """Run a command in a process group of its own and return its exit code, the negative number of a signal.

    However it ends, nothing of the group is left.

    Args:
        command: What to run.
        deadline: When it has to have ended, by :func:`now_s`.
        output: Where its output goes.
        errors: Where its errors go.
        folder: Where it runs.
        environment: Its environment variables.
        kept: Handles of files that it keeps open, such as that of a lock that it works under.

    Raises:
        OutOfTimeError: The deadline passed.
        OSError: It cannot be started.
    """
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=errors,
        cwd=folder,
        env=environment,
        start_new_session=True,
        pass_fds=kept,
    )
    try:
        return process.wait(max(0.0, deadline - now_s()))
    except subprocess.TimeoutExpired:
        raise OutOfTimeError from None
    finally:
        _end_group(process)


def _end_group(process: subprocess.Popen[bytes]) -> None:
    """End a process and all of its group: with SIGTERM, and what then is left with SIGKILL."""
    if process.poll() is None:
        _signal_group(process.pid, signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            process.wait(_GRACE_S)
    _signal_group(process.pid, signal.SIGKILL)
    process.wait()


def _signal_group(group: int, number: int) -> None:
    with suppress(ProcessLookupError, PermissionError):  # macOS refuses where only ended processes are left
        os.killpg(group, number)


def end_when_alone(limit_s: float) -> None:
    """End this process and its group when the one that started it is gone, and in any case after a time.

    The alarm's default action ends the process without a word of Python, also within a library that never returns.
    """
    parent = os.getppid()
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, limit_s)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.2)
        os.killpg(os.getpgrp(), signal.SIGKILL)

    threading.Thread(target=watch, daemon=True).start()


def without_python_settings() -> dict[str, str]:
    """Return this process's environment without what would bring another Python's packages into one."""
    taken = ("PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP", "VIRTUAL_ENV", "__PYVENV_LAUNCHER__")
    kept = {name: value for name, value in os.environ.items() if name not in taken}
    return {**kept, "PYTHONNOUSERSITE": "1", "PYTHONUNBUFFERED": "1", "PYTHONIOENCODING": "utf-8"}
