"""Threads that build minibatches."""

from __future__ import annotations

import copy
import queue
import threading
from concurrent.futures import Future

from deep500.core.errors import TrainingError
from deep500.core.texts import message_of
from deep500.measure import clock
from deep500.training.sampler import Batch, Sampler

__all__ = ["BatchThreads", "worker_copy"]

#: What the threads' names begin with.
_THREADS = "deep500-input"

#: How long the end waits for the minibatches in hand.
_GRACE_S = 5.0

#: What a thread is asked for: where the minibatch goes, its epoch and its position; ``None`` to end.
_Task = tuple["Future[Batch]", int, int] | None


class BatchThreads:
    """Builds minibatches in threads. They share the data set; each has transformations of its own.

    A thread cannot be ended by force. So that a data set or transformation which never returns cannot keep the process
    from ending, they are daemon threads, and the end waits for them for a few seconds only.
    """

    def __init__(self, sampler: Sampler, workers: int) -> None:
        """Copy the sampler for each thread; threads start with the first minibatches.

        Raises:
            TrainingError: A transformation cannot be copied.
        """
        self._tasks: queue.SimpleQueue[_Task] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        for number in range(workers):
            copied = worker_copy(sampler)
            try:
                copied.transformations = copy.deepcopy(copied.transformations)
            except Exception as error:  # a copy runs the transformation's own code, which may raise anything
                raise TrainingError(
                    f"The transformations cannot be copied for each thread ({message_of(error)}). Use workers=0."
                ) from error
            self._threads.append(
                threading.Thread(target=_serve, args=(copied, self._tasks), name=f"{_THREADS}_{number}", daemon=True)
            )
        self._futures: dict[int, Future[Batch]] = {}
        self._is_started = False

    def submit(self, ticket: int, epoch: int, position: int) -> None:
        """Have a minibatch built."""
        if not self._is_started:
            self._is_started = True
            for thread in self._threads:
                thread.start()
        future: Future[Batch] = Future()
        self._futures[ticket] = future
        self._tasks.put((future, epoch, position))

    def result(self, ticket: int) -> Batch:
        """Wait for a minibatch; what building it raised is raised."""
        batch = self._futures[ticket].result()
        del self._futures[ticket]
        return batch

    def discard(self, ticket: int) -> None:
        """Do without a minibatch."""
        self._futures.pop(ticket).cancel()

    def close(self) -> None:
        """End the threads, after the minibatches that are being built."""
        for future in self._futures.values():
            future.cancel()
        self._futures.clear()
        threads, self._threads = self._threads, []
        for _ in threads:
            self._tasks.put(None)
        # Garbage collection may call this in one of the threads, which cannot wait for itself.
        if not self._is_started or threading.current_thread().name.startswith(_THREADS):
            return
        deadline_ns = clock.now_ns() + int(_GRACE_S * 1e9)
        for thread in threads:
            thread.join(max(0.0, (deadline_ns - clock.now_ns()) / 1e9))


def _serve(sampler: Sampler, tasks: queue.SimpleQueue[_Task]) -> None:
    """Build minibatches until told to end."""
    while (task := tasks.get()) is not None:
        future, epoch, position = task
        if not future.set_running_or_notify_cancel():
            continue
        try:
            sampler.epoch = epoch
            future.set_result(sampler.batch_at(position))
        except BaseException as error:  # noqa: BLE001 - raised where the minibatch is awaited
            future.set_exception(error)
        del task, future  # the minibatch belongs to who awaits it


def worker_copy(sampler: Sampler) -> Sampler:
    """Return a copy that a worker may move, on the same data set, with the same transformations, without events."""
    copied = copy.copy(sampler)
    copied.events = []
    copied.transformations = list(sampler.transformations)
    copied._order = None
    return copied
