"""Whether this MPI library is faster with blocking or with non-blocking calls, measured once where it matters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from deep500.measure.clock import Stopwatch

__all__ = ["Calibration", "calibrate"]

#: Large enough for the cost of a chunk to settle, and small enough to be measured in a tenth of a second.
_BYTES = 8 << 20

_REPETITIONS = 5

#: From here on non-blocking calls lose more than overlap can win. With MPICH they shortened training steps though they
#: took up to 1.7 times as long; those of Open MPI took 2.6 times as long.
_WORTH_OVERLAP = 2.2


@dataclass(frozen=True)
class Calibration:
    """How long an allreduce in chunks takes.

    Attributes:
        blocking_s: Shortest time with one blocking call after the other, of the slowest rank.
        nonblocking_s: Shortest time with all chunks started, then waited for.
    """

    blocking_s: float
    nonblocking_s: float

    @property
    def nonblocking_is_faster(self) -> bool:
        """Whether a blocking operation is better carried out with non-blocking calls."""
        return self.nonblocking_s < self.blocking_s

    @property
    def overlap_pays(self) -> bool:
        """Whether a started operation should use non-blocking calls rather than be carried out at once."""
        return self.nonblocking_s <= _WORTH_OVERLAP * self.blocking_s


def calibrate(
    communicator: Any,
    maximum: Any,
    blocking: Callable[[npt.NDArray[Any]], None],
    nonblocking: Callable[[npt.NDArray[Any]], None],
) -> Calibration:
    """Measure both ways, in turns, with all ranks; every rank gets the same result.

    Args:
        communicator: mpi4py's communicator.
        maximum: MPI's maximum.
        blocking: An allreduce of a buffer with blocking calls.
        nonblocking: The same with non-blocking calls.
    """
    buffer = np.zeros(_BYTES // 4, np.float32)
    times: tuple[list[float], list[float]] = ([], [])
    for repetition in range(_REPETITIONS + 1):
        for way, carry_out in enumerate((blocking, nonblocking)):
            communicator.Barrier()
            watch = Stopwatch()
            carry_out(buffer)
            if repetition:  # the first of each maps memory
                times[way].append(watch.elapsed_s())
    quickest = np.array([min(taken) for taken in times])  # the others were interrupted
    slowest = np.empty_like(quickest)
    communicator.Allreduce(quickest, slowest, op=maximum)
    return Calibration(float(slowest[0]), float(slowest[1]))
