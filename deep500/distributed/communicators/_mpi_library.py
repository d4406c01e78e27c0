"""mpi4py, loaded where the first communicator is made, and the end of all ranks when one of them fails."""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import threading
import time
import types
from collections.abc import Iterator
from typing import Any, NoReturn

from deep500.core.errors import CommunicationError, MissingDependencyError
from deep500.core.texts import one_line
from deep500.distributed.rank_process import hand_over

__all__ = ["abort_all", "end_all_when_one_fails", "mpi", "translated"]

#: MPI's launcher throws away what it has not read yet when ranks abort; so long it is given to read why.
_PAUSE_S = 0.3


@functools.cache
def mpi() -> Any:
    """Return mpi4py's ``MPI``, which starts MPI the first time.

    Raises:
        MissingDependencyError: mpi4py, or an MPI library that it finds, is not installed.
    """
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:  # RuntimeError: mpi4py without an MPI library
        raise MissingDependencyError(
            f"MPI is needed here and cannot be loaded ({one_line(str(error))}). Install mpi4py and an MPI library: "
            "pip install 'deep500[mpi]', or on a cluster the site's MPI and mpi4py."
        ) from error
    return MPI


@contextlib.contextmanager
def translated(what: str) -> Iterator[None]:
    """Turn MPI's errors into ours."""
    try:
        yield
    except mpi().Exception as error:
        raise CommunicationError(
            f"MPI refused {what}: {one_line(str(error))}. All ranks must call the same operations in the same order, "
            "with buffers of the same length and dtype; look at what the others do."
        ) from error


def abort_all(message: str) -> NoReturn:
    """Say why, and end every rank of the world."""
    hand_over(f"{message} All ranks are ended.")
    errors = sys.__stderr__ or sys.stderr
    for stream in (sys.stdout, errors):
        with contextlib.suppress(OSError, ValueError):  # a closed stream must not keep the ranks alive
            if stream is errors:
                stream.write(f"[rank {mpi().COMM_WORLD.rank}] {message} All ranks are ended.\n")
            stream.flush()
    time.sleep(_PAUSE_S)
    mpi().COMM_WORLD.Abort(1)
    os._exit(1)  # Abort may return before the launcher ends this process


def _unredirected() -> contextlib.AbstractContextManager[Any]:
    """Return a block that writes to the process's own stderr: a library's hook may collect it, to write it too late."""
    return contextlib.nullcontext() if sys.__stderr__ is None else contextlib.redirect_stderr(sys.__stderr__)


@functools.cache
def end_all_when_one_fails() -> None:
    """Have an exception that nothing catches, in any thread, end all ranks after its traceback was printed.

    Without this the other ranks wait for ever.
    """
    print_traceback = sys.excepthook
    print_in_thread = threading.excepthook

    def failed(kind: type[BaseException], error: BaseException, traceback: types.TracebackType | None) -> None:
        with _unredirected():
            print_traceback(kind, error, traceback)
        if not mpi().Is_finalized():
            abort_all(f"{kind.__name__} was not caught.")

    def thread_failed(failure: threading.ExceptHookArgs) -> None:
        with _unredirected():
            print_in_thread(failure)
        if failure.exc_type is not SystemExit and not mpi().Is_finalized():  # ends its thread only, as Python has it
            name = failure.thread.name if failure.thread is not None else "a thread"
            abort_all(f"{failure.exc_type.__name__} was not caught in {name}.")

    sys.excepthook = failed
    threading.excepthook = thread_failed
