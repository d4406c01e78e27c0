"""The most memory that a process had resident while something ran."""

from __future__ import annotations

import contextlib
import logging
import threading
import weakref
from collections.abc import Callable
from pathlib import Path

__all__ = ["HighWaterMark", "ResidentPeak", "SampledPeak", "open_resident_peak"]

#: Seconds between two samples, where the kernel's own mark cannot be used.
SAMPLING_INTERVAL_S = 0.001

#: Where the process itself is seen.
_SELF = Path("/proc/self")

#: How far above the resident memory the mark may stand right after a reset that worked: other threads allocate.
_SLACK_BYTES = 16 * 2**20

_logger = logging.getLogger(__name__)


class HighWaterMark:
    """The kernel's own mark, which misses nothing: ``VmHWM``, reset by writing 5 to ``clear_refs`` (Linux).

    The kernel counts pages in batches for each processor, so that the mark may be some hundred KiB off. The reset is
    the whole process's: ``getrusage`` tells a peak since then as well.

    Source: proc_pid_clear_refs(5), proc_pid_status(5).

    Attributes:
        method: How the peak is found, for people.
    """

    method = "VmHWM"

    def __init__(self, folder: Path = _SELF) -> None:
        """Say where the process is seen.

        Args:
            folder: Its folder in ``/proc``.
        """
        self._folder = folder

    def works(self) -> bool:
        """Whether the mark can be reset here; not every sandbox lets a process do so, and some only pretend."""
        try:
            before = self.start()
            return self.stop() <= before + _SLACK_BYTES
        except (OSError, KeyError, ValueError) as error:
            _logger.debug("The high-water mark of resident memory cannot be used: %s", error)
            return False

    def start(self) -> int:
        """Set the mark to what is resident now, and return that, in bytes."""
        (self._folder / "clear_refs").write_text("5")
        return self._status_bytes("VmRSS")

    def stop(self) -> int:
        """Return the mark in bytes."""
        return self._status_bytes("VmHWM")

    def _status_bytes(self, name: str) -> int:
        lines = (self._folder / "status").read_text().splitlines()
        return int(dict(line.split(":", 1) for line in lines)[name].split()[0]) * 1024


class SampledPeak:
    """A thread that looks every millisecond: the peak is at least what it saw.

    It misses what is given back between two looks, and sees nothing while other code keeps Python's interpreter lock.

    Attributes:
        method: How the peak is found, for people.
    """

    method = f"sampled every {SAMPLING_INTERVAL_S * 1e3:.0f} ms"

    def __init__(self, resident_bytes: Callable[[], int] | None = None) -> None:
        """Say how to look.

        Args:
            resident_bytes: Returns the resident memory; by default that of this process.
        """
        self._resident_bytes = resident_bytes or _resident_bytes()
        self._stop: Callable[[], int] | None = None

    def start(self) -> int:
        """Start looking, and return what is resident now, in bytes."""
        if self._stop is not None:  # the run before this one failed, so that nobody called stop
            self._stop()
        now = self._resident_bytes()
        seen, ended = [now], threading.Event()
        thread = threading.Thread(target=_look, args=(self._resident_bytes, seen, ended), daemon=True)
        # A run that fails never comes to stop; then the thread ends with this object.
        finish = weakref.finalize(self, ended.set)
        thread.start()

        def stop() -> int:
            finish()
            thread.join()
            return max(seen[0], self._resident_bytes())

        self._stop = stop
        return now

    def stop(self) -> int:
        """Stop looking, and return the largest that was seen, in bytes."""
        if self._stop is None:
            raise RuntimeError("There was no start.")
        stop, self._stop = self._stop, None
        return stop()


ResidentPeak = HighWaterMark | SampledPeak


def open_resident_peak() -> ResidentPeak:
    """Return the best way that this system has."""
    mark = HighWaterMark()
    return mark if mark.works() else SampledPeak()


def _look(resident_bytes: Callable[[], int], seen: list[int], ended: threading.Event) -> None:
    with contextlib.suppress(OSError):  # the interpreter may be ending
        while not ended.wait(SAMPLING_INTERVAL_S):
            seen[0] = max(seen[0], resident_bytes())


def _resident_bytes() -> Callable[[], int]:
    import psutil

    process = psutil.Process()
    return lambda: int(process.memory_info().rss)
