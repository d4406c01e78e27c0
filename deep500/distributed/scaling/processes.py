"""Launches of a rank program: started for a job, waited for, and never left behind."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import sysconfig
import tempfile
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

from deep500.core import errors
from deep500.core.errors import Deep500Error, MeasurementError
from deep500.core.texts import message_of, one_line, shown_path
from deep500.distributed._launch_processes import die_with_parent
from deep500.distributed._run_folder import run_folder
from deep500.distributed.launch import find_mpiexec
from deep500.measure.sampling.plan import THREAD_VARIABLES

__all__ = ["read_job", "report_failure", "report_result", "run_job"]

_PACKAGE = Path(__file__).resolve().parents[2]

#: How much of what ranks wrote before they failed is told, in characters.
_LAST_WORDS = 1500

#: How long ranks that are told to end may take, in seconds.
_PATIENCE_S = 8.0

_JOB, _RESULT, _FAILURE = "job.json", "result.json", "failure.{rank}.json"

#: What a launch's folder is called, and what is in it.
_FOLDER = "deep500-scale-"
_FILES = re.compile(r"job\.json|\.?result\.json|\.?failure\.\d+(\.json)?")


def run_job(module: str, job: Mapping[str, Any], ranks: int, *, threads: int, timeout_s: float) -> dict[str, Any]:
    """Run ``python -m MODULE FOLDER`` on a number of ranks, and return what rank 0 reports.

    The folder holds ``job.json``. Several ranks are started by :mod:`deep500.distributed.launch`, in a process of its
    own, so that nothing of what ranks write is seen; a single one without it. Whatever the exit code is, only a report
    counts.

    Args:
        module: The rank program; it calls :func:`report_result` or :func:`report_failure`.
        job: What it is to do.
        ranks: How many.
        threads: Threads of each rank's libraries.
        timeout_s: Longest time.

    Raises:
        Deep500Error: A rank reported one.
        MissingDependencyError: There is no launcher.
        FileWriteError: No folder can be made for what is reported.
        MeasurementError: The ranks took too long, or rank 0 reported nothing.
    """
    command = [sys.executable, "-m", module]
    if ranks > 1:
        find_mpiexec()  # says what is missing
        command = [sys.executable, "-m", "deep500.distributed.launch", "-n", str(ranks), "-m", module]
    variables = {"TF_CPP_MIN_LOG_LEVEL": "2", **os.environ, **dict.fromkeys(THREAD_VARIABLES, str(threads))}
    with run_folder(_FOLDER, _FILES) as folder, tempfile.TemporaryFile() as log:
        (folder / _JOB).write_text(json.dumps(job))
        process = subprocess.Popen(
            [*command, str(folder)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env=variables,
            start_new_session=True,
            preexec_fn=die_with_parent,
        )
        try:
            process.wait(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            raise MeasurementError(
                f"A launch on {ranks} ranks was not done within {timeout_s:g} s. Take fewer steps, or give --timeout "
                f"more seconds. {_last_words(log)}"
            ) from None
        finally:
            _end(process)
        for failure in sorted(folder.glob(_FAILURE.format(rank="*"))):
            raise _reported(json.loads(failure.read_text()))
        result = folder / _RESULT
        if not result.is_file():
            raise MeasurementError(
                f"A launch on {ranks} ranks ended (exit code {process.returncode}) before it had measured. "
                f"{_last_words(log)}"
            )
        content: dict[str, Any] = json.loads(result.read_text())
        return content


def read_job(folder: str) -> dict[str, Any]:
    """Return the job of a rank program."""
    content: dict[str, Any] = json.loads(Path(folder, _JOB).read_text())
    return content


def report_result(folder: str, result: Mapping[str, Any]) -> None:
    """Report what was measured; on rank 0."""
    partial = Path(folder, f".{_RESULT}")
    partial.write_text(json.dumps(result, allow_nan=False))
    os.replace(partial, Path(folder, _RESULT))


def report_failure(folder: str, error: BaseException, rank: int) -> None:
    """Report why a rank cannot go on."""
    kind = type(error).__name__
    is_own = isinstance(error, Deep500Error)
    message = message_of(error) if is_own else f"{_place(error)}{kind}: {message_of(error)}"
    content = {"kind": kind, "message": message, "rank": rank, "is_own": is_own}
    partial = Path(folder, f".failure.{rank}")
    partial.write_text(json.dumps(content))
    os.replace(partial, Path(folder, _FAILURE.format(rank=f"{rank:06d}")))


def _reported(content: Mapping[str, Any]) -> Deep500Error:
    """Return the error that a rank reported: of its own kind where it is one of ours."""
    kind = getattr(errors, content["kind"], None)
    if content["is_own"] and isinstance(kind, type) and issubclass(kind, Deep500Error):
        return kind(content["message"])
    return MeasurementError(f"Rank {content['rank']} failed: {one_line(content['message'])}")


def _place(error: BaseException) -> str:
    """Return ``file:line: `` of the code that is neither Deep500's nor a library's, the innermost; nothing without."""
    libraries = [_PACKAGE, *(Path(sysconfig.get_path(name)) for name in ("stdlib", "purelib", "platlib"))]
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        file = Path(frame.filename)
        if file.is_file() and not any(file.resolve().is_relative_to(library) for library in libraries):
            return f"{shown_path(frame.filename)}:{frame.lineno}: "
    return ""


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the launcher, also where a second Ctrl-C comes; it ends its ranks, and they end where it is killed."""
    try:
        if process.poll() is None:
            _signal_group(process.pid, signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=_PATIENCE_S)
    finally:
        _signal_group(process.pid, signal.SIGKILL)
        process.wait()


def _signal_group(leader: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):  # it has ended by itself
        os.killpg(leader, number)


def _last_words(log: IO[bytes]) -> str:
    log.seek(0, os.SEEK_END)
    log.seek(max(0, log.tell() - _LAST_WORDS))
    text = one_line(log.read().decode("utf-8", "replace"))
    return f"The ranks' last words: {text}" if text else "The ranks said nothing."
