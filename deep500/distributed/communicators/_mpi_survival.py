"""MPI's fault tolerance (ULFM): whether it is there, and how a rank ends by itself."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import signal
import sys
import threading
import types
from typing import Any, NoReturn

from deep500.core.errors import CommunicationError
from deep500.core.texts import one_line
from deep500.distributed.communicators._mpi_library import mpi

__all__ = ["check_survival", "come_to_the_end_without_waiting", "end_alone", "end_alone_when_it_fails", "is_failure"]

#: What Open MPI's launcher sets where it was told to tolerate faults.
_ENABLED = "OMPI_MCA_mpi_ft_enable"

#: Open MPI's parameter ``async_mpi_finalize``, as a variable of its library.
_ENDS_WITHOUT_WAITING = "ompi_async_mpi_finalize"
_LIBRARY = "libmpi.so"


def check_survival(size: int) -> None:
    """Check that ranks can go on when one of them fails.

    Args:
        size: Number of ranks.

    Raises:
        CommunicationError: They cannot; the message says why.
    """
    library = mpi()
    name = one_line(library.Get_library_version()).strip("\0")[:60]
    if "Open MPI" not in name:
        reason = f"the MPI library is {name}, which lacks it"
    elif not hasattr(library.Comm, "Shrink"):
        reason = "mpi4py is older than 4.1, which brings its calls"
    elif size > 1 and os.environ.get(_ENABLED, "0").lower() not in ("1", "true", "yes", "enabled"):
        reason = "Open MPI's launcher was started without --with-ft ulfm"
    else:
        return
    raise CommunicationError(
        f"Ranks were to go on when one of them fails, which takes MPI's fault tolerance (ULFM), but {reason}. Use Open "
        f"MPI 5, mpi4py from 4.1 (pip install 'deep500[ulfm]') and mpiexec --with-ft ulfm; or on_failure='abort'."
    )


def is_failure(error: Any) -> bool:
    """Return whether an error of MPI says that a rank has failed, or that another rank has noticed it."""
    library = mpi()
    return error.Get_error_class() in (library.ERR_PROC_FAILED, library.ERR_PROC_FAILED_PENDING, library.ERR_REVOKED)


def come_to_the_end_without_waiting() -> None:
    """Have MPI's own end not wait for other ranks.

    Where ranks were lost, Open MPI's wait may last for ever: its barrier is the launcher's, which may count ranks that
    are gone. That was seen in about one of five trainings of which two ranks were killed.
    """
    with contextlib.suppress(OSError, ValueError):  # not there in this build: it waits
        with open("/proc/self/maps") as maps:
            paths = [line.split(maxsplit=5)[-1].strip() for line in maps if _LIBRARY in line]
        if paths:
            ctypes.c_bool.in_dll(ctypes.CDLL(paths[0]), _ENDS_WITHOUT_WAITING).value = True


def end_alone(message: str) -> NoReturn:
    """Say why, and end this rank in a way that the others notice, and that does not end them.

    The launcher ends all ranks where one exits by itself with a code that is not zero; one that a signal ends is lost.
    """
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            if stream is sys.stderr:
                stream.write(f"[rank {mpi().COMM_WORLD.rank}] {message} The other ranks go on.\n")
            stream.flush()
    os.kill(os.getpid(), signal.SIGKILL)
    raise SystemExit(1)  # which a signal to oneself never lets happen


@functools.cache
def end_alone_when_it_fails() -> None:
    """Have an exception that nothing catches, in any thread, end this rank alone after its traceback was printed.

    Otherwise it would come to MPI's end, where it waits for the others, which wait for it.
    """
    print_traceback = sys.excepthook
    print_in_thread = threading.excepthook

    def failed(kind: type[BaseException], error: BaseException, traceback: types.TracebackType | None) -> None:
        print_traceback(kind, error, traceback)
        end_alone(f"{kind.__name__} was not caught.")

    def thread_failed(failure: threading.ExceptHookArgs) -> None:
        print_in_thread(failure)
        if failure.exc_type is not SystemExit:
            name = failure.thread.name if failure.thread is not None else "a thread"
            end_alone(f"{failure.exc_type.__name__} was not caught in {name}.")

    sys.excepthook = failed
    threading.excepthook = thread_failed
