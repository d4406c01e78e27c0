"""Measuring what messages take between two ranks, and what adding takes, for a calibration."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from deep500.core.counts import check_count
from deep500.core.errors import CommunicationError
from deep500.measure.clock import Stopwatch

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from deep500.distributed.communicator import Communicator

__all__ = ["DEFAULT_SIZES_BYTES", "measure_messages", "measure_reduction_s_per_byte"]

#: From a byte to 64 MiB, two sizes for each doubling.
DEFAULT_SIZES_BYTES: tuple[int, ...] = tuple(sorted({round(2 ** (half / 2)) for half in range(53)}))


def measure_messages(
    communicator: Communicator,
    sizes_bytes: Sequence[int] = DEFAULT_SIZES_BYTES,
    *,
    repetitions: int = 11,
    warm_up: int = 3,
    both_ways: bool = True,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Send messages between rank 0 and rank 1, and return their sizes and times.

    Sizes are interleaved, so that what disturbs the machine for a while does not fall on one of them. All ranks call
    it; those beside the first two wait.

    Args:
        communicator: Of two ranks or more.
        sizes_bytes: Sizes of messages.
        repetitions: How often each size is measured.
        warm_up: Further ones before them.
        both_ways: Both send and receive at once, as in the steps of most algorithms, which on one machine share its
            memory; the time is that of such a step. Else a message goes and comes back, and the time is half of that.

    Returns:
        Sizes, and times in seconds, one each a repetition, the same on every rank.

    Raises:
        CommunicationError: There is one rank only, or a size or count is not positive.
    """
    sizes = [check_count("sizes_bytes", size, least=1, error=CommunicationError) for size in sizes_bytes]
    rounds = check_count("repetitions", repetitions, least=1, error=CommunicationError)
    first = check_count("warm_up", warm_up, least=0, error=CommunicationError)
    if communicator.size < 2 or not sizes:
        raise CommunicationError(
            f"Messages of {len(sizes)} sizes were to be measured among {communicator.size} ranks. Accepted are 1 size "
            "or more and 2 ranks or more; start them with mpiexec -n 2."
        )
    buffers = [np.zeros(size, np.uint8) for size in sizes]
    times = np.zeros((rounds, len(sizes)))
    for number in range(first + rounds):
        for place, buffer in enumerate(buffers):
            seconds = _step(communicator, buffer) if both_ways else _round_trip(communicator, buffer) / 2
            if number >= first:
                times[number - first, place] = seconds
    flat = times.ravel()
    communicator.broadcast(flat, root=0)
    return np.tile(np.asarray(sizes, np.float64), rounds), flat


def measure_reduction_s_per_byte(size_bytes: int = 1 << 22, repetitions: int = 11) -> float:
    """Return what adding a received byte of float32 takes on this machine, the median of some repetitions."""
    size = check_count("size_bytes", size_bytes, least=4, error=CommunicationError)
    sums, received = np.zeros(size // 4, np.float32), np.ones(size // 4, np.float32)
    times = []
    for _ in range(check_count("repetitions", repetitions, least=1, error=CommunicationError)):
        watch = Stopwatch()
        np.add(sums, received, out=sums)
        times.append(watch.elapsed_s())
    return float(np.median(times)) / sums.nbytes


def _step(communicator: Communicator, buffer: NDArray[np.uint8]) -> float:
    """Return the seconds of a message each way at once between the first two ranks; 0 elsewhere."""
    if communicator.rank > 1:
        return 0.0
    peer, incoming = 1 - communicator.rank, np.zeros_like(buffer)
    _round_trip(communicator, buffer[:1])  # both are there
    watch = Stopwatch()
    communicator.isendrecv(buffer, peer, incoming, peer).wait()
    return watch.elapsed_s()


def _round_trip(communicator: Communicator, buffer: NDArray[np.uint8]) -> float:
    """Return the seconds of a round trip on rank 0; 0 elsewhere."""
    if communicator.rank == 0:
        watch = Stopwatch()
        communicator.send(buffer, 1)
        communicator.recv(buffer, 1)
        return watch.elapsed_s()
    if communicator.rank == 1:
        communicator.recv(buffer, 0)
        communicator.send(buffer, 0)
    return 0.0
