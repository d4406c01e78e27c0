"""Where the thread ranks of one process meet: numbered meetings of all, and messages between two."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from deep500.core.errors import CommunicationError
from deep500.distributed._work import ANY_SOURCE, Call, Work
from deep500.measure.clock import Stopwatch

__all__ = ["SPLIT", "Meeting", "Message", "ThreadExchange", "ThreadWork"]

#: Name of the meeting in which ranks form groups: ``buffer`` holds whether a rank takes part, its color and its key.
SPLIT = "split"

_COMBINE: dict[str, Callable[..., Any]] = {
    "sum": np.add,
    "product": np.multiply,
    "minimum": np.minimum,
    "maximum": np.maximum,
}


@dataclass
class _Shared:
    """What an exchange and the groups that were split off have in common."""

    changed: threading.Condition = field(default_factory=threading.Condition)
    end: str = ""


@dataclass
class Meeting:
    """One collective operation: the calls that have come so far."""

    calls: dict[int, Call] = field(default_factory=dict)
    done: bool = False
    failure: str = ""
    groups: dict[int, tuple[ThreadExchange, int, list[int]]] = field(default_factory=dict)


@dataclass
class Message:
    """A send or a receive that waits for its other half."""

    rank: int
    peer: int
    tag: int
    buffer: npt.NDArray[Any]
    done: bool = False
    failure: str = ""
    source: int | None = None


class ThreadExchange:
    """The state that all thread ranks of one communicator share.

    The rank that comes last to a meeting carries the operation out, in order of ranks, so that the result is the same
    on every rank and in every run.
    """

    def __init__(self, size: int, shared: _Shared | None = None) -> None:
        """Start without meetings; groups share the condition and the end of the exchange that they came from."""
        self.size = size
        self._shared = shared or _Shared()
        self.changed = self._shared.changed
        self._next = [0] * size
        self._meetings: dict[int, Meeting] = {}
        self._sends: list[Message] = []
        self._receives: list[Message] = []

    def meet(self, rank: int, call: Call) -> Meeting:
        """Come to the rank's next meeting."""
        with self.changed:
            self.check()
            number = self._next[rank]
            self._next[rank] += 1
            meeting = self._meetings.setdefault(number, Meeting())
            meeting.calls[rank] = call
            if len(meeting.calls) == self.size:
                del self._meetings[number]
                self._hold(meeting)
                self.changed.notify_all()
        return meeting

    def send(self, rank: int, call: Call) -> Message:
        """Offer a message; it is copied once the receiver is there."""
        with self.changed:
            self.check()
            message = Message(rank, call.destination, call.tag, call.buffer)
            self._match(message, self._sends, self._receives, _fits)
        return message

    def receive(self, rank: int, call: Call, into: npt.NDArray[Any]) -> Message:
        """Ask for a message."""
        with self.changed:
            self.check()
            message = Message(rank, call.source, call.tag, into)
            self._match(message, self._receives, self._sends, lambda r, m: _fits(m, r))
        return message

    def stop(self, reason: str) -> None:
        """End the exchange: whoever waits, or comes later, gets an error with this reason."""
        with self.changed:
            self._shared.end = self._shared.end or reason
            self.changed.notify_all()

    def check(self) -> None:
        """Raise an error where the exchange has ended."""
        if self._shared.end:
            raise CommunicationError(f"The exchange between thread ranks has ended: {self._shared.end}")

    def _match(
        self,
        message: Message,
        own: list[Message],
        others: list[Message],
        fits: Callable[[Message, Message], bool],
    ) -> None:
        """Copy a message where its other half is there, the one that came first; else leave it in the list."""
        for other in others:
            if fits(message, other):
                others.remove(other)
                sent, received = (message, other) if own is self._sends else (other, message)
                if sent.buffer.size == received.buffer.size:
                    received.buffer[...] = sent.buffer
                else:
                    received.failure = sent.failure = (
                        f"Rank {received.rank} receives {received.buffer.nbytes} bytes from rank {sent.rank}, which "
                        f"sends {sent.buffer.nbytes}. Accepted are messages of exactly the size of the receiver's "
                        "buffer."
                    )
                received.source = sent.rank
                sent.done = received.done = True
                self.changed.notify_all()
                return
        own.append(message)

    def _hold(self, meeting: Meeting) -> None:
        """Carry out the operation of a meeting to which all have come."""
        calls = [meeting.calls[rank] for rank in range(self.size)]
        shapes = {(c.operation, c.buffer.dtype.name, c.buffer.size, c.reduction, c.root) for c in calls}
        if len(shapes) > 1:
            listed = "; ".join(
                f"rank {rank}: {c.operation} of {c.buffer.size} {c.buffer.dtype.name}, {c.reduction}, root {c.root}"
                for rank, c in enumerate(calls)
            )
            meeting.failure = (
                f"The ranks' calls do not match: {listed}. Accepted is the same operation, in the same order, with "
                "buffers of the same dtype and length on every rank."
            )
        elif calls[0].operation == SPLIT:
            self._form_groups(meeting, calls)
        else:
            _carry_out(calls)
        meeting.done = True

    def _form_groups(self, meeting: Meeting, calls: list[Call]) -> None:
        wishes = [(int(c.buffer[1]), int(c.buffer[2]), rank) for rank, c in enumerate(calls) if c.buffer[0]]
        for color in {wish[0] for wish in wishes}:
            members = [rank for _, _, rank in sorted(wish for wish in wishes if wish[0] == color)]
            group = ThreadExchange(len(members), self._shared)
            for place, rank in enumerate(members):
                meeting.groups[rank] = (group, place, members)


class ThreadWork(Work):
    """Meetings and messages of one thread rank that have to be done."""

    def __init__(
        self, exchange: ThreadExchange, parts: list[Meeting | Message], what: str, timeout_s: float | None
    ) -> None:
        """Wait for all of the parts; ``what`` names them in messages."""
        super().__init__(timeout_s)
        self._exchange = exchange
        self._parts = parts
        self._what = what

    def _poll(self) -> bool:
        with self._exchange.changed:
            return self._is_done()

    def _wait(self, timeout_s: float | None) -> None:
        watch = Stopwatch()
        with self._exchange.changed:
            while not self._is_done():
                left = None if timeout_s is None else timeout_s - watch.elapsed_s()
                if left is not None and left <= 0:
                    raise CommunicationError(
                        f"{self._what} was not done within {timeout_s:g} s: a peer does not answer. All ranks must "
                        "call it; look at what the others do, or raise timeout_s."
                    )
                self._exchange.changed.wait(left)

    def _is_done(self) -> bool:
        for part in self._parts:
            if part.failure:
                raise CommunicationError(part.failure)
        if all(part.done for part in self._parts):
            for part in self._parts:
                if isinstance(part, Message) and part.source is not None:
                    self.source = part.source
            return True
        self._exchange.check()
        return False


def _fits(sent: Message, received: Message) -> bool:
    return sent.peer == received.rank and sent.tag == received.tag and received.peer in (sent.rank, ANY_SOURCE)


def _carry_out(calls: list[Call]) -> None:
    """Do what an operation says, with the buffers of all ranks."""
    first = calls[0]
    if first.operation in ("allreduce", "reduce", "reduce_scatter"):
        combined = functools.reduce(_COMBINE[first.reduction], [c.buffer for c in calls[1:]], first.buffer)
        for rank, call in enumerate(calls):
            if first.operation == "allreduce" or (first.operation == "reduce" and rank == first.root):
                call.buffer[...] = combined
            elif call.other is not None:
                call.other[...] = combined[rank * call.other.size : (rank + 1) * call.other.size]
    elif first.operation == "broadcast":
        for call in calls:
            call.buffer[...] = calls[first.root].buffer
    elif first.operation == "allgather":
        gathered = np.concatenate([c.buffer for c in calls])
        for call in calls:
            if call.other is not None:
                call.other[...] = gathered
