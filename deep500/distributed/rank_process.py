"""A process that is one rank of several: whatever ends it before its time ends all, and says why.

MPI lets the other ranks wait for ever where one of them raises an exception that nothing catches, in any thread, or
leaves. ``python -m deep500.distributed.launch`` and ``deep500 run --ranks`` start each rank through :func:`main`; a
program that was started by ``mpiexec``, ``srun`` or ``torchrun`` itself calls :func:`guard_rank`.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import runpy
import signal
import sys
import threading
import time
import traceback
import types
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from deep500.core.errors import CommunicationError
from deep500.core.texts import message_of, one_line
from deep500.distributed._launch_link import BEGUN, STARTING, LauncherLink
from deep500.distributed._launch_records import FOLDER_VARIABLE, ON_FAILURE_VARIABLE, RankRecord
from deep500.distributed.launch_environment import detect

__all__ = [
    "end_all_ranks",
    "guard_rank",
    "hand_over",
    "is_launched",
    "main",
    "take_over_output",
    "tell_begin",
    "tell_start",
]

#: A launcher ends a rank that has failed within this time, s; after it the rank does that by itself.
_PATIENCE_S = 15.0

#: A rank other than the first lets those before it say what they all have to say, s.
_COURTESY_S, _COURTESY_A_RANK_S, _MOST_COURTESY_S = 1.0, 0.1, 3.0

_INTERRUPTED = 128 + signal.SIGINT


class _State:
    """What is known of this process."""

    link: LauncherLink | None = None
    guarded = False
    survivors_go_on = False
    code = 1  # of a program that does not come to its end


def guard_rank(*, on_failure: str = "abort") -> None:
    """Have an exception that nothing catches, in any thread, end all ranks, after its traceback with the rank's number.

    An exception that Python ignores (in ``__del__`` and the like) is told with the rank's number and ends nothing, as
    in a process that is alone. Nothing changes in such a process, or where this was called before.

    Args:
        on_failure: ``"abort"`` ends all ranks, ``"shrink"`` this one alone.
    """
    _State.survivors_go_on = _State.survivors_go_on or on_failure == "shrink"
    if _State.guarded or (_State.link is None and detect().size == 1):
        return
    _State.guarded = True

    def failed(kind: type[BaseException], error: BaseException, trace: types.TracebackType | None) -> None:
        _fail(error, "".join(traceback.format_exception(kind, error, _of_program(trace))))

    def thread_failed(failure: threading.ExceptHookArgs) -> None:
        if failure.exc_type is SystemExit:  # ends its thread only, as Python has it
            return
        name = failure.thread.name if failure.thread is not None else "unknown"
        lines = traceback.format_exception(failure.exc_type, failure.exc_value, failure.exc_traceback)
        error = failure.exc_value if failure.exc_value is not None else failure.exc_type()
        _fail(error, f"Exception in thread {name}:\n{''.join(lines)}")

    def ignored(unraisable: sys.UnraisableHookArgs) -> None:
        lines = traceback.format_exception(unraisable.exc_type, unraisable.exc_value, unraisable.exc_traceback)
        _say(f"{unraisable.err_msg or 'Exception ignored in'}: {unraisable.object!r}\n{''.join(lines)}")

    sys.excepthook = failed
    threading.excepthook = thread_failed
    sys.unraisablehook = ignored


def end_all_ranks(message: str, code: int, *, text: str = "", error: str = "") -> NoReturn:
    """End all ranks because of this one, with a message that is told once, of the lowest rank that has it.

    Args:
        message: One line; empty to say nothing.
        code: Exit code of the whole.
        text: A traceback, which is told before it.
        error: Kind of the error.
    """
    hand_over(message, code, text=text, error=error)
    if not _State.survivors_go_on:
        _wait_for_lower_ranks()
    elif _State.link is not None:
        _end(code)  # the launcher tells it
    if text:
        _say(text)
    if message:
        _write_error(f"Error: {message}\n")
    _end(code)


def hand_over(message: str, code: int = 2, *, text: str = "", error: str = "CommunicationError") -> None:
    """Where a launcher watches over the ranks, leave it to it to tell why this one fails, and to end all.

    It returns at once where there is no such launcher, or ranks that are left go on.

    Args:
        message: Why, in one line.
        code: Exit code of the whole.
        text: A traceback.
        error: Kind of the error.
    """
    link = _State.link
    if link is None:
        return
    _flush()
    link.send(RankRecord(link.rank, False, code, error, one_line(message), text))
    if not _State.survivors_go_on:
        time.sleep(_PATIENCE_S)


def is_launched() -> bool:
    """Return whether a launcher of ours watches over this rank."""
    return _State.link is not None


def take_over_output() -> None:
    """Write where the first rank did, whose place this one takes since that one has failed.

    Nothing changes where no launcher of ours watches over this rank, or where it is the first one itself.
    """
    if _State.link is not None:
        _State.link.take_over_streams()


def tell_start() -> None:
    """Tell the launcher that nothing of this rank is lost yet where it is ended: no signal has to be waited for.

    Where a framework is being imported, which on a busy machine takes a minute, signals are put off.
    """
    if _State.link is not None:
        _State.link.tell(STARTING)


def tell_begin() -> None:
    """Tell the launcher that the ranks, all of them, have begun: on a signal they are given time to end by themselves.

    It is so from the start on where nobody has called :func:`tell_start`.
    """
    if _State.link is not None:
        _State.link.tell(BEGUN)


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run a Python program as a rank, guarded: ``script.py ARGUMENT...`` or ``-m MODULE ARGUMENT...``.

    Args:
        arguments: The program and its arguments; by default those of the process.
    """
    program = list(sys.argv[1:] if arguments is None else arguments)
    try:
        _begin()
        _run(program)
        code = 0
    except SystemExit as end:
        code = _exit_code(end)
    except KeyboardInterrupt:
        code = _INTERRUPTED
    except BaseException:  # noqa: BLE001 - it ends all ranks
        sys.excepthook(*sys.exc_info())  # whatever is there by now, which may end this rank alone
        end_all_ranks("", 1, text=traceback.format_exc())
    _State.code = code
    sys.exit(
        0 if _State.link is not None else code
    )  # a launcher of MPI ends the other ranks where one exits with another


def _begin() -> None:
    """Meet the launcher, and register what is done last of all."""
    folder = os.environ.get(FOLDER_VARIABLE)
    environment = detect()
    if folder is not None:
        _State.link = link = LauncherLink(Path(folder), environment.rank, environment.size)
        link.take_streams()
        atexit.register(_finish)
    guard_rank(on_failure=os.environ.get(ON_FAILURE_VARIABLE, "abort"))


def _finish() -> None:
    link = _State.link
    if link is not None:
        _flush()
        link.send(RankRecord(link.rank, True, _State.code))


def _run(program: list[str]) -> None:
    if program[0] == "-m":
        sys.argv = program[1:]
        runpy.run_module(program[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = program
        runpy.run_path(program[0], run_name="__main__")


def _exit_code(end: SystemExit) -> int:
    """Return the exit code of ``sys.exit``, which ends all ranks where it has something to say."""
    if end.code is None:
        return 0
    if isinstance(end.code, int):
        return end.code & 0xFF
    end_all_ranks(one_line(str(end.code)), 1, error="SystemExit")


def _fail(error: BaseException, text: str) -> None:
    if isinstance(error, KeyboardInterrupt):
        code, text = _INTERRUPTED, ""
    else:
        code = 1
    kind = "CommunicationError" if isinstance(error, CommunicationError) else type(error).__name__
    if (
        _State.survivors_go_on
    ):  # the communicator's own hook, which called this one, ends the rank so that others notice
        hand_over(f"{kind}: {message_of(error)}" if text else "", code, text=text, error=kind)
        _say(text)
        return
    end_all_ranks("", code, text=text, error=kind)


def _of_program(trace: types.TracebackType | None) -> types.TracebackType | None:
    """Return a traceback without the frames of this file and of what runs programs."""
    own = (__file__, runpy.__file__, "<frozen runpy>", "<string>")
    while trace is not None and trace.tb_next is not None and trace.tb_frame.f_code.co_filename in own:
        trace = trace.tb_next
    return trace


def _wait_for_lower_ranks() -> None:
    rank = detect().rank
    if rank:
        time.sleep(min(_COURTESY_S + _COURTESY_A_RANK_S * rank, _MOST_COURTESY_S))


def _end(code: int) -> NoReturn:
    """End all ranks; this one alone where the others are to go on."""
    _flush()
    if _State.survivors_go_on:
        os.kill(os.getpid(), signal.SIGKILL)
    library: Any = sys.modules.get("mpi4py.MPI")  # of a communicator; without one the launcher sees the exit code
    if library is not None and library.Is_initialized() and not library.Is_finalized():
        library.COMM_WORLD.Abort(code)
    os._exit(code)


def _say(text: str) -> None:
    rank = detect().rank
    _write_error("".join(f"[rank {rank}] {line}\n" for line in text.splitlines()))


def _write_error(text: str) -> None:
    with contextlib.suppress(OSError, ValueError, AttributeError):  # a stream that is closed must not keep ranks alive
        sys.stderr.write(text)
        sys.stderr.flush()


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):
            stream.flush()
