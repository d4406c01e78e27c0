"""What a rank has sent and received, in bytes, by operation and by peer."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["Ledger", "LedgerSnapshot", "OperationTotals"]


@dataclass(frozen=True)
class OperationTotals:
    """What one operation has moved.

    Attributes:
        calls: How often it was called.
        payload_bytes: Size of the buffers that the caller handed over: what the *user* exchanges.
        sent: Bytes that this rank sends to each peer under the operation's algorithm (``volume``).
        received: Bytes that this rank receives from each peer.
    """

    calls: int = 0
    payload_bytes: int = 0
    sent: Mapping[int, int] = field(default_factory=dict)
    received: Mapping[int, int] = field(default_factory=dict)

    @property
    def sent_bytes(self) -> int:
        """Bytes sent to all peers together."""
        return sum(self.sent.values())

    @property
    def received_bytes(self) -> int:
        """Bytes received from all peers together."""
        return sum(self.received.values())

    def __add__(self, other: OperationTotals) -> OperationTotals:
        return self._combined(other, 1)

    def __sub__(self, other: OperationTotals) -> OperationTotals:
        return self._combined(other, -1)

    def _combined(self, other: OperationTotals, sign: int) -> OperationTotals:
        return OperationTotals(
            self.calls + sign * other.calls,
            self.payload_bytes + sign * other.payload_bytes,
            _combined(self.sent, other.sent, sign),
            _combined(self.received, other.received, sign),
        )


@dataclass(frozen=True)
class LedgerSnapshot:
    """The totals at one moment; the difference of two is what happened between them.

    Attributes:
        operations: Totals by name of the operation, those that were never called left out.
    """

    operations: Mapping[str, OperationTotals] = field(default_factory=dict)

    def __getitem__(self, operation: str) -> OperationTotals:
        """Return the totals of one operation: zeros where it was not called."""
        return self.operations.get(operation, OperationTotals())

    @property
    def total(self) -> OperationTotals:
        """The totals of all operations together."""
        return sum(self.operations.values(), OperationTotals())

    @property
    def payload_bytes(self) -> int:
        """Bytes that the caller handed over, in all operations."""
        return self.total.payload_bytes

    @property
    def sent_bytes(self) -> int:
        """Bytes sent to all peers, in all operations."""
        return self.total.sent_bytes

    @property
    def received_bytes(self) -> int:
        """Bytes received from all peers, in all operations."""
        return self.total.received_bytes

    def __sub__(self, earlier: LedgerSnapshot) -> LedgerSnapshot:
        names = [*self.operations, *(name for name in earlier.operations if name not in self.operations)]
        differences = {name: self[name] - earlier[name] for name in names}
        return LedgerSnapshot({name: totals for name, totals in differences.items() if totals != OperationTotals()})


class Ledger:
    """Counts exactly what a rank exchanges. Peers are ranks of the world, also for a communicator that was split off.

    Example:
        >>> ledger = Ledger()
        >>> ledger.record("send", 400, sent={1: 400})
        >>> ledger.snapshot().sent_bytes
        400
    """

    def __init__(self) -> None:
        """Start with nothing exchanged."""
        self._operations: dict[str, _RunningTotals] = {}
        self._lock = threading.Lock()

    def record(
        self,
        operation: str,
        payload_bytes: int,
        *,
        sent: Mapping[int, int] | None = None,
        received: Mapping[int, int] | None = None,
    ) -> None:
        """Add one call.

        Args:
            operation: Its name, such as ``"allreduce"``.
            payload_bytes: Size of the caller's buffer.
            sent: Bytes to each peer.
            received: Bytes from each peer.
        """
        with self._lock:
            totals = self._operations.get(operation)
            if totals is None:
                totals = self._operations[operation] = _RunningTotals()
            totals.calls += 1
            totals.payload_bytes += payload_bytes
            for counts, added in ((totals.sent, sent), (totals.received, received)):
                for peer, count in (added or {}).items():
                    counts[peer] = counts.get(peer, 0) + count

    def snapshot(self) -> LedgerSnapshot:
        """Return the totals as they are now."""
        with self._lock:
            return LedgerSnapshot({name: totals.frozen() for name, totals in self._operations.items()})


@dataclass
class _RunningTotals:
    """Totals that are added to: once a call, so without a new object each time."""

    calls: int = 0
    payload_bytes: int = 0
    sent: dict[int, int] = field(default_factory=dict)
    received: dict[int, int] = field(default_factory=dict)

    def frozen(self) -> OperationTotals:
        """Return the totals as they are now."""
        nothing: dict[int, int] = {}
        return OperationTotals(
            self.calls,
            self.payload_bytes,
            _combined(self.sent, nothing, 1),
            _combined(self.received, nothing, 1),
        )


def _combined(first: Mapping[int, int], second: Mapping[int, int], sign: int) -> dict[int, int]:
    """Return the sum or difference by peer, peers without bytes left out."""
    result = dict(first)
    for peer, count in second.items():
        result[peer] = result.get(peer, 0) + sign * count
    return {peer: count for peer, count in sorted(result.items()) if count}
