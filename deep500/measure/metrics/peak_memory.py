"""Peak memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from deep500.core.errors import Deep500Error, InvalidInputError
from deep500.core.texts import message_of, shown
from deep500.measure.metric import Direction, MetricKind
from deep500.measure.metrics._reruns import RerunMetric
from deep500.measure.metrics._resident_memory import ResidentPeak, open_resident_peak

__all__ = ["PeakMemory"]


class PeakMemory(RerunMetric):
    """Most memory in use at one time during a run, in bytes; the largest of several runs.

    On the host it is the resident memory of the whole process, with all that was there before the run
    (:attr:`before_bytes`); memory of child processes, and what is allocated but was never touched, is not in it. The
    attribute ``method`` tells how the peak was found:

    - ``"VmHWM"``: by the kernel's high-water mark, which misses nothing. It is reset before each run (Linux).
    - ``"sampled every 1 ms"``: by a thread, where the mark cannot be reset. Shorter peaks may be missed.
    - ``"device"``: by the hooks that were given, in whatever way the device's allocator counts.

    Where the device cannot tell, the value is NaN and the summary says "unavailable", with the reason.

    Attributes:
        method: How the peak was found; empty before the first run.
        before_bytes: What was resident right before the run of the largest peak; ``None`` on a device.
    """

    unit = "B"
    direction = Direction.LOWER
    kind = MetricKind.COST

    def __init__(
        self,
        *,
        device_peak: Callable[[], int | None] | None = None,
        reset: Callable[[], None] | None = None,
        reruns: int = 1,
    ) -> None:
        """Say whose memory is measured.

        Args:
            device_peak: Returns the most bytes in use on the device since ``reset``, ``None`` where it cannot tell. It
                may also say so by a ``Deep500Error`` or a ``NotImplementedError``. Without it the host is measured.
            reset: Sets the device's peak to what is in use now.
            reruns: Number of runs of the test for this metric, which no other metric then disturbs; 0 for the test's
                own run.

        Raises:
            InvalidInputError: A hook cannot be called, only one is given, or the number is not accepted.
        """
        super().__init__(reruns)
        for name, hook in (("device_peak", device_peak), ("reset", reset)):
            if hook is not None and not callable(hook):
                raise InvalidInputError(f"{name} was given as {shown(hook)}; accepted are functions.")
        if (device_peak is None) != (reset is None):
            raise InvalidInputError("device_peak and reset belong together: a peak is that since the last reset.")
        self._device_peak, self._reset = device_peak, reset
        self._host: ResidentPeak | None = None
        self._before: int | None = None
        self._began = False
        self._unavailable = ""
        self._peaks: list[int] = []
        self.method = ""
        self.before_bytes: int | None = None

    @property
    def samples(self) -> list[int]:
        """The peak of each run, in bytes."""
        return list(self._peaks)

    def begin(self, inputs: Any = None) -> None:
        """Wait for the device and start to watch. A begin without an end, because the run failed, is forgotten."""
        if self.synchronize is not None:
            self.synchronize()
        if self._reset is not None:
            self.method = "device"
            self._ask_device(self._reset)
        else:
            self._host = self._host or open_resident_peak()
            self.method = self._host.method
            self._before = self._host.start()
        self._began = True

    def end(self, outputs: Any = None) -> None:
        """Wait for the device and keep the peak.

        Raises:
            InvalidInputError: There was no begin.
        """
        if self.synchronize is not None:
            self.synchronize()
        if not self._began:
            raise InvalidInputError("PeakMemory was told the end of a run that it was not told the begin of.")
        self._began = False
        peak = self._host.stop() if self._host is not None else self._ask_device(self._device_peak)
        if peak is None:
            self._unavailable = self._unavailable or "the device does not tell its peak"
            return
        if not self._peaks or peak > max(self._peaks):
            self.before_bytes = self._before
        self._peaks.append(int(peak))

    def measure(self, inputs: Any = None, outputs: Any = None, reference_outputs: Any = None) -> float:
        """Return the largest peak in bytes, NaN where it is unavailable.

        Raises:
            InvalidInputError: Nothing was run.
        """
        if self._unavailable:
            return float("nan")
        if not self._peaks:
            raise InvalidInputError("PeakMemory has seen no run yet. Call begin and end around what is measured.")
        return float(max(self._peaks))

    def measure_summary(self, inputs: Any = None, outputs: Any = None, reference_outputs: Any = None) -> str:
        """Return the peak in MiB, how it was found, and by how much it exceeds what was there before."""
        peak = self.measure()
        if self._unavailable:
            return f"unavailable: {self._unavailable}"
        how = [self.method]
        if self.before_bytes is not None:
            how.insert(0, f"{_mebibytes(peak - self.before_bytes)} more than before the run")
        if len(self._peaks) > 1:
            how.append(f"largest of {len(self._peaks)} runs")
        return f"{_mebibytes(peak)} ({', '.join(how)})"

    def _ask_device(self, hook: Callable[[], int | None] | None) -> int | None:
        """Call a hook, and keep the reason why it cannot tell."""
        try:
            return hook() if hook is not None else None
        except (Deep500Error, NotImplementedError) as error:
            self._unavailable = message_of(error)
            return None


def _mebibytes(size: float) -> str:
    return f"{size / 2**20:.1f} MiB"
