"""What passes between a communicator and its transport: a call, the work that it starts, and what that can do."""

from __future__ import annotations

import abc
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

from deep500.distributed.buffers import DTYPES

__all__ = ["ANY_SOURCE", "REDUCTIONS", "Call", "Capabilities", "Work"]

#: In place of a source: the message of whichever rank comes first. ``recv`` returns, and ``Work.source`` is, its rank.
ANY_SOURCE = -1

#: How buffers are combined. The mean is the sum over the number of ranks, for floating-point buffers.
REDUCTIONS = ("sum", "mean", "product", "minimum", "maximum")


@dataclass(frozen=True)
class Capabilities:
    """What a communicator can do.

    Attributes:
        thread_safe: Whether several threads of one rank may use it at the same time.
        nonblocking: Whether a started exchange goes on beside computation, rather than in ``wait``.
        device_buffers: Whether tensors on ``device`` are exchanged without a copy to the host.
        dtypes: Element types that are accepted.
    """

    thread_safe: bool
    nonblocking: bool
    device_buffers: bool = False
    dtypes: tuple[str, ...] = DTYPES


@dataclass(frozen=True)
class Call:
    """One operation as a transport sees it: arrays that were checked, bytes where elements do not matter.

    Attributes:
        operation: ``"allreduce"``, ``"broadcast"``, ``"reduce"``, ``"allgather"``, ``"reduce_scatter"``, ``"barrier"``,
            ``"send"``, ``"recv"`` or ``"isendrecv"``.
        buffer: What is reduced in place, sent, or (of ``recv``) filled. Empty for a barrier.
        other: ``gathered`` of allgather, ``part`` of reduce_scatter, ``incoming`` of isendrecv.
        reduction: ``"sum"``, ``"product"``, ``"minimum"`` or ``"maximum"``; elements are float64, float32 or integers.
        root: The root of broadcast and reduce.
        destination: To whom ``buffer`` goes.
        source: From whom ``buffer`` (or ``other``) comes, or ``ANY_SOURCE``.
        tag: Number that a message and its receiver agree on.
    """

    operation: str
    buffer: npt.NDArray[Any]
    other: npt.NDArray[Any] | None = None
    reduction: str = "sum"
    root: int = 0
    destination: int = 0
    source: int = 0
    tag: int = 0


class Work(abc.ABC):
    """An exchange that was started. Its buffers are not touched until :meth:`wait` returns or :meth:`test` is true.

    Attributes:
        source: Once done, the rank whose message was received; ``None`` where none was.
        timeout_s: Limit of :meth:`wait` unless it names one; ``None`` waits for ever.
    """

    def __init__(self, timeout_s: float | None = None) -> None:
        """Start as not done."""
        self.source: int | None = None
        self.timeout_s = timeout_s
        self._done = False
        self._afterwards: list[Callable[[], None]] = []

    def wait(self, timeout_s: float | None = None) -> None:
        """Return once the exchange is done.

        Args:
            timeout_s: How long to wait; ``None`` takes the communicator's limit.

        Raises:
            CommunicationError: It was not done in time, or a peer is gone.
        """
        if not self._done:
            self._wait(self.timeout_s if timeout_s is None else timeout_s)
            self._finish()

    def test(self) -> bool:
        """Return whether the exchange is done, without waiting."""
        if not self._done and self._poll():
            self._finish()
        return self._done

    def then(self, action: Callable[[], None]) -> None:
        """Have something done, in the thread that calls ``wait`` or ``test``, once the exchange is done."""
        if self._done:
            action()
        else:
            self._afterwards.append(action)

    @abc.abstractmethod
    def _wait(self, timeout_s: float | None) -> None:
        """Wait for the transport."""

    @abc.abstractmethod
    def _poll(self) -> bool:
        """Return whether the transport is done, without waiting."""

    def _finish(self) -> None:
        self._done = True
        for action in self._afterwards:
            action()
        self._afterwards.clear()
