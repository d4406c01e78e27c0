"""A rank's side of its launcher: streams that come from there, a last word that goes there, and its end."""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import signal
import socket
import struct
import sys
import threading
from pathlib import Path

from deep500.distributed._launch_processes import die_with_parent
from deep500.distributed._launch_records import RankRecord, Records
from deep500.distributed._run_folder import SOCKET_NAME

__all__ = ["BEGUN", "HELLO", "STARTING", "LauncherLink"]

#: What a rank says first: its number, the number of ranks, and its process.
HELLO = struct.Struct("!iii")

#: What it says later: that it has left its last word, that it starts up, that it and all others have begun.
LEFT, STARTING, BEGUN = b"\0", b"\1", b"\2"

#: The launcher answers within this time, s; the machine may be busy with the start of many ranks.
_ANSWER_S = 60.0


class LauncherLink:
    """The way from a rank to its launcher.

    A rank on a machine that does not see the launcher's folder sends its record with its output, which the launcher of
    MPI carries.

    Attributes:
        rank: Number of the rank.
    """

    def __init__(self, folder: Path, rank: int, size: int) -> None:
        """Call the launcher, where it can be reached from here."""
        self.rank = rank
        self._size = size
        self._folder = folder
        self._records = Records(folder)
        self._output = os.dup(1)
        self._socket: socket.socket | None = None
        self._of_first: list[int] = []  # the first rank's streams, where this one may have to take its place
        die_with_parent()

    def take_streams(self) -> None:
        """Take the output streams that the launcher gives this rank, and end when it ends."""
        called = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            called.settimeout(_ANSWER_S)
            called.connect(str(self._folder / SOCKET_NAME))
            called.sendall(HELLO.pack(self.rank, self._size, os.getpid()))
            _, streams, _, _ = socket.recv_fds(called, 1, 4)
        except OSError:
            called.close()
            return
        if len(streams) not in (2, 4):
            called.close()
            return
        called.settimeout(None)
        self._socket = called
        self._of_first = streams[2:]
        _become(streams[:2])
        threading.Thread(target=self._end_with_launcher, name="end of the launcher", daemon=True).start()

    def take_over_streams(self) -> None:
        """Write where the first rank did from now on, whose place this one takes; again, it does nothing."""
        if self._of_first:
            _become(self._of_first)
            self._of_first = []

    def send(self, record: RankRecord) -> None:
        """Leave the last word of this rank."""
        if not self._records.write(record):
            with contextlib.suppress(OSError):
                os.write(self._output, b"\n" + record.line().encode())
        self.tell(LEFT)  # the launcher looks at once

    def tell(self, news: bytes) -> None:
        """Send a byte of news, where the launcher can be reached from here."""
        if self._socket is not None:
            with contextlib.suppress(OSError):
                self._socket.send(news)

    def _end_with_launcher(self) -> None:
        assert self._socket is not None
        with contextlib.suppress(OSError):
            while self._socket.recv(1):
                pass
        shutil.rmtree(self._folder, ignore_errors=True)  # which the launcher could not do any more
        os.kill(os.getpid(), signal.SIGKILL)


def _become(streams: list[int]) -> None:
    """Make descriptors the standard output and error of this process."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):
            stream.flush()
    for number, given in zip((1, 2), streams, strict=True):
        os.dup2(given, number)
        os.close(given)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # Python decided before the stream was there
            stream.reconfigure(line_buffering=stream is sys.stderr or stream.isatty())
