"""Minibatches built ahead of the training, by threads or processes."""

from __future__ import annotations

import pickle
import weakref
from collections import deque
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from deep500.core.counts import check_count
from deep500.core.errors import TrainingError, near_miss
from deep500.core.stateful import State, Stateful
from deep500.core.texts import message_of, shown
from deep500.training._batch_processes import BatchProcesses
from deep500.training._batch_threads import BatchThreads
from deep500.training.sampler import Batch, Sampler, Transformation

__all__ = ["InputPipeline"]


class _Workers(Protocol):
    """What builds minibatches elsewhere. Tickets are numbers of the caller's choice, each given once."""

    def submit(self, ticket: int, epoch: int, position: int) -> None: ...

    def result(self, ticket: int) -> Batch: ...

    def discard(self, ticket: int) -> None: ...

    def close(self) -> None: ...


_KINDS: dict[str, Callable[[Sampler, int], _Workers]] = {"thread": BatchThreads, "process": BatchProcesses}


class InputPipeline(Sampler):
    """Serves a sampler's minibatches, while workers build the next ones.

    It is a sampler itself: the same minibatches, bit for bit, in the same order, whatever the number and kind of
    workers; its :meth:`state` is the sampler's, so that a training may go on with another number of workers, or none.

    Threads share the data set and are ready at once; they are right where reading releases Python's lock, as decoding
    an image and most of NumPy do. Processes run Python code side by side too. They are spawned, not forked, at the
    first minibatch, so data set and transformations must be picklable, and a script must start under ``if __name__ ==
    "__main__":``. Large arrays of the data set lie in memory that all share, and minibatches come through such memory
    without being pickled; that memory has no name, so that nothing of it is left behind however a process ends.

    What a worker raises is raised here, when the minibatch's turn comes. Minibatches already built are then still
    there; the pipeline can be used on. Workers end with :meth:`close`, at the end of a ``with`` block, and when the
    pipeline is not referred to any more.

    Attributes:
        sampler: The sampler that is served, which this moves on; do not iterate over it beside.
        workers: Number of workers; 0 builds each minibatch when it is asked for, at no cost besides.
        kind: ``"thread"`` or ``"process"``.
        prefetch: Number of minibatches that are built ahead, at most.

    Example:
        >>> from deep500.datasets.numpy_dataset import NumpyDataset
        >>> from deep500.training.samplers.ordered import OrderedSampler
        >>> sampler = OrderedSampler(NumpyDataset(np.arange(5), "x"), 2)
        >>> with InputPipeline(sampler, workers=2) as pipeline:
        ...     [batch["x"].tolist() for batch in pipeline]
        [[0, 1], [2, 3], [4]]
    """

    def __init__(self, sampler: Sampler, workers: int = 2, kind: str = "thread", prefetch: int | None = None) -> None:
        """Go on where the sampler is.

        Args:
            sampler: The sampler to serve; it is this pipeline's from now on.
            workers: Number of threads or processes; 0 for none.
            kind: ``"thread"`` or ``"process"``.
            prefetch: Number of minibatches that are built ahead, at most; by default two a worker.

        Raises:
            TrainingError: An argument is not accepted, or a transformation cannot be used in workers.
        """
        # The base is not initialised: everything that it would check and keep is the sampler's.
        if not isinstance(sampler, Sampler) or isinstance(sampler, InputPipeline):
            raise TrainingError(
                f"An input pipeline serves a sampler, such as ShuffleSampler(dataset, batch_size); received "
                f"{type(sampler).__name__}."
            )
        if kind not in _KINDS:
            raise TrainingError(
                f"The kind of workers was given as {shown(kind)}.{near_miss(kind, _KINDS)} "
                f"Accepted: {', '.join(_KINDS)}."
            )
        self.sampler = sampler
        self.workers = check_count("workers", workers, least=0, error=TrainingError)
        self.kind = kind
        wanted = 2 * self.workers if prefetch is None else prefetch
        self.prefetch = check_count("prefetch", wanted, least=1 if self.workers else 0, error=TrainingError)
        self.dataset, self.batch_size, self.seed = sampler.dataset, sampler.batch_size, sampler.seed
        self.drop_last_batch, self.each_sample_once = sampler.drop_last_batch, sampler.each_sample_once
        self.events, self.transformations = sampler.events, sampler.transformations  # the same lists
        self._running: _Workers | None = None
        self._running_with: list[Transformation] = []
        self._ahead: deque[tuple[int, int, int]] = deque()  # ticket, epoch, position
        self._tickets = 0
        self._finalizer: weakref.finalize[..., Any] | None = None
        for transformation in self.transformations:
            self._check_transformation(transformation)

    @property
    def epoch(self) -> int:
        """Number of the epoch, from 0."""
        return self.sampler.epoch

    @epoch.setter
    def epoch(self, value: int) -> None:
        self.sampler.epoch = value

    @property
    def position(self) -> int:
        """Number of minibatches that were yielded in this epoch."""
        return self.sampler.position

    @position.setter
    def position(self, value: int) -> None:
        self.sampler.position = value

    @property
    def samples_an_epoch(self) -> int:
        """Number of samples an epoch, those of a dropped last minibatch among them."""
        return self.sampler.samples_an_epoch

    def __len__(self) -> int:
        """Return the number of minibatches an epoch."""
        return len(self.sampler)

    def order(self, epoch: int) -> NDArray[np.int64]:
        """Return the sampler's order of an epoch."""
        return self.sampler.order(epoch)

    def batch_at(self, position: int) -> Batch:
        """Return a minibatch of this epoch, built here and now; see :meth:`Sampler.batch_at`."""
        return self.sampler.batch_at(position)

    def samples_at(self, position: int) -> NDArray[np.int64]:
        """Return the numbers of the samples of a minibatch of this epoch; see :meth:`Sampler.samples_at`."""
        return self.sampler.samples_at(position)

    def add_transformation(self, transformation: Transformation) -> None:
        """Append a transformation, to the minibatches that were built ahead too; see :class:`Sampler`.

        Raises:
            TrainingError: It cannot be called, or not be used in workers.
        """
        self._check_transformation(transformation)
        self.sampler.add_transformation(transformation)

    def identity(self) -> State:
        """Return the sampler's identity."""
        return self.sampler.identity()

    def state(self) -> State:
        """Return the sampler's state; how many workers there are is no part of it."""
        return self.sampler.state()

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on where a sampler or pipeline was, with any number of workers.

        Raises:
            CheckpointError: It was another sampler.
        """
        self.sampler.restore(state)

    def close(self) -> None:
        """End the workers. They start again when the next minibatch is asked for."""
        self._ahead.clear()
        self._running = None
        if self._finalizer is not None:
            self._finalizer()

    def __enter__(self) -> InputPipeline:
        """Return the pipeline."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """End the workers."""
        self.close()

    def _take(self, position: int) -> Batch:
        if not self.workers:
            return self.sampler.batch_at(position)
        epoch = self.epoch
        workers = self._started()
        if self._ahead and self._ahead[0][1:] != (epoch, position):  # the consumer went elsewhere
            while self._ahead:
                workers.discard(self._ahead.popleft()[0])
        try:
            self._fill(workers, epoch, position)
            batch = workers.result(self._ahead[0][0])
            self._ahead.popleft()
            self._fill(workers, epoch, position + 1)
        except BaseException:
            self.close()  # the next minibatch that is asked for starts them anew
            raise
        return batch

    def _fill(self, workers: _Workers, epoch: int, position: int) -> None:
        """Ask for the minibatches from a position on that were not asked for yet."""
        for ahead in range(position + len(self._ahead), min(position + self.prefetch, len(self))):
            workers.submit(self._tickets, epoch, ahead)
            self._ahead.append((self._tickets, epoch, ahead))
            self._tickets += 1

    def _started(self) -> _Workers:
        if self._running is None or self._running_with != self.transformations:
            self.close()
            for transformation in self.transformations:
                self._check_transformation(transformation)
            self._running_with = list(self.transformations)
            self._running = _KINDS[self.kind](self.sampler, self.workers)
            self._finalizer = weakref.finalize(self, self._running.close)
        return self._running

    def _check_transformation(self, transformation: Any) -> None:
        """Refuse what would not give the same bits in workers, or cannot get there."""
        if not self.workers:
            return
        name = type(transformation).__qualname__
        if isinstance(transformation, Stateful):
            raise TrainingError(
                f"The transformation {name} remembers something from minibatch to minibatch, so its results would "
                f"depend on the number of workers. Use workers=0."
            )
        if self.kind == "process":
            try:
                pickle.dumps(transformation, protocol=5)
            except Exception as error:  # pickling runs the transformation's own code, which may raise anything
                raise TrainingError(
                    f"The transformation {shown(transformation)} cannot be sent to worker processes "
                    f"({message_of(error)}). Use a function or class defined at the top of a module instead of a "
                    f"lambda or an inner function, or kind='thread'."
                ) from error
