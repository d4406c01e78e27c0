"""The command as a process: its streams, whatever is behind them, and the signals that end it."""

from __future__ import annotations

import contextlib
import io
import os
import signal
import sys
from collections.abc import Callable
from typing import Any

from deep500.cli.console import print_error
from deep500.cli.exit_codes import FAILED, MISTAKE, PASSED, TERMINATED

__all__ = ["run_as_process"]


def run_as_process(command: Callable[[], int]) -> int:
    """Run a command and return the exit code to leave with.

    What a stream's encoding lacks is written as an escape. A closed standard error is like ``/dev/null``; a closed
    standard output is a mistake, as is one that does not take what is written. SIGTERM ends the command as Ctrl-C does,
    with an exit code of its own.
    """
    is_closed = sys.stdout is None
    _open_missing_streams()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    terminations: list[int] = []

    def terminate(number: int, frame: Any) -> None:
        terminations.append(number)
        raise KeyboardInterrupt

    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, terminate)
    if is_closed:
        print_error("The standard output is closed. Send it somewhere, for example to /dev/null.")
        code = MISTAKE
    else:
        code = command()
    code = TERMINATED if terminations and code not in (PASSED, FAILED) else code
    return _flushed(code)


def _open_missing_streams() -> None:
    """Open ``/dev/null`` for each standard stream that is closed.

    Otherwise the next files that are opened, such as a result file, take the streams' places, and what libraries write
    to these goes there.
    """
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(descriptor, True)
    os.close(descriptor)
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115 - for the process's lifetime


def _flushed(code: int) -> int:
    """Write out what is buffered, and let nothing that Python does after this change the exit code."""
    for number in (signal.SIGINT, signal.SIGTERM):
        if callable(signal.getsignal(number)):
            signal.signal(number, signal.SIG_DFL)  # else a traceback, from wherever Python is in its last steps
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            code = MISTAKE if code in (PASSED, FAILED) else code
            _discard(stream)
    return code


def _discard(stream: Any) -> None:
    """Lead a stream that does not take what is written to ``/dev/null``; Python would try again in the end."""
    with contextlib.suppress(OSError, ValueError):
        descriptor = os.open(os.devnull, os.O_WRONLY)
        os.dup2(descriptor, stream.fileno())
        os.close(descriptor)
        stream.flush()
