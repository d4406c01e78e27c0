"""Ranks that are processes, which exchange through MPI: on one machine and on clusters."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

import numpy.typing as npt

from deep500.core.errors import CommunicationError
from deep500.distributed._work import ANY_SOURCE, Call, Capabilities, Work
from deep500.distributed.communicator import Communicator
from deep500.distributed.communicators._mpi_calibration import Calibration, calibrate
from deep500.distributed.communicators._mpi_departures import Departures, Wait
from deep500.distributed.communicators._mpi_library import abort_all, end_all_when_one_fails, mpi, translated
from deep500.distributed.communicators._mpi_work import MPIWork
from deep500.distributed.ledger import Ledger

__all__ = ["MPICommunicator"]

#: With MPICH, chunks of 512 kB take 20 to 50 % longer (benchmarks/RESULTS.md): ranks wait for each other more often.
_CHUNK_BYTES = 2 * 1024 * 1024

_MESSAGES = ("send", "recv", "isendrecv")


class MPICommunicator(Communicator):
    """A rank of MPI. All ranks create it together.

    Buffers are handed to MPI as they are. Large reductions and broadcasts go in chunks; blocking or non-blocking calls
    are chosen by a measurement at the first large allreduce. An exception that nothing catches, on any rank and in any
    thread, ends all ranks, and so does a rank that ends while others wait for it. With ``timeout_s`` a peer that does
    not answer is an error.
    """

    def __init__(
        self,
        communicator: Any = None,
        *,
        chunk_bytes: int = _CHUNK_BYTES,
        timeout_s: float | None = None,
    ) -> None:
        """Take part in a communicator of mpi4py.

        Args:
            communicator: mpi4py's; by default a duplicate of ``COMM_WORLD``, so that our messages and those of other
                libraries do not mix.
            chunk_bytes: Size of the chunks of large messages.
            timeout_s: After how long a peer that does not answer is an error; ``None`` waits for ever.

        Raises:
            MissingDependencyError: mpi4py or an MPI library is not installed.
            CommunicationError: The size of chunks is not accepted.
        """
        if isinstance(chunk_bytes, bool) or not isinstance(chunk_bytes, int) or chunk_bytes < 64:
            raise CommunicationError(f"Received chunk_bytes={chunk_bytes!r}. Accepted are whole numbers from 64.")
        library = mpi()
        comm = library.COMM_WORLD.Dup() if communicator is None else communicator
        machine = comm.Split_type(library.COMM_TYPE_SHARED, key=comm.rank)
        local_rank = machine.rank
        machine.Free()
        self._departures = self._watch_over(comm)
        self._group = "0"
        self._splits = 0
        self._set_up(comm, chunk_bytes)
        super().__init__(comm.rank, comm.size, _capabilities(), local_rank=local_rank, timeout_s=timeout_s)

    @classmethod
    def _of_group(
        cls, parent: MPICommunicator, comm: Any, group: str, ledger: Ledger, world_ranks: Sequence[int]
    ) -> MPICommunicator:
        """Return the communicator of a group that was split off."""
        part = cls.__new__(cls)
        part._departures = parent._departures
        part._group = group
        part._splits = 0
        part._set_up(comm, parent._chunk_bytes)
        Communicator.__init__(
            part,
            comm.rank,
            comm.size,
            parent.capabilities,
            local_rank=parent.local_rank,
            ledger=ledger,
            world_ranks=world_ranks,
            timeout_s=parent.timeout_s,
        )
        part.algorithms.update(parent.algorithms)
        return part

    def _watch_over(self, communicator: Any) -> Departures | None:
        """Have all ranks end when one fails; return what notices ranks that have ended, where threads may call MPI."""
        if communicator.size == 1:
            return None
        end_all_when_one_fails()
        return Departures(communicator) if mpi().Query_thread() == mpi().THREAD_MULTIPLE else None

    def _set_up(self, comm: Any, chunk_bytes: int) -> None:
        library = mpi()
        self._comm = comm
        self._chunk_bytes = chunk_bytes
        self._reductions = {
            "sum": library.SUM,
            "product": library.PROD,
            "minimum": library.MIN,
            "maximum": library.MAX,
        }

    @functools.cached_property
    def calibration(self) -> Calibration:
        """Which calls are faster here; measured by all ranks together where it is first asked for."""
        maximum = self._reductions["maximum"]

        def nonblocking(buffer: npt.NDArray[Any]) -> None:
            mpi().Request.Waitall(self._requests(Call("allreduce", buffer)))

        return calibrate(self._comm, maximum, lambda buffer: self._block(Call("allreduce", buffer)), nonblocking)

    def split(self, color: int | None, key: int = 0) -> MPICommunicator | None:
        """Return a communicator of the ranks that name the same color, ordered by key and then rank."""
        self._check_split(color, key)
        library = mpi()
        self._splits += 1
        number = 0 if self._departures is None else self._departures.next_number(self._group)
        with self._watched(Wait("split", self._others, self._group, number)):
            comm = self._comm.Split(library.UNDEFINED if color is None else color, key)
        if comm == library.COMM_NULL:
            return None
        world_ranks = comm.allgather(self.world_ranks[self.rank])
        return self._of_group(self, comm, f"{self._group}/{self._splits}:{color}", self.ledger, world_ranks)

    def abort(self, message: str) -> NoReturn:
        """Print the message and end all ranks of the world."""
        abort_all(message)

    def _run(self, call: Call) -> None:
        large = self._is_large(call) and call.operation not in _MESSAGES
        if self.timeout_s is not None and large and self._departures is not None:
            # Non-blocking calls that are tested show a peer that does not come; the blocking ones after are faster.
            meeting = Call("barrier", call.buffer[:0])
            wait = self._wait_for(call, self._next_number(meeting))
            MPIWork(self._requests(meeting), meeting, wait, self._departures, self.timeout_s).wait()
            self._run_blocking(call)
        elif self._prefers_nonblocking(call, large):
            self._started(call).wait()
        else:
            self._run_blocking(call)

    def _start(self, call: Call) -> Work:
        large = self.timeout_s is None and call.operation == "allreduce" and self._is_large(call)
        if large and not self.calibration.overlap_pays:
            self._run_blocking(call)
            return MPIWork([], call, self._wait_for(call, 0), None, None)
        return self._started(call)

    def _prefers_nonblocking(self, call: Call, large: bool) -> bool:
        """Return whether an operation is carried out with non-blocking calls: to be watched, or to be faster."""
        if self.timeout_s is not None or call.operation in _MESSAGES:
            return True
        return large and call.operation == "allreduce" and self.calibration.nonblocking_is_faster

    def _started(self, call: Call) -> MPIWork:
        wait = self._wait_for(call, self._next_number(call))
        with translated(call.operation):
            requests = self._requests(call)
        return MPIWork(requests, call, wait, self._departures, self.timeout_s)

    def _run_blocking(self, call: Call) -> None:
        with self._watched(self._wait_for(call, self._next_number(call))):
            self._block(call)

    @contextlib.contextmanager
    def _watched(self, wait: Wait) -> Iterator[None]:
        """End all ranks where what is done here can never be done, or takes too long; and translate MPI's errors."""
        if self._departures is not None:
            self._departures.begin(wait, self.timeout_s)
        try:
            with translated(wait.operation):
                yield
        finally:
            if self._departures is not None:
                self._departures.end()

    def _block(self, call: Call) -> None:
        """Carry out a collective operation with blocking calls."""
        comm, in_place = self._comm, mpi().IN_PLACE
        reduction = self._reductions[call.reduction]
        match call.operation:
            case "allreduce":
                for chunk in self._chunks(call.buffer):
                    comm.Allreduce(in_place, chunk, op=reduction)
            case "reduce":
                for chunk in self._chunks(call.buffer):
                    outgoing, incoming = (in_place, chunk) if self.rank == call.root else (chunk, None)
                    comm.Reduce(outgoing, incoming, op=reduction, root=call.root)
            case "broadcast":
                for chunk in self._chunks(call.buffer):
                    comm.Bcast(chunk, root=call.root)
            case "allgather":
                comm.Allgather(call.buffer, call.other)
            case "reduce_scatter":
                comm.Reduce_scatter_block(call.buffer, call.other, op=reduction)
            case _:
                comm.Barrier()

    def _requests(self, call: Call) -> list[Any]:
        """Start an operation with non-blocking calls."""
        comm, library = self._comm, mpi()
        reduction = self._reductions[call.reduction]
        match call.operation:
            case "allreduce":
                return [comm.Iallreduce(library.IN_PLACE, chunk, op=reduction) for chunk in self._chunks(call.buffer)]
            case "reduce":
                at_root = self.rank == call.root
                pairs = [(library.IN_PLACE, chunk) if at_root else (chunk, None) for chunk in self._chunks(call.buffer)]
                return [comm.Ireduce(*pair, op=reduction, root=call.root) for pair in pairs]
            case "broadcast":
                return [comm.Ibcast(chunk, root=call.root) for chunk in self._chunks(call.buffer)]
            case "allgather":
                return [comm.Iallgather(call.buffer, call.other)]
            case "reduce_scatter":
                return [comm.Ireduce_scatter_block(call.buffer, call.other, op=reduction)]
            case "send":
                return [comm.Isend(call.buffer, dest=call.destination, tag=call.tag)]
            case "recv":
                source = library.ANY_SOURCE if call.source == ANY_SOURCE else call.source
                return [comm.Irecv(call.buffer, source=source, tag=call.tag)]
            case "isendrecv":
                return [
                    comm.Irecv(call.other, source=call.source, tag=call.tag),
                    comm.Isend(call.buffer, dest=call.destination, tag=call.tag),
                ]
            case _:
                return [comm.Ibarrier()]

    def _chunks(self, array: npt.NDArray[Any]) -> Iterator[npt.NDArray[Any]]:
        """Cut an array into chunks; one that is small, or empty, is one chunk, so that every rank calls as often."""
        step = max(1, self._chunk_bytes // array.itemsize)
        return (array[start : start + step] for start in range(0, max(1, array.size), step))

    def _is_large(self, call: Call) -> bool:
        return call.buffer.nbytes > self._chunk_bytes

    def _next_number(self, call: Call) -> int:
        if self._departures is None or call.operation in _MESSAGES:
            return 0
        return self._departures.next_number(self._group)

    def _wait_for(self, call: Call, number: int) -> Wait:
        """Return what a rank waits for in a call: who could keep it waiting."""
        if call.operation == "send":
            peers: Sequence[int] = [self.world_ranks[call.destination]]
        elif call.operation in ("recv", "isendrecv") and call.source != ANY_SOURCE:
            peers = [self.world_ranks[call.source]]
        else:
            peers = self._others
        return Wait(call.operation, peers, self._group, number)

    @functools.cached_property
    def _others(self) -> list[int]:
        """Numbers in the world of all other ranks."""
        return [world_rank for rank, world_rank in enumerate(self.world_ranks) if rank != self.rank]


@functools.cache
def _capabilities() -> Capabilities:
    library = mpi()
    return Capabilities(thread_safe=library.Query_thread() == library.THREAD_MULTIPLE, nonblocking=True)
