"""A stand-in for CuPy and ``cupy.cuda.nccl``: arrays in the host's memory, ranks that are threads.

It has the names and arguments that CuPy's reference gives; memory is passed by address, as there.
"""

from __future__ import annotations

import ctypes
import itertools
import threading
from types import SimpleNamespace
from typing import Any

import numpy as np

from deep500.distributed.communicators._cupy_library import CuPy
from deep500.distributed.communicators._thread_exchange import ThreadExchange
from deep500.distributed.communicators.local import LocalCommunicator

__all__ = ["Array", "FakeNCCL", "Stream", "fake_cupy"]

DTYPES = ["INT8", "UINT8", "INT32", "UINT32", "INT64", "UINT64", "FLOAT16", "FLOAT32", "FLOAT64"]
OPERATIONS = {"SUM": "sum", "PROD": "product", "MIN": "minimum", "MAX": "maximum"}


class Array(np.ndarray):
    """An array whose memory and device are asked for as CuPy's are."""

    @property
    def data(self) -> Any:  # type: ignore[override]
        return SimpleNamespace(ptr=self.ctypes.data)

    @property
    def device(self) -> Any:  # type: ignore[override]
        return SimpleNamespace(id=0)


class Event:
    def __init__(self, done: bool = True) -> None:
        self.done = done


class Stream:
    """Notes what it was given, in order."""

    ends = True

    def __init__(self, non_blocking: bool = False) -> None:
        self.ptr = id(self)
        self.given: list[str] = []

    def record(self) -> Event:
        self.given.append("record")
        return Event(self.ends)

    def wait_event(self, event: Event) -> None:
        self.given.append("wait_event")

    def synchronize(self) -> None:
        self.given.append("synchronize")

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *error: object) -> None:
        pass


class NcclError(RuntimeError):
    pass


class FakeNCCL:
    """``cupy.cuda.nccl``."""

    available = True
    NcclError = NcclError

    def __init__(self) -> None:
        for number, name in enumerate([*DTYPES, *OPERATIONS]):
            setattr(self, f"NCCL_{name}", number)
        self.numbers = itertools.count()
        self.exchanges: dict[tuple[int, ...], ThreadExchange] = {}
        self.lock = threading.Lock()
        self.local = threading.local()
        self.aborted = 0
        self.async_error = ""

    def get_unique_id(self) -> tuple[int, ...]:
        return (next(self.numbers) - 128, *range(-127, 0))

    def groupStart(self) -> None:  # noqa: N802
        self.local.group = []

    def groupEnd(self) -> None:  # noqa: N802
        works = [start() for start in self.local.group]
        del self.local.group
        for work in works:
            work.wait()

    def NcclCommunicator(self, size: int, identity: tuple[int, ...], rank: int) -> FakeCommunicator:  # noqa: N802
        assert len(identity) == 128
        assert all(-128 <= number < 128 for number in identity)
        with self.lock:
            exchange = self.exchanges.setdefault(identity, ThreadExchange(size))
        return FakeCommunicator(self, LocalCommunicator(rank, exchange, timeout_s=60))

    def memory(self, pointer: int, count: int, dtype: int) -> Any:
        kind = np.dtype(DTYPES[dtype].lower())
        if not count:
            return np.empty(0, kind)
        return np.frombuffer((ctypes.c_uint8 * (count * kind.itemsize)).from_address(pointer), kind)

    def operation(self, number: int) -> str:
        return list(OPERATIONS.values())[number - len(DTYPES)]


class FakeCommunicator:
    """``cupy.cuda.nccl.NcclCommunicator``."""

    def __init__(self, nccl: FakeNCCL, ranks: LocalCommunicator) -> None:
        self.nccl = nccl
        self.ranks = ranks

    def allReduce(self, sent: int, found: int, count: int, dtype: int, op: int, stream: int) -> None:  # noqa: N802
        target = self.nccl.memory(found, count, dtype)
        target[...] = self.nccl.memory(sent, count, dtype)
        self.ranks.allreduce(target, self.nccl.operation(op))

    def reduce(self, sent: int, found: int, count: int, dtype: int, op: int, root: int, stream: int) -> None:
        whole = self.nccl.memory(sent, count, dtype).copy()
        self.ranks.reduce(whole, root, self.nccl.operation(op))
        if self.ranks.rank == root:
            self.nccl.memory(found, count, dtype)[...] = whole

    def reduceScatter(self, sent: int, found: int, count: int, dtype: int, op: int, stream: int) -> None:  # noqa: N802
        whole = self.nccl.memory(sent, count * self.ranks.size, dtype)
        self.ranks.reduce_scatter(whole, self.nccl.memory(found, count, dtype), self.nccl.operation(op))

    def broadcast(self, sent: int, found: int, count: int, dtype: int, root: int, stream: int) -> None:
        assert sent == found
        self.ranks.broadcast(self.nccl.memory(found, count, dtype), root)

    def allGather(self, sent: int, found: int, count: int, dtype: int, stream: int) -> None:  # noqa: N802
        whole = self.nccl.memory(found, count * self.ranks.size, dtype)
        self.ranks.allgather(self.nccl.memory(sent, count, dtype), whole)

    def send(self, sent: int, count: int, dtype: int, peer: int, stream: int) -> None:
        buffer = self.nccl.memory(sent, count, dtype)
        self._message(lambda: self.ranks.isend(buffer, peer))

    def recv(self, found: int, count: int, dtype: int, peer: int, stream: int) -> None:
        buffer = self.nccl.memory(found, count, dtype)
        self._message(lambda: self.ranks.irecv(buffer, peer))

    def check_async_error(self) -> None:
        if self.nccl.async_error:
            raise NcclError(self.nccl.async_error)

    def abort(self) -> None:
        self.nccl.aborted += 1

    def _message(self, start: Any) -> None:
        group = getattr(self.nccl.local, "group", None)
        if group is None:
            start().wait()
        else:
            group.append(start)


def fake_cupy() -> CuPy:
    """Return the two modules."""
    current = threading.local()

    def current_stream() -> Stream:
        if not hasattr(current, "stream"):
            current.stream = Stream()
        stream: Stream = current.stream
        return stream

    def from_dlpack(buffer: Any) -> Any:
        raise BufferError("it is not on a GPU")

    cuda = SimpleNamespace(
        Stream=Stream,
        Device=lambda index: SimpleNamespace(use=lambda: None),
        get_current_stream=current_stream,
    )
    cupy: Any = SimpleNamespace(
        ndarray=Array,
        cuda=cuda,
        from_dlpack=from_dlpack,
        empty=lambda size, dtype: np.empty(size, dtype).view(Array),
    )
    return CuPy(cupy, FakeNCCL())
