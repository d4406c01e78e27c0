"""What a worker process of an input pipeline does: it builds the minibatches that it is asked for.

Both ends talk over one socket. The consumer sends first the sampler (a :class:`Parcel` and the descriptor of its
memory), then a :class:`Task` for each minibatch, and closes the socket in the end. The worker answers each task with an
:class:`Answer`; where its memory is new, the memory's descriptor follows.
"""

from __future__ import annotations

import math
import mmap
import os
import pickle
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from multiprocessing import parent_process
from multiprocessing.connection import Connection
from multiprocessing.reduction import recv_handle, send_handle
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deep500.core.errors import DatasetError
from deep500.core.texts import message_of
from deep500.datasets.dataset import Dataset
from deep500.training._shared_memory import SharedMemory, aligned
from deep500.training.sampler import Sampler

__all__ = ["Answer", "Parcel", "Place", "Task", "work"]

#: How often an idle worker looks whether its consumer still lives, in case that the socket does not tell.
_LOOK_EVERY_S = 5.0


@dataclass(frozen=True)
class Parcel:
    """A pickled object in shared memory: sizes of the pickle and, each from a multiple of 64 on, of its buffers."""

    sizes: tuple[int, ...]


@dataclass(frozen=True)
class Task:
    """A minibatch to build.

    Attributes:
        ticket: Number of the task.
        epoch: Number of the epoch.
        position: Number of the minibatch in the epoch.
        released: Numbers of the pieces of memory that the consumer does not need any more.
    """

    ticket: int
    epoch: int
    position: int
    released: tuple[int, ...]


@dataclass(frozen=True)
class Place:
    """Where an array lies in shared memory."""

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    start: int


@dataclass(frozen=True)
class Answer:
    """What became of a task.

    Attributes:
        ticket: Number of the task; -1 where the worker could not begin.
        memory: Number of the piece of memory that holds the minibatch.
        new_size_bytes: Size of that memory where the consumer does not know it yet: its descriptor follows.
        dropped: Numbers of pieces of memory that the worker has given up.
        places: Where the arrays lie.
        error: The exception, pickled; empty where it cannot be pickled, or there is none.
        message: The exception in words, empty without one.
        traceback: Its traceback.
    """

    ticket: int
    memory: int = -1
    new_size_bytes: int = 0
    dropped: tuple[int, ...] = ()
    places: tuple[Place, ...] = ()
    error: bytes = b""
    message: str = ""
    traceback: str = ""


def work(connection: Connection) -> None:
    """Build minibatches until the consumer closes the connection, or is gone."""
    try:
        _work(connection)
    except (EOFError, BrokenPipeError, ConnectionResetError):
        return


def _work(connection: Connection) -> None:
    consumer = parent_process()
    assert consumer is not None
    try:
        sampler = _unpacked(connection)
    except (EOFError, BrokenPipeError, ConnectionResetError):
        raise
    except Exception as error:  # noqa: BLE001 - unpickling runs the data set's own code; the consumer raises it
        connection.send(_failed(-1, error))
        return
    store = _Store()
    reads_into = _reads_into(sampler)
    while True:
        while not connection.poll(_LOOK_EVERY_S):
            if os.getppid() != consumer.pid:
                return
        task = connection.recv()
        store.free.extend(task.released)
        descriptor = -1
        try:
            sampler.epoch = task.epoch
            if reads_into:
                answer, descriptor = store.read(task.ticket, sampler, task.position)
            else:
                answer, descriptor = store.put(task.ticket, sampler.batch_at(task.position))
        except Exception as error:  # noqa: BLE001 - of a data set or transformation; the consumer raises it
            answer = _failed(task.ticket, error)
        connection.send(answer)
        if descriptor >= 0:
            send_handle(connection, descriptor, consumer.pid)
            os.close(descriptor)


class _Store:
    """The worker's pieces of shared memory; each holds one minibatch.

    Attributes:
        free: Numbers of those that nobody needs.
    """

    def __init__(self) -> None:
        self._pieces: dict[int, mmap.mmap] = {}
        self._next = 0
        self.free: list[int] = []

    def put(self, ticket: int, batch: Mapping[str, Any]) -> tuple[Answer, int]:
        """Copy a minibatch to free memory, or to new; return the answer, and the new memory's descriptor or -1."""
        arrays = {name: np.asarray(value) for name, value in batch.items()}
        for name, array in arrays.items():
            if array.dtype.hasobject:
                raise DatasetError(
                    f"{name!r} of a minibatch holds Python objects ({array.dtype}); arrays of numbers are accepted."
                )
        answer, descriptor, rooms = self._reserve(ticket, {n: (a.dtype, a.shape) for n, a in arrays.items()})
        for name, array in arrays.items():
            rooms[name][...] = array
        return answer, descriptor

    def read(self, ticket: int, sampler: Sampler, position: int) -> tuple[Answer, int]:
        """Have the data set read a minibatch straight into memory; see :meth:`put`."""
        samples = sampler.samples_at(position)
        described = sampler.dataset.descriptors.items()
        kinds = {name: (d.numpy_dtype, (len(samples), *(d.shape or ())[1:])) for name, d in described}
        answer, descriptor, rooms = self._reserve(ticket, kinds)
        try:
            sampler.dataset.read_into(samples, rooms)
        except BaseException:
            if descriptor < 0:
                self.free.append(answer.memory)
            else:  # the consumer does not know it
                os.close(descriptor)
                del self._pieces[answer.memory]
            raise
        return answer, descriptor

    def _reserve(
        self, ticket: int, kinds: Mapping[str, tuple[np.dtype[Any], tuple[Any, ...]]]
    ) -> tuple[Answer, int, dict[str, NDArray[Any]]]:
        places, size = [], 0
        for name, (dtype, shape) in kinds.items():
            places.append(Place(name, dtype, shape, size))
            size += aligned(math.prod(shape) * dtype.itemsize)
        number, dropped, descriptor, new_size = self._room(size)
        memory = self._pieces[number]
        rooms: dict[str, NDArray[Any]] = {p.name: np.ndarray(p.shape, p.dtype, memory, p.start) for p in places}
        return Answer(ticket, number, new_size, dropped, tuple(places)), descriptor, rooms

    def _room(self, size: int) -> tuple[int, tuple[int, ...], int, int]:
        for index, number in enumerate(self.free):
            if len(self._pieces[number]) >= size:
                del self.free[index]
                return number, (), -1, 0
        dropped = tuple(self.free)  # they are all too small
        for number in dropped:
            del self._pieces[number]
        self.free.clear()
        created = SharedMemory.create(size)
        number, self._next = self._next, self._next + 1
        self._pieces[number] = created.memory
        return number, dropped, created.descriptor, len(created.memory)


def _reads_into(sampler: Sampler) -> bool:
    """Whether the data set can read minibatches into shared memory better than they are copied there."""
    as_ever = type(sampler).batch_at is Sampler.batch_at and not sampler.transformations
    return as_ever and type(sampler.dataset).read_into is not Dataset.read_into


def _unpacked(connection: Connection) -> Sampler:
    parcel = connection.recv()
    descriptor = recv_handle(connection)
    total = sum(map(aligned, parcel.sizes))
    shared = SharedMemory(descriptor, total, copy_on_write=True)
    shared.close_descriptor()
    parts, start = [], 0
    for size in parcel.sizes:
        parts.append(memoryview(shared.memory)[start : start + size])
        start += aligned(size)
    sampler: Sampler = pickle.loads(parts[0], buffers=parts[1:])
    return sampler


def _failed(ticket: int, error: Exception) -> Answer:
    try:
        pickled = pickle.dumps(error)
        if type(pickle.loads(pickled)) is not type(error):
            pickled = b""
    except Exception:  # noqa: BLE001 - whatever keeps an exception from being pickled, its text is told
        pickled = b""
    text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    return Answer(ticket, error=pickled, message=f"{type(error).__name__}: {message_of(error)}", traceback=text)
