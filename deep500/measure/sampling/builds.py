"""Building the workloads of a launch, each time elsewhere in memory."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from deep500.measure.clock import Stopwatch
from deep500.measure.workload import Workload

__all__ = ["Builds"]

#: Largest gap in bytes that is left before a build: as far as two buffers may collide in a first-level cache, and more.
_LARGEST_GAP_BYTES = 1 << 16


class Builds:
    """Builds workloads and, when asked, builds them anew.

    Where a process happens to put their memory costs or saves a workload some per cent, the same ones in every sample.
    Built several times, in random order and behind gaps of random size, they are seen at several places.

    Source: T. Mytkowicz et al., "Producing Wrong Data Without Doing Anything Obviously Wrong!", ASPLOS 2009; C.
    Curtsinger, E. D. Berger, "Stabilizer: Statistically Sound Performance Evaluation", ASPLOS 2013.

    Attributes:
        setup_s: Time of all builds.
    """

    def __init__(self, openers: Sequence[Callable[[], Workload]], stream: np.random.Generator) -> None:
        """Remember how to build; nothing is built yet.

        Args:
            openers: Each builds one workload.
            stream: Draws orders and gaps.
        """
        self.setup_s = 0.0
        self._openers = list(openers)
        self._stream = stream
        self._built: dict[int, Workload] = {}
        self._gaps: list[bytearray] = []

    def build(self) -> list[Workload]:
        """Close what was built before, and build anew."""
        watch = Stopwatch()
        self.close()
        try:
            for index in self._stream.permutation(len(self._openers)):
                self._gaps.append(bytearray(int(self._stream.integers(1, _LARGEST_GAP_BYTES))))
                self._built[int(index)] = self._openers[index]()
        finally:
            self.setup_s += watch.elapsed_s()
        return [self._built[index] for index in range(len(self._openers))]

    def close(self) -> None:
        """Close all workloads."""
        while self._built:
            self._built.popitem()[1].close()

    @contextlib.contextmanager
    def closing(self) -> Iterator[None]:
        """Close all workloads at the end of the block."""
        try:
            yield
        finally:
            self.close()
