"""Processes that build minibatches, seen from the process that consumes them."""

from __future__ import annotations

import ctypes
import io
import mmap
import multiprocessing
import os
import pickle
import signal
import weakref
from collections import deque
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from multiprocessing.reduction import recv_handle, send_handle
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deep500.core.errors import DatasetError, TrainingError
from deep500.core.texts import message_of
from deep500.measure import clock
from deep500.training._batch_threads import worker_copy
from deep500.training._batch_worker import Answer, Parcel, Place, Task, work
from deep500.training._shared_memory import SharedMemory, aligned
from deep500.training.sampler import Batch, Sampler

__all__ = ["BatchProcesses", "WorkerTraceback"]

#: Buffers from this size on lie in shared memory instead of the pickle.
_LARGE_BYTES = 1 << 16

#: How many minibatches of one worker the consumer may hold without a copy.
_LENT = 2

#: How long a worker has to end by itself, s.
_GRACE_S = 5.0


class WorkerTraceback(Exception):  # noqa: N818 - it is what caused an error, not one
    """The traceback of an exception in a worker process, as text; the cause of the one that is raised here."""

    def __str__(self) -> str:
        """Return the text, set off."""
        return f'\n"""\n{self.args[0]}"""'


class _Worker:
    """One process, and what is under way in it."""

    def __init__(self, process: BaseProcess, connection: Connection) -> None:
        self.process = process
        self.connection = connection
        self.tickets: list[int] = []
        self.pieces: dict[int, mmap.mmap] = {}
        self.released: deque[int] = deque()  # appended to by garbage collection, in any thread
        self.lent = 0

    def give_back(self, piece: int) -> None:
        self.released.append(piece)
        self.lent -= 1


class BatchProcesses:
    """Builds minibatches in spawned processes, which return them through shared memory.

    There is no thread besides: what the workers say is read when a minibatch is waited for.
    """

    def __init__(self, sampler: Sampler, workers: int) -> None:
        """Start the processes.

        Raises:
            TrainingError: The sampler cannot be pickled.
            DatasetError: There is not enough memory to share, or a process cannot be started.
        """
        self._owner = os.getpid()
        self._answers: dict[int, tuple[_Worker, Answer]] = {}
        self._where: dict[int, tuple[int, int]] = {}
        self._discarded: set[int] = set()
        self._workers: list[_Worker] = []
        parcel, shared = _packed(worker_copy(sampler))
        try:
            for _ in range(workers):
                self._workers.append(_start(parcel, shared))
        except BaseException:
            self.close()
            raise
        finally:
            shared.close_descriptor()

    def submit(self, ticket: int, epoch: int, position: int) -> None:
        """Have a minibatch built by the worker that has least to do."""
        worker = min(self._workers, key=lambda worker: len(worker.tickets))
        released = tuple(worker.released.popleft() for _ in range(len(worker.released)))
        worker.tickets.append(ticket)
        self._where[ticket] = (epoch, position)
        try:
            worker.connection.send(Task(ticket, epoch, position, released))
        except (BrokenPipeError, ConnectionResetError):
            raise self._death(worker) from None

    def result(self, ticket: int) -> Batch:
        """Wait for a minibatch; what building it raised is raised.

        Raises:
            DatasetError: The process that was to build it has ended, or raised what cannot be pickled.
        """
        while ticket not in self._answers:
            self._read()
        worker, answer = self._answers.pop(ticket)
        del self._where[ticket]
        if answer.message:
            raise _error_of(answer)
        return _lend(worker, answer)

    def discard(self, ticket: int) -> None:
        """Do without a minibatch."""
        self._discarded.add(ticket)
        self._drop_discarded()

    def close(self) -> None:
        """End the processes: at once where they are idle, after the minibatch in hand, or by force in the end."""
        workers, self._workers = self._workers, []
        self._answers.clear()
        if os.getpid() != self._owner:  # a fork has the objects, but not the processes
            return
        for worker in workers:
            worker.connection.close()
        deadline_ns = clock.now_ns() + int(_GRACE_S * 1e9)
        for worker in workers:
            worker.process.join(max(0.0, (deadline_ns - clock.now_ns()) / 1e9))
            if worker.process.is_alive():
                worker.process.kill()
                worker.process.join()
            worker.process.close()

    def _read(self) -> None:
        """Wait until workers say something, and read it."""
        busy = {worker.connection: worker for worker in self._workers if worker.tickets}
        sentinels = {worker.process.sentinel: worker for worker in busy.values()}
        ready = wait([*busy, *sentinels])
        for source in ready:
            if isinstance(source, Connection):
                self._receive(busy[source])
        for source in ready:
            if isinstance(source, int) and not sentinels[source].connection.poll():
                raise self._death(sentinels[source])
        self._drop_discarded()

    def _receive(self, worker: _Worker) -> None:
        try:
            answer: Answer = worker.connection.recv()
            if answer.ticket < 0:
                raise _error_of(answer)
            for number in answer.dropped:
                del worker.pieces[number]
            if answer.new_size_bytes:
                shared = SharedMemory(recv_handle(worker.connection), answer.new_size_bytes)
                shared.close_descriptor()
                worker.pieces[answer.memory] = shared.memory
        except (EOFError, ConnectionResetError):
            raise self._death(worker) from None
        worker.tickets.remove(answer.ticket)
        self._answers[answer.ticket] = (worker, answer)

    def _drop_discarded(self) -> None:
        for ticket in self._discarded & self._answers.keys():
            worker, answer = self._answers.pop(ticket)
            del self._where[ticket]
            self._discarded.remove(ticket)
            if not answer.message:
                worker.released.append(answer.memory)

    def _death(self, worker: _Worker) -> DatasetError:
        worker.process.join(_GRACE_S)
        code = worker.process.exitcode
        how = f"exit code {code}" if code is None or code >= 0 else signal.Signals(-code).name
        building = ", ".join(f"{p} of epoch {e}" for e, p in (self._where[t] for t in worker.tickets)) or "none"
        advice = (
            "SIGKILL often means that the machine is out of memory: use fewer workers, or a smaller prefetch."
            if code == -signal.SIGKILL
            else "What it wrote to stderr may say why. A script that starts workers must do so under "
            "`if __name__ == '__main__':`, as they import it."
        )
        return DatasetError(
            f"A worker process of the input pipeline (pid {worker.process.pid}) has ended with {how}; it had the "
            f"minibatches {building} to build. {advice}"
        )


def _start(parcel: Parcel, shared: SharedMemory) -> _Worker:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=True)
    process = context.Process(target=work, args=(theirs,), name="deep500-input", daemon=True)
    # Ctrl-C goes to all processes of a terminal; workers inherit that it is blocked, and end when this process does.
    # The tracker, which each spawned process needs, would undo the block when it is started within.
    resource_tracker.ensure_running()
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        process.start()
    except (OSError, AssertionError) as error:  # an assertion where this is a daemonic process, which has no children
        ours.close()
        raise DatasetError(
            f"A worker process of the input pipeline cannot be started: {error}. Use kind='thread'."
        ) from error
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        theirs.close()
    worker = _Worker(process, ours)
    try:
        ours.send(parcel)
        send_handle(ours, shared.descriptor, process.pid)
    except (BrokenPipeError, ConnectionResetError):
        pass  # it has ended already, which is told when something is asked of it
    return worker


def _packed(sampler: Sampler) -> tuple[Parcel, SharedMemory]:
    """Pickle a sampler into shared memory, large arrays as they are."""
    buffers: list[memoryview] = []

    def keep(buffer: pickle.PickleBuffer) -> bool:
        raw = buffer.raw()
        if raw.nbytes < _LARGE_BYTES:
            return True  # within the pickle
        buffers.append(raw)
        return False

    stream = io.BytesIO()
    try:
        pickle.Pickler(stream, protocol=5, buffer_callback=keep).dump(sampler)
    except Exception as error:  # pickling runs the data set's own code, which may raise anything
        raise TrainingError(
            f"The {type(sampler).__name__} with its data set ({type(sampler.dataset).__name__}) cannot be sent to "
            f"worker processes: {message_of(error)}. Use kind='thread', or make it picklable."
        ) from error
    parts = [stream.getbuffer(), *buffers]
    sizes = tuple(part.nbytes for part in parts)
    shared = SharedMemory.create(sum(map(aligned, sizes)))
    start = 0
    for part, size in zip(parts, sizes):
        shared.memory[start : start + size] = part.cast("B") if part.ndim != 1 or part.format != "B" else part
        start += aligned(size)
    return Parcel(sizes), shared


def _lend(worker: _Worker, answer: Answer) -> Batch:
    """Return a minibatch where it lies, which is given back when no array refers to it; a copy if much is lent."""
    memory = worker.pieces[answer.memory]
    if worker.lent >= _LENT:
        whole: NDArray[np.uint8] = np.frombuffer(memory, np.uint8)
        copied = {place.name: _array(whole, place).copy() for place in answer.places}
        worker.released.append(answer.memory)
        return copied
    # A new object for each loan: all arrays over it keep it alive, and its end is the loan's.
    loan: Any = (ctypes.c_ubyte * len(memory)).from_buffer(memory)
    worker.lent += 1
    weakref.finalize(loan, worker.give_back, answer.memory).atexit = False
    whole = np.frombuffer(loan, np.uint8)
    return {place.name: _array(whole, place) for place in answer.places}


def _array(whole: NDArray[np.uint8], place: Place) -> NDArray[Any]:
    size = int(np.prod(place.shape, dtype=np.int64)) * place.dtype.itemsize
    array: NDArray[Any] = whole[place.start : place.start + size].view(place.dtype).reshape(place.shape)
    return array


def _error_of(answer: Answer) -> Exception:
    error: Exception = pickle.loads(answer.error) if answer.error else DatasetError(f"A worker raised {answer.message}")
    error.__cause__ = WorkerTraceback(answer.traceback)
    return error
