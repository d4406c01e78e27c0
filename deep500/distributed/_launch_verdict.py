"""What a launch came to, from the last words of its ranks and from what was seen of their processes."""

from __future__ import annotations

import contextlib
import signal
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from deep500.core.errors import CommunicationError
from deep500.distributed._launch_records import RankRecord
from deep500.distributed._launch_streams import last_lines
from deep500.distributed._launch_watch import Watch

__all__ = ["Verdict", "verdict"]

_LOGS = "--rank-logs keeps what each rank writes."


@dataclass(frozen=True)
class Verdict:
    """What a launch came to.

    Attributes:
        code: Its exit code.
        lines: What is told on the standard error.
        failure: Why it failed, where no rank has told it.
        is_normal: Whether all ranks came to their end with a verdict, as if no signal had come.
    """

    code: int
    lines: Sequence[str] = field(default=())
    failure: str = ""
    is_normal: bool = False

    def told(self) -> int:
        """Tell it, and return the exit code.

        Raises:
            CommunicationError: No rank has told why it failed.
        """
        if self.lines:
            with contextlib.suppress(OSError, ValueError, AttributeError):
                sys.stderr.write("".join(f"{line}\n" for line in self.lines))
                sys.stderr.flush()
        if self.failure:
            raise CommunicationError(self.failure)
        return self.code


def verdict(watch: Watch, launcher_code: int, *, shrinks: bool) -> Verdict:
    """Return what a launch came to; only a rank that said that it has finished has.

    Args:
        watch: The launch, which has ended.
        launcher_code: The exit code of MPI's launcher, which proves nothing.
        shrinks: Whether ranks that are left were to go on without those that failed.
    """
    records, ranks = watch.records, watch.ranks
    finished, failed = records.finished, records.failed
    codes = [finished[rank].code for rank in sorted(finished)]
    if len(finished) == ranks or (shrinks and finished):
        code = next((code for code in codes if code), 0)
        missing = [rank for rank in range(ranks) if rank not in finished]
        lines = [line for rank in missing for line in _survived(watch, rank)]
        return Verdict(code, lines, is_normal=code in (0, 1))
    own = [record for record in failed.values() if not record.is_of_exchange]
    if not own and (watch.lost or watch.stopped):
        return _lost(watch)
    if failed:
        return _failed(own or list(failed.values()), failed)
    return Verdict(2, failure=_unexplained(watch, launcher_code))


def _failed(told: Sequence[RankRecord], failed: Mapping[int, RankRecord]) -> Verdict:
    """Return the failure of the lowest rank that has one to tell."""
    first = min(told, key=lambda record: record.rank)
    others = sorted(rank for rank in failed if rank != first.rank)
    lines = [f"[rank {first.rank}] {line}" for line in first.text.splitlines()]
    if first.text and others:
        lines.append(f"({_named(others)} failed as well; {_LOGS})")
    if first.message:
        place = f"rank {first.rank}: " if first.rank and not first.text else ""
        lines.append(f"Error: {place}{first.message}")
    return Verdict(first.code, lines)


def _lost(watch: Watch) -> Verdict:
    """Return the failure of a rank that said nothing."""
    rank = watch.ended_first
    if rank is None:
        stopped = _named(sorted(watch.stopped))
        return Verdict(
            2,
            failure=f"{stopped} of {watch.ranks} did not answer for so long that all ranks were ended: the process was "
            f"stopped (SIGSTOP, a debugger). Let all ranks run, or wait longer with --timeout (0 waits for ever).",
        )
    number = watch.signal_that_ended(rank)
    lines = [f"[rank {rank}] {line}" for line in last_lines(watch.log(rank))] if rank else []
    how = "ended in the midst of its program (os._exit, or a signal)"
    ended = how if number is None else f"was ended by {_signal_name(number)}"
    advice = "The system sends it when memory is short. " if number == signal.SIGKILL else ""
    return Verdict(
        2,
        lines,
        failure=f"Rank {rank} of {watch.ranks} {ended}, so all ranks were ended. {advice}{_LOGS}",
    )


def _unexplained(watch: Watch, launcher_code: int) -> str:
    if watch.strangers:
        return (
            f"The launcher of MPI does not tell processes which of the {watch.ranks} ranks they are: it belongs to "
            f"another MPI than mpi4py. Use the launcher of mpi4py's MPI (first on the PATH, or beside Python)."
        )
    records = watch.records
    left = [rank for rank, record in records.finished.items() if record.code]
    missing = [rank for rank in range(watch.ranks) if not records.ended(rank)]
    if left:
        codes = ", ".join(str(records.finished[rank].code) for rank in left)
        return (
            f"{_named(left)} left with exit code {codes} while {_named(missing)} went on, so all ranks were ended. All "
            f"ranks must come to their end together. {_LOGS}"
        )
    if not watch.members and not records.finished:
        return (
            f"MPI's launcher ended with code {launcher_code} before any of {watch.ranks} ranks had begun. What it "
            f"wrote is above; try: mpiexec -n {watch.ranks} hostname"
        )
    return (
        f"{_named(missing)} of {watch.ranks} did not come to an end of the program (MPI's launcher: code "
        f"{launcher_code}). {_LOGS}"
    )


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _survived(watch: Watch, rank: int) -> list[str]:
    """Return what is told of a rank that the others went on without."""
    record, number = watch.records.failed.get(rank), None
    if rank in watch.members:
        number = watch.signal_that_ended(rank)
    text = [] if record is None else [f"[rank {rank}] {line}" for line in record.text.splitlines()]
    if record is not None:
        how = f"failed{f': {record.message}' if record.message and not text else ''}"
    else:
        how = "failed" if number is None else f"was ended by {_signal_name(number)}"
    return [*text, f"Rank {rank} of {watch.ranks} {how}; the others went on without it."]


def _named(ranks: Sequence[int]) -> str:
    numbers = ", ".join(map(str, ranks))
    return f"Rank {numbers}" if len(ranks) == 1 else f"Ranks {numbers}"
