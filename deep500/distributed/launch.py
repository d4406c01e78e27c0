"""Starts a Python program as several ranks, watches over them, and leaves none behind.

``python -m deep500.distributed.launch -n 2 script.py`` does for any script what ``deep500 run RECIPE --ranks 2`` does
for a recipe: whatever ends a rank before its time ends all, with the reason, and a code that is not zero.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from deep500.core.counts import check_count
from deep500.core.errors import CommunicationError, Deep500Error, MissingDependencyError
from deep500.core.texts import message_of, shown
from deep500.distributed._launch_limits import allow_files, check_ranks_fit
from deep500.distributed._launch_records import FOLDER_VARIABLE, ON_FAILURE_VARIABLE
from deep500.distributed._launch_verdict import verdict
from deep500.distributed._launch_watch import Watch
from deep500.distributed._run_folder import run_folder
from deep500.distributed.launch_environment import detect
from deep500.distributed.rank_options import RankOptions, timeout_of_option

__all__ = ["DEFAULT_TIMEOUT_S", "find_mpiexec", "launch"]

#: After so long a peer that does not answer is an error, where nothing else was said.
DEFAULT_TIMEOUT_S = 300.0

#: What a rank runs: its first argument is where Python imports from first.
_RANK = "import sys; sys.path[:1] = [sys.argv.pop(1)]; from deep500.distributed.rank_process import main; main()"
_RANK_ISOLATED = "import sys; sys.argv.pop(1); from deep500.distributed.rank_process import main; main()"

#: What a launcher's folder is called, and what is in it.
_FOLDER = "d5-"
_FILES = re.compile(r"s|rank-\d+\.log|(finished|failed)\.\d+\.json|\.(finished|failed)\.\d+\.\d+")

_INSTALL = "Install it with pip install 'deep500[mpi]', or load the site's MPI and its mpi4py."


def launch(
    command: Sequence[str],
    ranks: int,
    *,
    rank_logs: str | PathLike[str] | None = None,
    timeout_s: float | None = DEFAULT_TIMEOUT_S,
    on_failure: str = "abort",
    variables: Mapping[str, str] | None = None,
    import_from: str | None = None,
) -> int:
    """Run a Python program as several ranks, started by the launcher of the MPI that mpi4py uses.

    Rank 0 has the standard output and error of this process; what other ranks write goes to their logs. Every rank has
    to come to its end and say so. Where one does not, because of an exception that nothing catches in any thread,
    ``os._exit`` or a signal, all ranks are ended within seconds, and the reason is written to the standard error, once.
    SIGINT and SIGTERM of this process are passed on to all ranks; it then acts on them itself, once they have ended.
    When this returns or raises, no process is left.

    Args:
        command: What would follow ``python``: ``script.py ARGUMENT...`` or ``-m MODULE ARGUMENT...``.
        ranks: How many processes.
        rank_logs: Folder for a file of each rank's output, ``rank-0.log`` and so on.
        timeout_s: How long a rank may be stopped before all are ended; ``None`` for ever.
        on_failure: ``"abort"`` ends all ranks when one fails; ``"shrink"`` lets those that are left go on.
        variables: Environment variables; by default those of this process. Where none of them says how many threads a
            rank has, the cores are shared out.
        import_from: First entry of ``sys.path``; by default Python's own: the folder of the script, or the current one.

    Returns:
        The exit code: that of the ranks where all came to their end, else that of the rank that failed.

    Raises:
        MissingDependencyError: mpi4py or its launcher is not installed.
        CommunicationError: A rank ended without a word, was stopped for too long, or none began; this process is a
            rank itself; or there cannot be so many.
        FileWriteError: The logs cannot be written.

    Example:
        >>> launch(["train.py", "--epochs", "3"], ranks=2)  # doctest: +SKIP
        0
    """
    count = check_count("ranks", ranks, least=1, error=CommunicationError)
    options = RankOptions(timeout_s=timeout_s, on_failure=on_failure)
    program = _program(command, import_from)
    given = dict(os.environ if variables is None else variables)
    _check_alone(given)
    check_ranks_fit(count, given)
    allow_files(count)
    shrinks = options.on_failure == "shrink"
    start = [*find_mpiexec(), "-n", str(count)]
    start = [*start, *_extra_options(start[0], count, shrinks)]
    logs = None if rank_logs is None else Path(rank_logs).absolute()
    _flush()
    with run_folder(_FOLDER, _FILES) as folder:
        watch = Watch(count, folder, logs, options.timeout_s, shrinks)
        given = {**_defaults(given, count), **given}
        given |= {FOLDER_VARIABLE: str(folder), ON_FAILURE_VARIABLE: options.on_failure}
        return _watched(watch, [*start, *program], given, shrinks)


def _watched(watch: Watch, command: Sequence[str], variables: Mapping[str, str], shrinks: bool) -> int:
    """Run the ranks to their end, tell what is to be told of it, and return the exit code."""
    with _signals_passed_on(watch) as again:
        code = watch.run(command, variables)
        result = verdict(watch, code, shrinks=shrinks)
        if watch.signals and not result.is_normal:
            again.append(watch.signals[0])
            return 128 + watch.signals[0]
    return result.told()


def find_mpiexec() -> list[str]:
    """Return the launcher of the MPI that mpi4py uses: that beside Python, which the same installation brought, if any.

    Raises:
        MissingDependencyError: mpi4py or a launcher is not installed.
    """
    if importlib.util.find_spec("mpi4py") is None:
        raise MissingDependencyError(f"Several ranks need mpi4py, which is not installed. {_INSTALL}")
    beside = Path(sys.executable).parent / "mpiexec"
    found = str(beside) if os.access(beside, os.X_OK) else shutil.which("mpiexec")
    if found is None:
        raise MissingDependencyError(f"Several ranks need mpiexec, which is not on the PATH. {_INSTALL}")
    return [found]


def _program(command: Sequence[str], import_from: str | None) -> list[str]:
    """Return the command of one rank."""
    is_module = len(command) > 1 and command[0] == "-m"
    if not command or isinstance(command, str) or (command[0].startswith("-") and not is_module):
        raise CommunicationError(
            f"The program of the ranks was given as {shown(command)}; accepted is what would follow python: "
            f"script.py ARGUMENT..., or -m MODULE ARGUMENT..."
        )
    if not is_module and not os.path.exists(command[0]):
        raise CommunicationError(f"The program of the ranks is {shown(command[0])}, a file that is not there.")
    own = os.getcwd() if is_module else os.path.dirname(os.path.realpath(command[0]))
    first = own if import_from is None else import_from
    code = _RANK_ISOLATED if getattr(sys.flags, "safe_path", False) or sys.flags.isolated else _RANK
    flags: list[str] = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined] # as multiprocessing does
    return [sys.executable, *flags, "-c", code, first, *command]


def _check_alone(variables: Mapping[str, str]) -> None:
    environment = detect(variables)
    if environment.launcher != "none":
        raise CommunicationError(
            f"Ranks were to be started in a process that is a rank itself: {environment.launcher} started "
            f"{environment.size}. Leave the number of ranks out here, or start from a shell of its own."
        )


def _extra_options(mpiexec: str, ranks: int, shrinks: bool) -> list[str]:
    """Return what the launcher must be told besides: Open MPI's counts cores, and tolerates failures where told to."""
    if ranks <= _cores() and not shrinks:
        return []
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):
        said = subprocess.run([mpiexec, "--version"], capture_output=True, text=True, timeout=30, check=False).stdout
        if "Open MPI" in said or "Open RTE" in said or "PRRTE" in said:
            return [*(["--oversubscribe"] if ranks > _cores() else []), *(["--with-ft", "ulfm"] if shrinks else [])]
    return []


def _defaults(given: Mapping[str, str], ranks: int) -> dict[str, str]:
    """Return variables that ranks have where nothing else was said: threads, and where they can meet besides MPI."""
    threads = str(max(1, _cores() // ranks))
    found = {} if "OMP_NUM_THREADS" in given else {"OMP_NUM_THREADS": threads, "TF_NUM_INTRAOP_THREADS": threads}
    if "MASTER_ADDR" not in given and "MASTER_PORT" not in given:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            found |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free.getsockname()[1])}
    return found


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextlib.contextmanager
def _signals_passed_on(watch: Watch) -> Iterator[list[int]]:
    """Pass SIGINT and SIGTERM on to all ranks; those put into the list are raised again at the end of the block."""
    again: list[int] = []
    previous: dict[int, Any] = {}

    def pass_on(number: int, frame: Any) -> None:
        watch.pass_on(number)

    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGINT, signal.SIGTERM):
            handler = signal.getsignal(number)
            if handler not in (None, signal.SIG_IGN):
                previous[number] = handler
                signal.signal(number, pass_on)
    try:
        yield again
    finally:
        for replaced, handler in previous.items():
            signal.signal(replaced, handler)
        for received in again:
            signal.raise_signal(received)


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):
            stream.flush()


def _main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m deep500.distributed.launch",
        description="Run a Python program as several ranks; whatever ends one before its time ends all.",
    )
    parser.add_argument("-n", "--ranks", type=int, required=True, metavar="N", help="number of ranks")
    parser.add_argument("--rank-logs", metavar="DIR", help="keep what each rank writes in this folder")
    help_of_timeout = "end all where a rank is stopped for longer; 0 waits for ever (default: %(default)g)"
    parser.add_argument("--timeout", type=float, default=DEFAULT_TIMEOUT_S, metavar="SECONDS", help=help_of_timeout)
    parser.add_argument("--on-failure", default="abort", metavar="WHAT", help="abort (default) or shrink")
    parser.add_argument("-m", dest="module", nargs=argparse.REMAINDER, metavar="MODULE", help="a module to run")
    parser.add_argument("program", nargs=argparse.REMAINDER, help="a script to run, and its arguments")
    given = parser.parse_args()
    command = ["-m", *given.module] if given.module else given.program
    try:
        return launch(
            command,
            given.ranks,
            rank_logs=given.rank_logs,
            timeout_s=timeout_of_option(given.timeout),
            on_failure=given.on_failure,
        )
    except Deep500Error as error:
        with contextlib.suppress(OSError, ValueError, AttributeError):
            sys.stderr.write(f"Error: {message_of(error)}\n")
        return 2
    except KeyboardInterrupt:  # end by the signal, as whoever sent it expects, without a traceback
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.raise_signal(signal.SIGINT)
        return 128 + signal.SIGINT


if __name__ == "__main__":
    sys.exit(_main())
