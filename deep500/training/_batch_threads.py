"""Threads that build minibatches."""

from __future__ import annotations

import copy
import queue
import threading
from concurrent.futures import Future, ThreadPoolExecutor

from deep500.core.errors import TrainingError
from deep500.core.texts import message_of
from deep500.training.sampler import Batch, Sampler

__all__ = ["BatchThreads", "worker_copy"]

#: What the threads' names begin with.
_THREADS = "deep500-input"


class BatchThreads:
    """Builds minibatches in threads. They share the data set; each has transformations of its own."""

    def __init__(self, sampler: Sampler, workers: int) -> None:
        """Copy the sampler for each thread; threads start with the first minibatches.

        Raises:
            TrainingError: A transformation cannot be copied.
        """
        self._samplers: queue.SimpleQueue[Sampler] = queue.SimpleQueue()
        for _ in range(workers):
            copied = worker_copy(sampler)
            try:
                copied.transformations = copy.deepcopy(copied.transformations)
            except Exception as error:  # a copy runs the transformation's own code, which may raise anything
                raise TrainingError(
                    f"The transformations cannot be copied for each thread ({message_of(error)}). Use workers=0."
                ) from error
            self._samplers.put(copied)
        self._pool = ThreadPoolExecutor(workers, _THREADS)
        self._futures: dict[int, Future[Batch]] = {}

    def submit(self, ticket: int, epoch: int, position: int) -> None:
        """Have a minibatch built."""
        self._futures[ticket] = self._pool.submit(_build, self._samplers, epoch, position)

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
        self._futures.clear()
        # Garbage collection may call this in one of the threads, which cannot wait for itself.
        is_own = threading.current_thread().name.startswith(_THREADS)
        self._pool.shutdown(wait=not is_own, cancel_futures=True)


def _build(samplers: queue.SimpleQueue[Sampler], epoch: int, position: int) -> Batch:
    sampler = samplers.get()
    try:
        sampler.epoch = epoch
        return sampler.batch_at(position)
    finally:
        samplers.put(sampler)


def worker_copy(sampler: Sampler) -> Sampler:
    """Return a copy that a worker may move, on the same data set, with the same transformations, without events."""
    copied = copy.copy(sampler)
    copied.events = []
    copied.transformations = list(sampler.transformations)
    copied._order = None
    return copied
