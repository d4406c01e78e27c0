"""What one message costs: the contract of cost models, and LogGP."""

from __future__ import annotations

import abc
import math
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import numpy as np

from deep500.core.errors import CommunicationError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = ["CostModel", "LogGP"]


class CostModel(abc.ABC):
    """What a message of some bytes costs its sender, the network and its receiver.

    A message takes the sender's processor for the overhead; its first byte arrives after the latency; the link is
    taken while the bytes stream through it, and for the gap after them; the receiver's processor takes the overhead
    once the last byte is there.

    Attributes:
        latency_s: From the end of the sender's overhead to the arrival of the first byte.
        overhead_s: Time of the processor for each message, at either end.
        gap_s: How long a link rests between two messages, at either end.
        reduction_s_per_byte: What it takes to add a received byte to those that are there.
    """

    latency_s: float
    overhead_s: float
    gap_s: float
    reduction_s_per_byte: float

    @abc.abstractmethod
    def streaming_s(self, size_bytes: ArrayLike) -> NDArray[np.float64]:
        """Return for how long messages of these sizes, each at least 1 byte, take a link."""

    def message_s(self, size_bytes: float) -> float:
        """Return the time from the start of a send to the end of the receive, ``2 o + L + streaming``."""
        return 2 * self.overhead_s + self.latency_s + float(self.streaming_s(size_bytes))

    def spacing_s(self, size_bytes: float) -> float:
        """Return the least time between the starts of two sends of one rank, ``max(o, g + streaming)``."""
        return max(self.overhead_s, self.gap_s + float(self.streaming_s(size_bytes)))


@dataclass(frozen=True)
class LogGP(CostModel):
    r"""The LogGP model: a message of :math:`k` bytes takes :math:`o + (k - 1) G + L + o`.

    Source: A. Alexandrov, M. F. Ionescu, K. E. Schauser, C. Scheiman, "LogGP: incorporating long messages into the
    LogP model", SPAA 1995.

    Attributes:
        latency_s: L.
        overhead_s: o.
        gap_s: g.
        gap_s_per_byte: G, the reciprocal of the bandwidth.
        reduction_s_per_byte: What adding a received byte takes; not part of LogGP, the :math:`\gamma` of Thakur et
            al.

    Example:
        >>> model = LogGP(latency_s=5e-6, overhead_s=1e-6, gap_s=1e-6, gap_s_per_byte=1e-9)
        >>> f"{model.message_s(1001):.2e}"
        '8.00e-06'
    """

    latency_s: float
    overhead_s: float = 0.0
    gap_s: float = 0.0
    gap_s_per_byte: float = 0.0
    reduction_s_per_byte: float = 0.0

    def __post_init__(self) -> None:
        """Check the parameters.

        Raises:
            CommunicationError: One is negative or not finite.
        """
        for field in fields(self):
            value = getattr(self, field.name)
            if not math.isfinite(value) or value < 0:
                raise CommunicationError(
                    f"LogGP received {field.name} = {value!r}. Accepted are finite seconds that are not negative."
                )

    def streaming_s(self, size_bytes: ArrayLike) -> NDArray[np.float64]:
        """Return ``(k - 1) G``."""
        return (np.asarray(size_bytes, dtype=np.float64) - 1) * self.gap_s_per_byte
