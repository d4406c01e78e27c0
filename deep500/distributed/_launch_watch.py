"""A launcher's watch over its ranks, from their start to the end of the last one."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import socket
import struct
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from deep500.core.errors import CommunicationError
from deep500.core.texts import message_of, shown_path
from deep500.distributed._launch_link import BEGUN, HELLO, STARTING
from deep500.distributed._launch_processes import Member, die_with_parent, end_sessions
from deep500.distributed._launch_records import Records
from deep500.distributed._launch_streams import STANDARD, LauncherOutput, RankStreams, write_all
from deep500.distributed._run_folder import SOCKET_NAME
from deep500.measure.clock import Stopwatch

__all__ = ["Watch"]

_PERIOD_S = 0.2

#: Once a rank has failed, others that fail too may say so within this time, s.
_GRACE_S = 1.0

#: Ranks may go on for so long, s: after one that left with an exit code, after the last that came to its end (MPI's own
#: end may hang), after a signal to end, and after a second one.
_AFTER_EXIT_S, _AFTER_END_S, _AFTER_SIGNAL_S, _AFTER_SECOND_SIGNAL_S = 10.0, 10.0, 60.0, 2.0

#: The same after a signal while ranks start up, which have nothing to save: they may be importing a framework, which
#: puts signals off, and takes a minute on a busy machine.
_AFTER_SIGNAL_AT_START_S = 1.0

#: MPI's launcher ends within this time after its ranks, s.
_LAUNCHER_S = 3.0

#: Shows the cursor of a terminal again, which a progress bar hides.
_SHOW_CURSOR = b"\x1b[?25h\n"


class Watch:
    """The ranks of one launch.

    Attributes:
        records: What ranks have left.
        signals: The signals to end that came, which the ranks were sent.
        lost: Ranks whose process ended without a last word, in the order in which that was seen.
        ended_by: The signals that ended them, where known.
        stopped: Ranks that were stopped for too long, or when others gave up waiting.
        strangers: Processes that are no rank of this launch though its launcher of MPI started them.
    """

    def __init__(self, ranks: int, folder: Path, logs: Path | None, timeout_s: float | None, shrinks: bool) -> None:
        """Listen for ranks.

        Args:
            ranks: How many there are.
            folder: An empty folder that nobody else can read.
            logs: Where the output of each rank is kept; ``None`` to keep none.
            timeout_s: How long a rank may be stopped; ``None`` for ever.
            shrinks: Whether the ranks that are left go on when one fails.

        Raises:
            FileWriteError: The logs cannot be written.
        """
        self.ranks = ranks
        self.records = Records(folder)
        self.signals: list[int] = []
        self.lost: list[int] = []
        self.ended_by: dict[int, int] = {}
        self.stopped: list[int] = []
        self.strangers = 0
        self.members: dict[int, Member] = {}
        self._start_up = self._has_begun = False
        self._timeout_s = timeout_s
        self._shrinks = shrinks
        self._selector = selectors.DefaultSelector()
        self._streams = RankStreams(folder, logs, self._carry)
        self._links: list[socket.socket] = []
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(str(folder / SOCKET_NAME))
        self._listener.listen(ranks)
        self._on_readable(self._listener.fileno(), self._greet)
        self._since: dict[str, Stopwatch] = {}

    def run(self, command: Sequence[str], variables: Mapping[str, str]) -> int:
        """Start the ranks, wait for their end or bring it about, and return the exit code of MPI's launcher.

        Raises:
            CommunicationError: MPI's launcher cannot be started.
        """
        process = _started(command, variables)
        assert process.stdout is not None
        assert process.stderr is not None
        pipes = ((process.stdout.fileno(), 1), (process.stderr.fileno(), 2))
        self.outputs = [LauncherOutput(source, target, self.records.add) for source, target in pipes]
        for output in self.outputs:
            self._carry(output.source, output.move)
        try:
            while process.poll() is None and not self._is_over():
                for key, _ in self._selector.select(_PERIOD_S):
                    key.data()
                self.records.read()
        finally:
            self._end(process)
        return process.returncode

    def pass_on(self, number: int) -> None:
        """Send a signal to end to all ranks, now and when they come; the third one ends them at once."""
        self.signals.append(number)
        self._since.pop("signalled", None)
        for member in self.members.values():
            member.send(number if len(self.signals) < 3 else signal.SIGKILL)

    def log(self, rank: int) -> Path:
        """Return the file that has a rank's output."""
        return self._streams.log(rank)

    @property
    def ended_first(self) -> int | None:
        """The rank that was lost first: the one that MPI's launcher names, or that was seen first."""
        pids = [output.ended_pid for output in self.outputs if output.ended_pid is not None]
        named = [rank for rank in self.lost if self.members[rank].pid in pids]
        return next(iter(named or self.lost), None)

    def signal_that_ended(self, rank: int) -> int | None:
        """Return the signal that ended a rank that was lost, as far as the system or MPI's launcher has told it."""
        told = (output.ended_by for output in self.outputs if output.ended_pid == self.members[rank].pid)
        return self.ended_by.get(rank) or next((number for number in told if number), None)

    def _is_over(self) -> bool:
        """Return whether what is still there is to be ended."""
        ended = [rank for rank in range(self.ranks) if self.records.ended(rank)]
        failed = bool(self.records.failed or self.lost or self.strangers) and not self._shrinks
        left = any(record.code for record in self.records.finished.values()) and not self._shrinks
        if self._timeout_s is not None:
            self.stopped = [rank for rank in self.members if self._lasts(f"stop {rank}", self._is_stopped(rank))]
        patience = _AFTER_SIGNAL_AT_START_S if self._start_up else _AFTER_SIGNAL_S
        patience = patience if len(self.signals) < 2 else min(patience, _AFTER_SECOND_SIGNAL_S)
        nobody_left = len({*ended, *self.lost}) == self.ranks
        return (
            (failed and nobody_left)
            or self._for("failed", failed, _GRACE_S)
            or self._for("left", left, _AFTER_EXIT_S)
            or self._for("ended", nobody_left, _AFTER_END_S)
            or self._for("signalled", bool(self.signals), patience)
            or bool(self.stopped)
        )

    def _is_stopped(self, rank: int) -> bool:
        return rank not in self.lost and self.members[rank].is_stopped()

    def _lasts(self, what: str, holds: bool) -> bool:
        return self._for(what, holds, self._timeout_s or 0.0)

    def _for(self, what: str, holds: bool, seconds: float) -> bool:
        """Return whether something has held for longer than a time."""
        if not holds:
            self._since.pop(what, None)
            return False
        return self._since.setdefault(what, Stopwatch()).elapsed_s() > seconds

    def _end(self, process: subprocess.Popen[bytes]) -> None:
        """Leave no process behind."""
        if any(record.is_of_exchange for record in self.records.failed.values()):
            self.stopped = [rank for rank in self.members if self._is_stopped(rank)] or self.stopped
        was_cut = process.poll() is None and 0 in self.members and not self.records.ended(0)
        running = process.poll() is None
        sessions = [member.session for member in self.members.values() if member.session is not None]
        if running:
            self._note_lost()
            for member in self.members.values():
                member.send(signal.SIGKILL)
        try:
            process.wait(_LAUNCHER_S)
        except subprocess.TimeoutExpired:
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_LAUNCHER_S)
        finally:
            process.kill()
            process.wait()
            end_sessions([process.pid, *sessions])
        self._collect(process, running)
        if was_cut:
            for stream in (1, 2):
                if os.isatty(stream):
                    write_all(stream, _SHOW_CURSOR)
                    break

    def _note_lost(self) -> None:
        """Look for ranks that have ended by themselves, before the others are ended."""
        for key, _ in self._selector.select(0):
            key.data()

    def _collect(self, process: subprocess.Popen[bytes], running: bool) -> None:
        """Read what was left to read, and let go of everything."""
        if not running:
            self._note_lost()
        self._streams.drain()
        for output in self.outputs:
            output.close()
        self.records.read()
        self.lost = [rank for rank in self.lost if not self.records.ended(rank)]
        self._selector.close()
        for stream in (self._listener, *self._links, process.stdout, process.stderr):
            if stream is not None:
                stream.close()
        for member in self.members.values():
            member.close()

    def _on_readable(self, source: int, action: Callable[[], None]) -> None:
        self._selector.register(source, selectors.EVENT_READ, action)

    def _carry(self, source: int, move: Callable[[], bool]) -> None:
        """Have what comes from a stream moved on, up to its end."""

        def on_readable() -> None:
            if not move():
                self._selector.unregister(source)

        self._on_readable(source, on_readable)

    def _greet(self) -> None:
        """Take up a rank that calls, and give it its streams."""
        link, _ = self._listener.accept()
        link.settimeout(_GRACE_S)
        try:
            rank, size, pid = HELLO.unpack(link.recv(HELLO.size, socket.MSG_WAITALL))
            if rank in self.members or not 0 <= rank < self.ranks or size != self.ranks:
                self.strangers += 1
                link.close()
                return
            member = Member(rank, _peer(link, pid))
            streams, close = self._streams.of(rank)
            try:
                # One that may have to take the place of the first rank gets the launcher's own streams too.
                socket.send_fds(link, [b"\0"], [*streams, *STANDARD] if self._shrinks and rank else streams)
            finally:
                close()
        except (OSError, struct.error):  # it has ended meanwhile
            link.close()
            return
        self.members[rank] = member
        self._links.append(link)
        self._on_readable(link.fileno(), lambda: self._hear(link, member))
        if member.watched is not None:
            watched = member.watched
            self._on_readable(watched, lambda: self._lose(watched, member))
        for number in self.signals:
            member.send(number)

    def _hear(self, link: socket.socket, member: Member) -> None:
        """Read the news of a rank: that it has left its last word, starts up or has begun, or that it has ended."""
        try:
            news = link.recv(16)
        except OSError:
            news = b""
        if STARTING in news:
            self._start_up = not self._has_begun
        if BEGUN in news:
            self._has_begun, self._start_up = True, False
        if not news:
            self._selector.unregister(link)
            if member.watched is None:
                self._lost(member)

    def _lose(self, watched: int, member: Member) -> None:
        number = member.signal_that_ended()
        if number is not None:
            self.ended_by[member.rank] = number
        self._selector.unregister(watched)
        self._lost(member)

    def _lost(self, member: Member) -> None:
        self.records.read()
        if not self.records.ended(member.rank):
            self.lost.append(member.rank)


def _started(command: Sequence[str], variables: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """Start MPI's launcher, which ends when this process does.

    Raises:
        CommunicationError: The system refuses.
    """
    try:
        return subprocess.Popen(
            command,
            env=dict(variables),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C of a terminal comes to this process alone, which passes it on
            preexec_fn=die_with_parent,
        )
    except (OSError, subprocess.SubprocessError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else message_of(error)
        raise CommunicationError(
            f"MPI's launcher {shown_path(command[0])} cannot be started: {why}. Try by itself: "
            f"{shown_path(command[0])} -n 1 hostname"
        ) from error


def _peer(link: socket.socket, told: int) -> int:
    """Return the process at the other end, by the number that it has here."""
    if not hasattr(socket, "SO_PEERCRED"):
        return told
    pid: int = struct.unpack("iII", link.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("iII")))[0]
    return pid or told
