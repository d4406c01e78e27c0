"""The contract of a communicator: what ranks exchange, in place, and what is refused at the boundary."""

from __future__ import annotations

import abc
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from deep500.core.device import CPUDevice, Device
from deep500.core.errors import CommunicationError, near_miss
from deep500.core.texts import shown
from deep500.distributed._work import ANY_SOURCE, REDUCTIONS, Call, Capabilities, Work
from deep500.distributed.buffers import host_view, is_half
from deep500.distributed.ledger import Ledger
from deep500.distributed.rank_options import checked_timeout
from deep500.distributed.volume import DEFAULT_ALGORITHMS, traffic

__all__ = ["ANY_SOURCE", "REDUCTIONS", "Call", "Capabilities", "Communicator", "Work"]

#: The largest number that every transport takes for a group, or a place in it.
_MOST_NUMBER = 2**31 - 1


class Communicator(abc.ABC):
    """Exchanges buffers between ranks; a transport implements ``_start``, ``split`` and ``abort``.

    All ranks of a communicator call its collective operations in the same order. Buffers are one-dimensional,
    contiguous, writable, detached and (unless the capabilities say otherwise) on the host; results are written in
    place. float16 and bfloat16 are reduced in float32 and rounded once.

    Attributes:
        rank: Number of this rank, from 0.
        size: Number of ranks.
        local_rank: Number of this rank among those of its machine.
        device: Where the rank's buffers are.
        capabilities: What the transport can do.
        ledger: Bytes exchanged; a communicator that was split off writes into the ledger of the one it came from.
        algorithms: Algorithm by which the ledger counts each collective (:mod:`deep500.distributed.volume`).
        timeout_s: After how long a peer that does not answer is an error; ``None`` waits for ever. Either all ranks
            have a limit or none has.
        stands_for_all: Whether there are no other ranks, and this one stands for them (a simulation).
    """

    stands_for_all: bool = False

    def __init__(
        self,
        rank: int,
        size: int,
        capabilities: Capabilities,
        *,
        local_rank: int | None = None,
        device: Device | None = None,
        ledger: Ledger | None = None,
        world_ranks: Sequence[int] | None = None,
        timeout_s: float | None = None,
    ) -> None:
        """Describe the rank.

        Args:
            rank: Number of this rank.
            size: Number of ranks.
            capabilities: What the transport can do.
            local_rank: Number among the ranks of this machine; by default the rank itself.
            device: Where buffers are; by default the host.
            ledger: A ledger to go on with; by default a new one.
            world_ranks: Number of each rank in the world, where this communicator was split off.
            timeout_s: After how long a peer that does not answer is an error.

        Raises:
            CommunicationError: That is no such time.
        """
        self.rank = rank
        self.size = size
        self.capabilities = capabilities
        self.local_rank = rank if local_rank is None else local_rank
        self.device: Device = CPUDevice() if device is None else device
        self.ledger = Ledger() if ledger is None else ledger
        self.world_ranks = tuple(range(size) if world_ranks is None else world_ranks)
        self._is_world = self.world_ranks == tuple(range(size))
        self.algorithms = dict(DEFAULT_ALGORITHMS)
        self.timeout_s = checked_timeout(timeout_s)

    # --- collective operations ---

    def allreduce(self, buffer: Any, operation: str = "sum") -> None:
        """Combine the buffers of all ranks; every rank's buffer becomes the result.

        Args:
            buffer: Same length and dtype on every rank.
            operation: One of ``REDUCTIONS``.
        """
        self._complete(*self._reduction("allreduce", buffer, operation))

    def iallreduce(self, buffer: Any, operation: str = "sum") -> Work:
        """Start :meth:`allreduce`; the buffer holds the result after ``wait``."""
        return self._begin(*self._reduction("allreduce", buffer, operation))

    def reduce(self, buffer: Any, root: int = 0, operation: str = "sum") -> None:
        """Combine the buffers of all ranks into the root's; the others' are left as they are."""
        self._check_rank(root, "root")
        call, after = self._reduction("reduce", buffer, operation, root=root)
        self._complete(call, after if self.rank == root else None)

    def reduce_scatter(self, buffer: Any, part: Any, operation: str = "sum") -> None:
        """Combine the buffers of all ranks; ``part`` becomes this rank's share of the result.

        Args:
            buffer: Left as it is; ``size`` times as long as ``part``.
            part: Elements ``rank * len(part)`` and following of the result.
            operation: One of ``REDUCTIONS``.
        """
        whole, share = self._view(buffer), self._view(part)
        self._check_pair(whole, share, "buffer", "part")
        self._complete(*self._reduction("reduce_scatter", buffer, operation, share=share))

    def broadcast(self, buffer: Any, root: int = 0) -> None:
        """Give the root's buffer to all ranks."""
        self._check_rank(root, "root")
        array = self._view(buffer)
        self._record("broadcast", array, array, root)
        self._complete(Call("broadcast", _bytes(array), root=root))

    def allgather(self, buffer: Any, gathered: Any) -> None:
        """Give the buffers of all ranks, one after the other in order of ranks, to all ranks.

        Args:
            buffer: What this rank contributes; same length and dtype on every rank.
            gathered: Where it goes; ``size`` times as long.
        """
        array, whole = self._view(buffer), self._view(gathered)
        self._check_pair(whole, array, "gathered", "buffer")
        self._record("allgather", array, array)
        self._complete(Call("allgather", _bytes(array), _bytes(whole)))

    def barrier(self) -> None:
        """Return once every rank has come here."""
        nothing = np.empty(0, np.uint8)
        self._record("barrier", nothing, nothing)
        self._complete(Call("barrier", nothing))

    # --- messages between two ranks ---

    def send(self, buffer: Any, destination: int, tag: int = 0) -> None:
        """Send a buffer; it may be changed once this returns, which may be when the receiver has it."""
        self.isend(buffer, destination, tag).wait()

    def isend(self, buffer: Any, destination: int, tag: int = 0) -> Work:
        """Start :meth:`send`."""
        self._check_rank(destination, "destination")
        array = self._view(buffer)
        call = Call("send", _bytes(array), destination=int(destination), tag=self._tag(tag))
        self.ledger.record("send", array.nbytes, sent={self.world_ranks[destination]: array.nbytes})
        return self._begin(call)

    def recv(self, buffer: Any, source: int, tag: int = 0) -> int:
        """Receive a message of exactly the buffer's size.

        Args:
            buffer: Where it goes.
            source: Rank of the sender, or ``ANY_SOURCE``.
            tag: The sender's.

        Returns:
            The sender's rank.
        """
        work = self.irecv(buffer, source, tag)
        work.wait()
        return source if work.source is None else work.source

    def irecv(self, buffer: Any, source: int, tag: int = 0) -> Work:
        """Start :meth:`recv`; ``Work.source`` is the sender's rank once it is done."""
        if source != ANY_SOURCE:
            self._check_rank(source, "source")
        array = self._view(buffer)
        work = self._begin(Call("recv", _bytes(array), source=source, tag=self._tag(tag)))
        work.then(lambda: self._record_received(work, source, array.nbytes))
        return work

    def isendrecv(self, outgoing: Any, destination: int, incoming: Any, source: int, tag: int = 0) -> Work:
        """Start sending one buffer and receiving another: the step of a ring.

        Args:
            outgoing: What is sent.
            destination: To whom.
            incoming: Where the message that comes in goes; it may not overlap ``outgoing``.
            source: From whom it comes.
            tag: Number of both messages.
        """
        self._check_rank(destination, "destination")
        self._check_rank(source, "source")
        sent, received = self._view(outgoing), self._view(incoming)
        if np.may_share_memory(sent, received):
            raise CommunicationError(
                "Received the same memory as outgoing and incoming. Accepted are two buffers that do not overlap; "
                "receive into another one."
            )
        call = Call("isendrecv", _bytes(sent), _bytes(received), destination=int(destination), source=int(source))
        call = replace(call, tag=self._tag(tag))
        self.ledger.record(
            "isendrecv",
            sent.nbytes,
            sent={self.world_ranks[destination]: sent.nbytes},
            received={self.world_ranks[source]: received.nbytes},
        )
        return self._begin(call)

    # --- groups and the end ---

    @abc.abstractmethod
    def split(self, color: int | None, key: int = 0) -> Communicator | None:
        """Return a communicator of the ranks that name the same color, ordered by key and then rank.

        Args:
            color: Number of the group; ``None`` to be in none, which returns ``None``.
            key: Place in the group.

        Raises:
            CommunicationError: They are no such numbers.
        """

    @abc.abstractmethod
    def abort(self, message: str) -> NoReturn:
        """End all ranks, with a message that says why."""

    # --- for transports ---

    @abc.abstractmethod
    def _start(self, call: Call) -> Work:
        """Start one operation."""

    def _run(self, call: Call) -> None:
        """Carry out one operation; a transport with a faster blocking form has its own."""
        self._start(call).wait(self.timeout_s)

    def _view(self, buffer: Any) -> npt.NDArray[Any]:
        """Return a buffer's memory; a transport that takes tensors on a device has its own."""
        return host_view(buffer)

    # --- shared ---

    def _complete(self, call: Call, after: Callable[[], None] | None = None) -> None:
        self._run(call)
        if after is not None:
            after()

    def _begin(self, call: Call, after: Callable[[], None] | None = None) -> Work:
        work = self._start(call)
        if after is not None:
            work.then(after)
        return work

    def _reduction(
        self, name: str, buffer: Any, operation: str, root: int = 0, share: npt.NDArray[Any] | None = None
    ) -> tuple[Call, Callable[[], None] | None]:
        """Return the call of a reduction, and what is left to do after it: rounding and the division of a mean."""
        array = self._view(buffer)
        if operation not in REDUCTIONS:
            hint = near_miss(operation, REDUCTIONS)
            raise CommunicationError(
                f"Received the operation {operation!r}.{hint} Accepted are {', '.join(REDUCTIONS)}."
            )
        if operation == "mean" and array.dtype.kind in "iu":
            raise CommunicationError(
                f"Received a mean of {array.dtype.name}. Accepted are floating-point buffers; take the sum of integers."
            )
        half = is_half(array.dtype)
        wide = array.astype(np.float32) if half else array
        target = array if share is None else share
        wide_target = wide if share is None else (np.empty_like(share, np.float32) if half else share)
        self._record(name, array, wide, root)
        call = Call(
            name,
            wide,
            None if share is None else wide_target,
            reduction="sum" if operation == "mean" else operation,
            root=root,
        )
        if not half and operation != "mean":
            return call, None

        def after() -> None:
            if operation == "mean":
                np.divide(wide_target, self.size, out=wide_target)
            if half:
                target[...] = wide_target.astype(target.dtype)

        return call, after

    def _record(self, name: str, given: npt.NDArray[Any], moved: npt.NDArray[Any], root: int = 0) -> None:
        """Count a collective: the payload is what the caller gave, the algorithm moves what stands for it."""
        moves = traffic(name, self.algorithms[name], self.rank, self.size, moved.size, moved.itemsize, root)
        sent, received = self._of_world(moves.sent), self._of_world(moves.received)
        self.ledger.record(name, given.nbytes, sent=sent, received=received)

    def _record_received(self, work: Work, source: int, count: int) -> None:
        peer = source if work.source is None else work.source
        self.ledger.record("recv", count, received={self.world_ranks[peer]: count})

    def _of_world(self, counts: Mapping[int, int]) -> Mapping[int, int]:
        if self._is_world:
            return counts
        return {self.world_ranks[peer]: count for peer, count in counts.items()}

    def _check_rank(self, rank: int, role: str) -> None:
        if isinstance(rank, bool) or not isinstance(rank, (int, np.integer)) or not 0 <= rank < self.size:
            raise CommunicationError(f"Received {rank!r} as {role}. Accepted are the ranks 0 to {self.size - 1}.")

    def _check_split(self, color: Any, key: Any) -> None:
        """Refuse what is no group, which a transport would take for another number, or fail on."""
        for name, value, least in (("color", 0 if color is None else color, 0), ("key", key, -_MOST_NUMBER)):
            is_whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
            if not is_whole or not least <= value <= _MOST_NUMBER:
                alone = ", or None to be in no group" if name == "color" else ""
                raise CommunicationError(
                    f"Received the {name} {shown(value)} of a group of ranks. Accepted are whole numbers from {least} "
                    f"to {_MOST_NUMBER}{alone}."
                )

    def _check_pair(self, whole: npt.NDArray[Any], part: npt.NDArray[Any], whole_name: str, part_name: str) -> None:
        if whole.dtype != part.dtype or whole.size != self.size * part.size:
            raise CommunicationError(
                f"Received {whole_name} of {whole.size} {whole.dtype.name} and {part_name} of {part.size} "
                f"{part.dtype.name}. Accepted are buffers of one dtype, {whole_name} {self.size} times (the number of "
                f"ranks) as long as {part_name}; pad them."
            )
        if np.may_share_memory(whole, part):
            raise CommunicationError(
                f"Received {whole_name} and {part_name} in the same memory. Accepted are buffers that do not overlap."
            )

    def _tag(self, tag: int) -> int:
        if isinstance(tag, bool) or not isinstance(tag, (int, np.integer)) or not 0 <= tag < 32768:
            raise CommunicationError(f"Received the tag {tag!r}. Accepted are whole numbers from 0 to 32767.")
        return int(tag)


def _bytes(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return an array as bytes: whoever only moves elements need not know them."""
    return array.view(np.uint8)
