"""Ranks with a GPU each, which exchange through NCCL."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn, cast

import numpy as np
import numpy.typing as npt

from deep500.core.device import GPUDevice
from deep500.core.errors import CommunicationError
from deep500.core.texts import one_line
from deep500.distributed._work import ANY_SOURCE, Call, Capabilities, Work
from deep500.distributed.buffers import DTYPES
from deep500.distributed.communicator import Communicator
from deep500.distributed.communicators._cupy_library import cupy_with_nccl
from deep500.distributed.launch_environment import create_communicator
from deep500.distributed.ledger import Ledger
from deep500.measure.clock import Stopwatch

__all__ = ["NCCLCommunicator"]

#: CuPy's arrays have no bfloat16.
_CAPABILITIES = Capabilities(
    thread_safe=False,
    nonblocking=True,
    device_buffers=True,
    dtypes=tuple(name for name in DTYPES if name != "bfloat16"),
)

_ACCEPTED = (
    "Accepted are CuPy arrays and other libraries' tensors on this rank's GPU that are one-dimensional, contiguous and "
    f"detached, of the dtypes {', '.join(_CAPABILITIES.dtypes)}"
)

#: Integers that NCCL does not reduce, and the dtype in which they are: the result ends in the same bits.
_WIDER = {"int16": np.int32, "uint16": np.int32}

_PAUSE_S = 1e-4


class NCCLCommunicator(Communicator):
    """A rank with a GPU of its own, whose buffers go through NCCL as they are, by CuPy.

    NCCL's ranks find each other through another communicator between processors, MPI's for instance, which carries
    the unique id, splits and barriers as well. Operations go on a stream of their own, after what the current stream
    has been given before, and ``wait`` returns once the GPU has done them. NCCL matches messages in their order: it has
    no tags and no ``ANY_SOURCE``.

    It is not thread-safe: operations of two threads could reach the stream in different orders on two ranks.

    .. note::
        This is written by the documents of CuPy and NCCL. It has been run with a stand-in for ``cupy.cuda.nccl`` on
        processors, and not on GPUs.

    Source: CuPy's reference, ``cupy.cuda.nccl.NcclCommunicator``; NCCL User Guide, "Collective Operations" and
    "Point To Point Communication".
    """

    def __init__(
        self,
        bootstrap: Communicator | None = None,
        *,
        device: GPUDevice | None = None,
        timeout_s: float | None = None,
    ) -> None:
        """Meet the other ranks.

        Args:
            bootstrap: Connects the same ranks between processors; by default what fits how the process was started.
            device: This rank's GPU; by default that of its number on its machine.
            timeout_s: After how long a peer that does not answer is an error; ``None`` waits for ever.

        Raises:
            MissingDependencyError: CuPy or NCCL is not installed.
            CommunicationError: NCCL cannot connect the ranks.
        """
        library = cupy_with_nccl()
        meeting = create_communicator(timeout_s=timeout_s) if bootstrap is None else bootstrap
        chosen = GPUDevice(meeting.local_rank) if device is None else device
        self._connect(meeting, chosen)
        self._stream = library.cupy.cuda.Stream(non_blocking=True)
        super().__init__(
            meeting.rank,
            meeting.size,
            _CAPABILITIES,
            local_rank=meeting.local_rank,
            device=chosen,
            timeout_s=timeout_s,
        )

    @classmethod
    def _of_group(
        cls, parent: NCCLCommunicator, meeting: Communicator, ledger: Ledger, world_ranks: Sequence[int]
    ) -> NCCLCommunicator:
        """Return the communicator of a group that was split off."""
        part = cls.__new__(cls)
        part._connect(meeting, parent._gpu)
        part._stream = parent._stream
        Communicator.__init__(
            part,
            meeting.rank,
            meeting.size,
            parent.capabilities,
            local_rank=parent.local_rank,
            device=parent.device,
            ledger=ledger,
            world_ranks=world_ranks,
            timeout_s=parent.timeout_s,
        )
        part.algorithms.update(parent.algorithms)
        return part

    def _connect(self, meeting: Communicator, gpu: GPUDevice) -> None:
        """Give the first rank's unique id to all, and have NCCL connect them."""
        library = cupy_with_nccl()
        library.cupy.cuda.Device(gpu.index).use()
        own = library.nccl.get_unique_id() if meeting.rank == 0 else (0,) * 128
        identity = np.array(own, np.int8)  # CuPy's id: numbers from -128 to 127
        meeting.broadcast(identity, root=0)
        self._meeting = meeting
        self._gpu = gpu
        with _translated(f"connecting {meeting.size} GPUs"):
            self._nccl = library.nccl.NcclCommunicator(meeting.size, tuple(identity.tolist()), meeting.rank)

    def barrier(self) -> None:
        """Return once every rank has come here, with all that it has given to its stream done."""
        self._stream.synchronize()
        super().barrier()

    def split(self, color: int | None, key: int = 0) -> NCCLCommunicator | None:
        """Return a communicator of the ranks that name the same color, ordered by key and then rank."""
        meeting = self._meeting.split(color, key)
        if meeting is None:
            return None
        world_ranks = np.empty(meeting.size, np.int64)
        meeting.allgather(np.array([self.world_ranks[self.rank]], np.int64), world_ranks)
        return self._of_group(self, meeting, self.ledger, world_ranks.tolist())

    def abort(self, message: str) -> NoReturn:
        """End NCCL's operations, and all ranks."""
        self._nccl.abort()
        self._meeting.abort(message)

    def _view(self, buffer: Any) -> npt.NDArray[Any]:
        return cast(npt.NDArray[Any], _device_view(buffer, self._gpu.index))

    def _start(self, call: Call) -> Work:
        if call.operation == "barrier":
            self._meeting.barrier()
            return NCCLWork(call, "barrier", self._nccl, None, None, self.timeout_s)
        self._check_message(call)
        after: Callable[[], None] | None = None
        with self._on_stream() as stream, _translated(call.operation):
            if call.operation in ("allreduce", "reduce", "reduce_scatter"):
                after = self._reduce(call, stream)
            else:
                self._move(call, stream)
            done = self._stream.record()
        what = f"{call.operation} on rank {self.world_ranks[self.rank]}"
        return NCCLWork(call, what, self._nccl, done, after, self.timeout_s)

    @contextmanager
    def _on_stream(self) -> Iterator[int]:
        """Let the stream wait for what the current one has been given: the buffers may be computed there."""
        cuda = cupy_with_nccl().cupy.cuda
        cuda.Device(self._gpu.index).use()
        self._stream.wait_event(cuda.get_current_stream().record())
        yield self._stream.ptr

    def _reduce(self, call: Call, stream: int) -> Callable[[], None] | None:
        """Put a reduction on the stream; return what brings the result back from a wider dtype."""
        nccl = cupy_with_nccl().nccl
        operation = {
            "sum": nccl.NCCL_SUM,
            "product": nccl.NCCL_PROD,
            "minimum": nccl.NCCL_MIN,
            "maximum": nccl.NCCL_MAX,
        }[call.reduction]
        buffer: Any = call.buffer
        target: Any = buffer if call.other is None else call.other
        wider = _WIDER.get(buffer.dtype.name)
        given, found = buffer, target
        if wider is not None:
            with self._stream:
                given = buffer.astype(wider)
                found = given if target is buffer else cupy_with_nccl().cupy.empty(target.size, wider)
        kind = _nccl_dtype(given.dtype)
        if call.operation == "allreduce":
            self._nccl.allReduce(given.data.ptr, found.data.ptr, given.size, kind, operation, stream)
        elif call.operation == "reduce":
            self._nccl.reduce(given.data.ptr, found.data.ptr, given.size, kind, operation, call.root, stream)
        else:
            self._nccl.reduceScatter(given.data.ptr, found.data.ptr, found.size, kind, operation, stream)
        if wider is None or (call.operation == "reduce" and self.rank != call.root):
            return None

        def bring_back() -> None:
            target[...] = found.astype(target.dtype)

        return bring_back

    def _move(self, call: Call, stream: int) -> None:
        """Put what only moves bytes on the stream."""
        library, comm = cupy_with_nccl(), self._nccl
        byte = library.nccl.NCCL_UINT8
        buffer: Any = call.buffer
        other: Any = call.other
        pointer, count = buffer.data.ptr, buffer.size
        match call.operation:
            case "broadcast":
                comm.broadcast(pointer, pointer, count, byte, call.root, stream)
            case "allgather":
                comm.allGather(pointer, other.data.ptr, count, byte, stream)
            case "send":
                comm.send(pointer, count, byte, call.destination, stream)
            case "recv":
                comm.recv(pointer, count, byte, call.source, stream)
            case _:  # each of the two would wait for its peer by itself
                library.nccl.groupStart()
                comm.send(pointer, count, byte, call.destination, stream)
                comm.recv(other.data.ptr, other.size, byte, call.source, stream)
                library.nccl.groupEnd()

    def _check_message(self, call: Call) -> None:
        if call.operation in ("send", "recv", "isendrecv") and (call.tag or call.source == ANY_SOURCE):
            raise CommunicationError(
                f"Received {call.operation} with the tag {call.tag} and the source {call.source}. Accepted with NCCL "
                "are messages without a tag (0) from a rank that is named: it matches them in their order. Exchange "
                "through a communicator between processors."
            )


class NCCLWork(Work):
    """What was put on the stream, up to an event."""

    def __init__(
        self, call: Call, what: str, nccl: Any, done: Any, after: Callable[[], None] | None, timeout_s: float | None
    ) -> None:
        """Wait for an event; ``None`` has come already. The call's buffers are kept until then."""
        super().__init__(timeout_s)
        self._call = call
        self._what = what
        self._nccl = nccl
        self._event = done
        self._after = after

    def _poll(self) -> bool:
        if self._event is not None and not self._event.done:
            with _translated(self._what):
                self._nccl.check_async_error()
            return False
        self._settle()
        return True

    def _wait(self, timeout_s: float | None) -> None:
        watch = Stopwatch()
        while self._event is not None and not self._event.done:
            with _translated(self._what):
                self._nccl.check_async_error()
            if timeout_s is not None and watch.elapsed_s() > timeout_s:
                self._nccl.abort()  # else the stream, and whoever waits for it, would never come to an end
                raise CommunicationError(
                    f"{self._what} was not done within {timeout_s:g} s: a peer does not answer (it was stopped, is "
                    "stuck, or calls something else). Look at what the other ranks do, or raise timeout_s."
                )
            time.sleep(_PAUSE_S)
        self._settle()

    def _settle(self) -> None:
        if self._after is not None:
            self._after()


def _device_view(buffer: Any, gpu: int) -> Any:
    """Return a buffer on this rank's GPU as a CuPy array, without a copy.

    Raises:
        CommunicationError: It cannot be exchanged in place; the message says why and what to do.
    """
    cupy = cupy_with_nccl().cupy
    name = type(buffer).__name__
    if getattr(buffer, "requires_grad", False) is True:
        raise CommunicationError(f"Received a {name} that requires a gradient. {_ACCEPTED}; exchange its .detach().")
    array = buffer
    if not isinstance(buffer, cupy.ndarray):
        try:
            array = cupy.from_dlpack(buffer)
        except (AttributeError, BufferError, RuntimeError, TypeError, ValueError) as error:
            raise CommunicationError(
                f"Received a {name} that CuPy cannot see in place ({one_line(str(error))}). {_ACCEPTED}."
            ) from error
    what = f"a {name} of dtype {array.dtype.name} and shape {array.shape}"
    if array.device.id != gpu:
        raise CommunicationError(
            f"Received {what} on GPU {array.device.id}; this rank's is {gpu}. {_ACCEPTED}; copy it."
        )
    if array.dtype.name not in _CAPABILITIES.dtypes:
        raise CommunicationError(f"Received {what}. {_ACCEPTED}; convert it into one of these.")
    if array.ndim != 1:
        raise CommunicationError(f"Received {what}. {_ACCEPTED}; pass a flat view of it, reshape(-1).")
    if not array.flags.c_contiguous:
        raise CommunicationError(f"Received {what} that is not contiguous. {_ACCEPTED}; copy it into such a buffer.")
    return array


def _nccl_dtype(dtype: np.dtype[Any]) -> int:
    nccl = cupy_with_nccl().nccl
    return int(getattr(nccl, f"NCCL_{dtype.name.upper()}"))


@contextmanager
def _translated(what: str) -> Iterator[None]:
    """Turn NCCL's errors into ours."""
    try:
        yield
    except cupy_with_nccl().nccl.NcclError as error:
        raise CommunicationError(
            f"{what} failed in NCCL: {one_line(str(error))}. A peer has ended, or calls something else; look at what "
            "the other ranks do, and at what NCCL_DEBUG=INFO prints."
        ) from error
