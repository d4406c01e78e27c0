"""Stragglers, noise and late messages, put in on purpose and the same for the same seed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from deep500.core.errors import CommunicationError
from deep500.core.random import check_seed, random_stream

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Disturbance", "LateMessages"]

#: Draws of one rank that are made together.
_BLOCK = 256


@dataclass(frozen=True)
class Disturbance:
    """What goes wrong in a simulated run.

    Attributes:
        slowdowns: By rank, how many times longer it computes than the others.
        straggler_share: Chance of each rank and step to be a straggler.
        straggler_slowdown: How many times longer a straggler computes.
        noise: Standard deviation of the logarithm of each compute time (log-normal with the median 1).
        late_share: Chance of each message to be late.
        late_s: Mean of how late such a message is, exponentially distributed.
        seed: Of all draws.
    """

    slowdowns: Mapping[int, float] = field(default_factory=dict)
    straggler_share: float = 0.0
    straggler_slowdown: float = 1.0
    noise: float = 0.0
    late_share: float = 0.0
    late_s: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        """Check the numbers.

        Raises:
            CommunicationError: A share is not within 0 to 1, a slowdown is not positive, or a time negative.
        """
        check_seed(self.seed)
        slowdowns = [*self.slowdowns.values(), self.straggler_slowdown]
        shares = (self.straggler_share, self.late_share)
        are_right = all(0 <= share <= 1 for share in shares) and all(0 < factor < np.inf for factor in slowdowns)
        if not are_right or not (0 <= self.noise < np.inf and 0 <= self.late_s < np.inf):
            raise CommunicationError(
                f"Received {self}. Accepted are shares from 0 to 1, slowdowns above 0, and noise and late_s that are "
                "not negative."
            )

    def compute_factors(self, size: int, step: int) -> NDArray[np.float64]:
        """Return how many times longer each rank computes in a step, ``[size]``.

        Raises:
            CommunicationError: A slowdown names a rank that is not there.
        """
        strange = sorted(rank for rank in self.slowdowns if not 0 <= rank < size)
        if strange:
            raise CommunicationError(f"Slowdowns name the ranks {strange}; there are the ranks 0 to {size - 1}.")
        stream = random_stream(self.seed, "simulation", "compute", step)
        factors = np.exp(self.noise * stream.standard_normal(size))
        factors[stream.random(size) < self.straggler_share] *= self.straggler_slowdown
        for rank, slowdown in self.slowdowns.items():
            factors[rank] *= slowdown
        return factors

    def late_messages(self, size: int) -> LateMessages | None:
        """Return how late the messages of a run are, or ``None`` when none is."""
        return LateMessages(self, size) if self.late_share and self.late_s else None


class LateMessages:
    """How late each message arrives: the same for the n-th message of a rank, in whatever order ranks send."""

    def __init__(self, disturbance: Disturbance, size: int) -> None:
        """Start with no message sent."""
        self._disturbance = disturbance
        self._sent = np.zeros(size, np.int64)
        self._block = lru_cache(maxsize=8)(self._draw)

    def __call__(self, sources: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the delays of the next message of each source, in seconds."""
        numbers = self._sent[sources]
        self._sent[sources] += 1
        delays = np.empty(len(sources))
        for block in np.unique(numbers // _BLOCK).tolist():
            here = numbers // _BLOCK == block
            delays[here] = self._block(block)[sources[here], numbers[here] % _BLOCK]
        return delays

    def _draw(self, block: int) -> NDArray[np.float64]:
        stream = random_stream(self._disturbance.seed, "simulation", "messages", block)
        shape = (len(self._sent), _BLOCK)
        is_late = stream.random(shape) < self._disturbance.late_share
        return np.where(is_late, stream.exponential(self._disturbance.late_s, shape), 0.0)
