"""``deep500 run --ranks N``: the same command as several ranks, and the command as one of them."""

from __future__ import annotations

import contextlib
import os
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from deep500.cli.blame import circumstance
from deep500.cli.console import OWN_FAULT
from deep500.cli.exit_codes import FAULT, MISTAKE, UNREAD
from deep500.core.errors import CommunicationError, Deep500Error, FileWriteError
from deep500.core.files import check_writable
from deep500.core.texts import message_of, shown_path

if TYPE_CHECKING:
    from deep500.distributed.rank_options import RankOptions

__all__ = ["DEFAULT_TIMEOUT_S", "launch_if_asked", "run_here", "told_once"]

#: After so long a peer that does not answer is an error, where nothing else was said.
DEFAULT_TIMEOUT_S = 300.0


def launch_if_asked(
    arguments: Sequence[str], ranks: int | None, rank_logs: str | None, options: RankOptions, output: str | None = None
) -> int | None:
    """Run the command as several ranks, and return its exit code; ``None`` where this process is to run the recipe.

    Args:
        arguments: Those of this command, which each rank is given.
        ranks: How many; ``None`` where nobody said.
        rank_logs: Folder for a file of each rank's output.
        options: How the ranks hold together.
        output: The result file of rank 0, which is tried here, before processes are started to find it out.

    Raises:
        Deep500Error: This process is a rank of another number of ranks, or the ranks cannot be started.
    """
    from deep500.distributed.catalogue import COMMUNICATORS
    from deep500.distributed.launch_environment import detect

    environment = detect()
    if ranks is not None:
        from deep500.core.counts import check_count

        check_count("--ranks", ranks, least=1, error=CommunicationError)
    if options.communicator is not None and options.communicator not in COMMUNICATORS:
        COMMUNICATORS.get(options.communicator)  # says which there are, before any rank is started
    if rank_logs is not None and not rank_logs.strip():
        raise CommunicationError("--rank-logs was given as an empty text; accepted is the path of a folder.")
    if environment.launcher != "none":
        if ranks not in (None, environment.size):
            raise CommunicationError(
                f"Received --ranks {ranks}, but {environment.launcher} started {environment.size} ranks, of which this "
                f"is one. Leave --ranks out under {environment.launcher}, or start deep500 run from a plain shell."
            )
        return None
    if rank_logs is not None and ranks is None:
        raise CommunicationError(
            f"Received --rank-logs {shown_path(rank_logs)} for one process, which writes to the terminal. Accepted "
            f"with --ranks N; or send the output to a file."
        )
    if ranks is None or (ranks == 1 and rank_logs is None):
        return None
    if output is not None:
        check_writable(output, "result")
    from deep500.distributed.launch import launch

    return launch(
        ["-m", "deep500", *arguments],
        ranks,
        rank_logs=rank_logs,
        timeout_s=options.timeout_s,
        on_failure=options.on_failure,
        import_from=sys.path[0],
    )


def run_here(action: Callable[[], int], rank_logs: str | None, options: RankOptions) -> int:
    """Run the command in this process: alone, or as a rank that ends all when it cannot go on.

    Args:
        action: Returns the exit code.
        rank_logs: Folder for a file of each rank's output.
        options: How the ranks hold together.
    """
    from deep500.distributed.launch_environment import detect
    from deep500.distributed.rank_process import guard_rank, is_launched, tell_start

    environment = detect()
    if environment.size == 1:
        return action()
    with told_once():
        if rank_logs is not None and not is_launched() and environment.rank:
            _write_to_log(rank_logs, environment.rank)
        guard_rank(on_failure=options.on_failure)
        tell_start()
        code = action()
        sys.stdout.flush()
    return code


@contextlib.contextmanager
def told_once() -> Iterator[None]:
    """Return a block in which one rank of several ends all where it cannot go on.

    What is wrong is told once, by the lowest rank that finds it. In a process that is alone nothing changes.
    """
    from deep500.distributed.launch_environment import detect
    from deep500.distributed.rank_process import end_all_ranks

    if detect().size == 1:
        yield
        return
    try:
        yield
    except BrokenPipeError:
        end_all_ranks("", UNREAD, error="BrokenPipeError")
    except (KeyboardInterrupt, typer.Abort):
        raise
    except Deep500Error as error:
        kind = "CommunicationError" if isinstance(error, CommunicationError) else type(error).__name__
        end_all_ranks(message_of(error), MISTAKE, error=kind)
    except BaseException as error:  # noqa: BLE001 - the last resort: a rank that leaves in silence hangs the others
        if isinstance(error, SystemExit) and isinstance(error.__context__, BrokenPipeError):  # rich makes it of one
            end_all_ranks("", UNREAD, error="BrokenPipeError")
        reason = circumstance(error)
        if reason is not None:
            end_all_ranks(reason, MISTAKE, error=type(error).__name__)
        end_all_ranks(OWN_FAULT, FAULT, text=traceback.format_exc(), error=type(error).__name__)


def _write_to_log(folder: str, rank: int) -> None:
    """Send what this rank writes to a file: no launcher of ours does."""
    path = Path(folder, f"rank-{rank}.log")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        log = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o666)
    except OSError as error:
        raise FileWriteError(
            f"The logs of ranks cannot be written to {shown_path(folder)}: {error.strerror}. Name a folder that can be "
            f"made or written to."
        ) from error
    for stream in (1, 2):
        os.dup2(log, stream)
    os.close(log)
