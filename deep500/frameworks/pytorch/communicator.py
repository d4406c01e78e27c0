"""Ranks that are processes, which exchange through torch.distributed: gloo on processors, NCCL on GPUs."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any, NoReturn, cast

import numpy.typing as npt
import torch
import torch.distributed as dist

from deep500.core.device import CPUDevice, Device, GPUDevice
from deep500.core.errors import CommunicationError
from deep500.distributed.buffers import host_view
from deep500.distributed.communicator import ANY_SOURCE, Call, Capabilities, Communicator, Work
from deep500.distributed.ledger import Ledger
from deep500.frameworks.pytorch._device_array import DeviceArray, device_view
from deep500.frameworks.pytorch._process_group import (
    check_backend,
    count_of_machine,
    meet,
    named,
    new_group,
    translated,
)
from deep500.frameworks.pytorch._torch_work import TorchWork
from deep500.frameworks.pytorch.device import torch_device

__all__ = ["TorchDistributedCommunicator"]

_MESSAGES = ("send", "recv", "isendrecv")

#: A message's size is a part of its tag, so that one of another size is never taken for it: gloo would fill a part of
#: the receiver's buffer without a word. The user's tag has 15 bits.
_TAG_BITS = 15
_SIZES = 65521  # the largest prime of 16 bits

#: Integers that neither gloo nor NCCL reduces, and the dtype in which they are: sums and products of it end in the same
#: bits, and minima and maxima are its own.
_WIDER = {torch.int16: torch.int32, torch.uint16: torch.int32, torch.uint32: torch.int64}

_LEAST = -(1 << 63)


class TorchDistributedCommunicator(Communicator):
    """A rank of torch.distributed. All ranks create it together, started by ``torchrun``.

    Between processors gloo carries the messages of host buffers, which it is handed as they are. Buffers on a GPU,
    where ``device`` names one, go through NCCL: this is written by the documents of torch.distributed, and only its
    parts that are the same on a processor have been run. NCCL knows no tags and no ``ANY_SOURCE``, and what it has
    received is there for whatever follows on the current CUDA stream.

    It is not thread-safe: the ranks number their collective operations, so those of two threads could be taken for each
    other's. One thread at a time may call it. A started exchange goes on beside computation, in gloo's threads.

    A peer that has ended, by whatever cause, closes its connections: its neighbours get a :class:`CommunicationError`
    within about a second, and the others as these end in turn. With ``timeout_s`` a peer that does not answer is an
    error, too. After an error the communicator cannot be used any more.

    Groups are process groups of our own: a program may use ``init_process_group`` beside them.
    """

    def __init__(self, *, device: Device | None = None, timeout_s: float | None = None) -> None:
        """Meet the other ranks.

        Args:
            device: Where buffers are: the processor by default, or a GPU of this rank's own.
            timeout_s: After how long a peer that does not answer is an error; ``None`` waits for ever.

        Raises:
            CommunicationError: The ranks do not know where to meet, or others do not come.
            DeviceError: There is no such GPU.
            MissingDependencyError: This build of PyTorch lacks gloo or NCCL.
        """
        chosen = CPUDevice() if device is None else device
        tensors_on = torch_device(chosen)
        if tensors_on.type == "cuda":
            torch.cuda.set_device(tensors_on)
        backend = "nccl" if isinstance(chosen, GPUDevice) else "gloo"
        check_backend(backend)
        store, environment = meet(timeout_s)
        local_rank = environment.local_rank
        if local_rank is None:
            local_rank = count_of_machine(store, environment.rank, environment.size)
        self._set_up(backend, tensors_on, store)
        self._group = new_group(backend, store, environment.rank, environment.size, timeout_s)
        is_gpu = backend == "nccl"
        capabilities = Capabilities(thread_safe=False, nonblocking=True, device_buffers=is_gpu)
        super().__init__(
            environment.rank,
            environment.size,
            capabilities,
            local_rank=local_rank,
            device=chosen,
            timeout_s=timeout_s,
        )

    def _set_up(self, backend: str, tensors_on: torch.device, store: Any) -> None:
        self._backend = backend
        self._tensors_on = tensors_on
        self._store = store
        self._splits = 0

    @classmethod
    def _of_group(
        cls, parent: TorchDistributedCommunicator, store: Any, rank: int, members: Sequence[int], ledger: Ledger
    ) -> TorchDistributedCommunicator:
        """Return the communicator of a group that was split off."""
        part = cls.__new__(cls)
        part._set_up(parent._backend, parent._tensors_on, store)
        part._group = new_group(parent._backend, store, rank, len(members), parent.timeout_s)
        Communicator.__init__(
            part,
            rank,
            len(members),
            parent.capabilities,
            local_rank=parent.local_rank,
            device=parent.device,
            ledger=ledger,
            world_ranks=[parent.world_ranks[member] for member in members],
            timeout_s=parent.timeout_s,
        )
        part.algorithms.update(parent.algorithms)
        return part

    def split(self, color: int | None, key: int = 0) -> TorchDistributedCommunicator | None:
        """Return a communicator of the ranks that name the same color, ordered by key and then rank."""
        wish = torch.tensor([color is not None, color or 0, key], dtype=torch.int64, device=self._tensors_on)
        wishes = torch.empty(3 * self.size, dtype=torch.int64, device=self._tensors_on)
        with translated("split"):
            handle = self._group._allgather_base(wishes, wish)
        self._work("split", [handle]).wait()
        rows = [(rank, *row) for rank, row in enumerate(wishes.reshape(self.size, 3).tolist())]
        self._splits += 1
        if color is None:
            return None
        members = [rank for _, rank in sorted((row[3], row[0]) for row in rows if row[1] and row[2] == color)]
        store = named(f"{self._splits}:{color}", self._store)
        return self._of_group(self, store, members.index(self.rank), members, self.ledger)

    def abort(self, message: str) -> NoReturn:
        """Print the message and end this process; the others get errors, and torchrun ends them."""
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):  # a closed stream must not keep the ranks alive
                if stream is sys.stderr:
                    stream.write(f"[rank {self.world_ranks[self.rank]}] {message} All ranks are ended.\n")
                stream.flush()
        os._exit(1)

    def _view(self, buffer: Any) -> npt.NDArray[Any]:
        if self._backend == "nccl":
            return cast(npt.NDArray[Any], device_view(buffer, self._tensors_on))
        return host_view(buffer)

    def _start(self, call: Call) -> Work:
        tensor = _tensor(call.buffer)
        other = None if call.other is None else _tensor(call.other)
        with translated(call.operation):
            if call.operation in _MESSAGES:
                return self._start_message(call, tensor, other)
            if call.operation == "broadcast":
                options = dist.BroadcastOptions()
                options.rootRank, options.rootTensor = call.root, 0
                return self._work(call.operation, [self._group.broadcast([tensor], options)])
            if call.operation == "allgather":
                return self._work(call.operation, [self._group._allgather_base(other, tensor)])
            if call.operation == "barrier":
                return self._start_barrier()
            return self._start_reduction(call, tensor, other)

    def _start_barrier(self) -> Work:
        if self._backend == "gloo":
            return self._work("barrier", [self._group.barrier(dist.BarrierOptions())])
        # On a stream a barrier is a sum, which the host then waits for.
        token = torch.zeros(1, device=self._tensors_on)
        handle = self._group.allreduce([token], dist.AllreduceOptions())
        return self._work("barrier", [handle], lambda: torch.cuda.current_stream(self._tensors_on).synchronize())

    def _start_reduction(self, call: Call, tensor: torch.Tensor, other: torch.Tensor | None) -> Work:
        """Start a reduction, in a dtype that the backend has."""
        is_root = call.operation == "allreduce" or self.rank == call.root
        is_scattered = call.operation == "reduce_scatter"
        carried = _carried(tensor, call.reduction, in_place=is_root and not is_scattered)
        reduction = _reductions()[call.reduction]

        def after() -> None:
            if is_scattered and other is not None:
                length = other.numel()
                share = carried if carried.numel() == length else carried[self.rank * length :][:length]
                _bring_back(share, other, call.reduction)
            elif is_root:
                _bring_back(carried, tensor, call.reduction)

        if call.operation == "reduce":
            options = dist.ReduceOptions()
            options.reduceOp, options.rootRank, options.rootTensor = reduction, call.root, 0
            return self._work(call.operation, [self._group.reduce([carried], options)], after)
        if is_scattered and self._backend == "nccl" and other is not None:
            whole, carried = carried, torch.empty_like(carried[: other.numel()])
            scattering = dist.ReduceScatterOptions()
            scattering.reduceOp = reduction
            return self._work(call.operation, [self._group._reduce_scatter_base(carried, whole, scattering)], after)
        combining = dist.AllreduceOptions()  # gloo has no reduce_scatter of its own
        combining.reduceOp = reduction
        return self._work(call.operation, [self._group.allreduce([carried], combining)], after)

    def _start_message(self, call: Call, tensor: torch.Tensor, other: torch.Tensor | None) -> Work:
        if call.operation == "isendrecv" and other is not None:
            if call.destination == call.source == self.rank:
                _check_own(tensor, other)
                other.copy_(tensor)
                return self._work(call.operation, [])
            self._check_message(call)
            with self._coalesced() as handles:
                incoming = self._group.recv([other], call.source, self._wire_tag(call, other))
                outgoing = self._group.send([tensor], call.destination, self._wire_tag(call, tensor))
            return self._message_work(call, handles or [incoming, outgoing])
        self._check_message(call)
        tag = self._wire_tag(call, tensor)
        if call.operation == "send":
            return self._message_work(call, [self._group.send([tensor], call.destination, tag)])
        if call.source == ANY_SOURCE:
            handle = self._group.recv_anysource([tensor], tag)
            return self._message_work(call, [handle], handle)
        return self._message_work(call, [self._group.recv([tensor], call.source, tag)])

    @contextlib.contextmanager
    def _coalesced(self) -> Any:
        """Start a receive and a send of NCCL as one, since each would wait for its peer by itself."""
        handles: list[Any] = []
        if self._backend == "nccl":
            self._group._start_coalescing()
        yield handles
        if self._backend == "nccl":
            handles.append(self._group._end_coalescing())

    def _check_message(self, call: Call) -> None:
        """Refuse what a backend does not carry."""
        if self._backend == "nccl" and (call.source == ANY_SOURCE or call.tag):
            raise CommunicationError(
                f"Received {call.operation} with the tag {call.tag} and the source {call.source}. Accepted with NCCL "
                "are messages without a tag (0) from a rank that is named: it matches them in their order. Exchange "
                "through a communicator between processors."
            )
        peers = {"send": (call.destination,), "recv": (call.source,)}.get(
            call.operation, (call.destination, call.source)
        )
        if self.rank in peers:
            raise CommunicationError(
                f"Rank {self.rank} received {call.operation} with itself as a peer. torch.distributed carries no "
                "messages of a rank to itself; accepted are the other ranks, and isendrecv with itself on both sides."
            )

    def _wire_tag(self, call: Call, tensor: torch.Tensor) -> int:
        if self._backend == "nccl":
            return 0
        return call.tag | (tensor.numel() * tensor.element_size() % _SIZES) << _TAG_BITS

    def _message_work(self, call: Call, handles: Sequence[Any], receive: Any = None) -> Work:
        waits = self._backend == "gloo"
        return self._work(call.operation, handles, receive=receive, completes_by_waiting=waits)

    def _work(
        self,
        operation: str,
        handles: Sequence[Any],
        after: Callable[[], None] | None = None,
        *,
        receive: Any = None,
        completes_by_waiting: bool = False,
    ) -> TorchWork:
        return TorchWork(
            f"{operation} on rank {self.world_ranks[self.rank]}",
            handles,
            after,
            receive=receive,
            waits_by_looking=self._backend == "nccl",
            completes_by_waiting=completes_by_waiting,
            timeout_s=self.timeout_s,
        )


def _tensor(array: Any) -> torch.Tensor:
    """Return an array's memory as a tensor."""
    return array.tensor if isinstance(array, DeviceArray) else torch.from_numpy(array)


def _reductions() -> dict[str, Any]:
    operations = dist.ReduceOp
    return {
        "sum": operations.SUM,
        "product": operations.PRODUCT,
        "minimum": operations.MIN,
        "maximum": operations.MAX,
    }


def _carried(tensor: torch.Tensor, reduction: str, *, in_place: bool) -> torch.Tensor:
    """Return what is reduced: the tensor itself, or a copy where it must not change or its dtype is not reduced.

    uint64 travels as int64 of the same bits, whose sums and products are the same. For its order the highest bit is
    turned around.
    """
    if tensor.dtype in _WIDER:
        return tensor.to(_WIDER[tensor.dtype])
    carried = tensor.view(torch.int64) if tensor.dtype == torch.uint64 else tensor
    if not in_place:
        carried = carried.clone()
    if tensor.dtype == torch.uint64 and reduction in ("minimum", "maximum"):
        carried ^= _LEAST
    return carried


def _bring_back(carried: torch.Tensor, target: torch.Tensor, reduction: str) -> None:
    """Put a result where it belongs: undo what :func:`_carried` did."""
    if target.dtype == torch.uint64:
        if reduction in ("minimum", "maximum"):
            carried ^= _LEAST
        target = target.view(torch.int64)
    if carried.data_ptr() != target.data_ptr():
        target.copy_(carried)


def _check_own(sent: torch.Tensor, received: torch.Tensor) -> None:
    if sent.numel() != received.numel():
        raise CommunicationError(
            f"A message of {sent.numel()} bytes was to be received in {received.numel()}. Accepted are messages of "
            "exactly the size of the receiver's buffer."
        )
