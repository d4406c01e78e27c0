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

__all__ = ["HELLO", "SOCKET_NAME", "LauncherLink"]

#: Name of the launcher's socket in its folder.
SOCKET_NAME = "s"

#: What a rank says first: its number, the number of ranks, and its process.
HELLO = struct.Struct("!iii")

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
        die_with_parent()

    def take_streams(self) -> None:
        """Take the output streams that the launcher gives this rank, and end when it ends."""
        called = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            called.settimeout(_ANSWER_S)
            called.connect(str(self._folder / SOCKET_NAME))
            called.sendall(HELLO.pack(self.rank, self._size, os.getpid()))
            _, streams, _, _ = socket.recv_fds(called, 1, 2)
        except OSError:
            called.close()
            return
        if len(streams) != 2:
            called.close()
            return
        called.settimeout(None)
        self._socket = called
        for number, given in zip((1, 2), streams, strict=True):
            os.dup2(given, number)
            os.close(given)
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):  # Python decided before the stream was there
                stream.reconfigure(line_buffering=stream is sys.stderr or stream.isatty())
        threading.Thread(target=self._end_with_launcher, name="end of the launcher", daemon=True).start()

    def send(self, record: RankRecord) -> None:
        """Leave the last word of this rank."""
        if not self._records.write(record):
            with contextlib.suppress(OSError):
                os.write(self._output, b"\n" + record.line().encode())
        if self._socket is not None:
            with contextlib.suppress(OSError):
                self._socket.send(b"\0")  # the launcher looks at once

    def _end_with_launcher(self) -> None:
        assert self._socket is not None
        with contextlib.suppress(OSError):
            while self._socket.recv(1):
                pass
        shutil.rmtree(self._folder, ignore_errors=True)  # which the launcher could not do any more
        os.kill(os.getpid(), signal.SIGKILL)
