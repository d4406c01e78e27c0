"""The contract of a sampler: which samples make up each minibatch."""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deep500.core.counts import check_count
from deep500.core.errors import TrainingError
from deep500.core.random import check_seed, random_stream
from deep500.datasets.dataset import Dataset
from deep500.training.training_event import SamplerEvent

__all__ = ["Batch", "Sampler", "Transformation"]

#: A minibatch: arrays ``[N, ...]`` by the names of the network's inputs.
Batch = dict[str, NDArray[Any]]

#: Changes a minibatch, for example augments its images: ``transformation(batch)`` returns the batch to use.
#:
#: One that has a method ``set_random_stream(generator)`` is given a generator of its own at the start of each epoch;
#: all of its random choices must come from it. One that has a method ``set_dataset_nodes(input_node, label_node)`` is
#: told once for which inputs of the network samples and labels are.
Transformation = Callable[[Batch], Batch]


class Sampler(Iterator[Batch], abc.ABC):
    """Goes through a data set in minibatches, epoch by epoch.

    Iterating yields the minibatches of one epoch; :meth:`reset` starts the next one. A new sampler is at the start of
    epoch 0. Which samples a minibatch holds depends on the data set, the batch size, the seed and the epoch, and on
    nothing else: not on the framework, nor on what ran before.

    Random choices come from Philox streams: ``random_stream(seed, "sampler", epoch)`` for the order of the samples,
    and ``random_stream(seed, "sampler", epoch, "transformation", i)`` for the transformation number ``i``.

    A subclass implements :meth:`order`.

    Attributes:
        dataset: The data set.
        batch_size: Number of samples a minibatch.
        seed: Seed of the streams.
        drop_last_batch: Whether a last minibatch of fewer samples is left out.
        events: Listeners.
        transformations: What changes the minibatches, in this order.
        epoch: Number of the epoch, from 0.
        position: Number of minibatches that were yielded in this epoch.
    """

    def __init__(
        self,
        dataset: Dataset,
        batch_size: int,
        seed: int = 0,
        drop_last_batch: bool = False,
        events: Iterable[SamplerEvent] | None = None,
        transformations: Iterable[Transformation] | None = None,
    ) -> None:
        """Start epoch 0.

        Args:
            dataset: The data set.
            batch_size: Number of samples a minibatch.
            seed: Seed of the streams, from 0 to 2**64 - 1.
            drop_last_batch: Whether to leave out a last minibatch of fewer samples.
            events: Listeners.
            transformations: What changes the minibatches, in this order.

        Raises:
            TrainingError: An argument is not accepted, or no minibatch would be left.
            InvalidInputError: The seed is not accepted.
        """
        if not isinstance(dataset, Dataset):
            raise TrainingError(
                f"A sampler needs a data set as its first argument; received {type(dataset).__name__}. "
                f"NumpyDataset(data, data_node, labels, label_node) makes one from arrays."
            )
        check_count("batch_size", batch_size, least=1, error=TrainingError)
        if not isinstance(drop_last_batch, (bool, np.bool_)):
            raise TrainingError(f"drop_last_batch was given as {drop_last_batch!r}; accepted are True and False.")
        if len(dataset) == 0:
            raise TrainingError("The data set is empty; a sampler needs at least one sample.")
        if drop_last_batch and batch_size > len(dataset):
            raise TrainingError(
                f"batch_size is {batch_size} and the data set has {len(dataset)} samples, so that no minibatch is "
                f"left when the last one is dropped. Use a batch_size up to {len(dataset)}, or drop_last_batch=False."
            )
        self.dataset = dataset
        self.batch_size = int(batch_size)
        self.seed = check_seed(seed)
        self.drop_last_batch = bool(drop_last_batch)
        self.events = _checked_events(events)
        self.transformations: list[Transformation] = []
        self.epoch = 0
        self.position = 0
        self._order: NDArray[np.int64] | None = None
        for transformation in transformations if transformations is not None else ():
            self.add_transformation(transformation)

    @abc.abstractmethod
    def order(self, epoch: int) -> NDArray[np.int64]:
        """Return the numbers of the samples in the order in which an epoch yields them, ``[len(dataset)]``."""

    def __len__(self) -> int:
        """Return the number of minibatches an epoch."""
        count = len(self.dataset)
        return count // self.batch_size if self.drop_last_batch else -(-count // self.batch_size)

    @property
    def sample_count(self) -> int:
        """Number of samples an epoch, without those of a dropped last minibatch."""
        return min(len(self) * self.batch_size, len(self.dataset))

    def reset(self) -> None:
        """Start the next epoch, whether this one is finished or not."""
        self.epoch += 1
        self.position = 0
        self._order = None
        for event in self.events:
            event.on_sampler_reset(self)

    def add_transformation(self, transformation: Transformation) -> None:
        """Append a transformation; see :data:`Transformation`.

        Raises:
            TrainingError: It cannot be called.
        """
        if not callable(transformation):
            raise TrainingError(
                f"A transformation was given as {transformation!r}; accepted is a function of a minibatch that "
                f"returns a minibatch."
            )
        set_nodes = getattr(transformation, "set_dataset_nodes", None)
        if set_nodes is not None:
            set_nodes(self.dataset.input_node, self.dataset.label_node)
        self.transformations.append(transformation)
        if self._order is not None:
            self._give_stream(len(self.transformations) - 1)

    def __iter__(self) -> Iterator[Batch]:
        """Return the sampler itself."""
        return self

    def __next__(self) -> Batch:
        """Return the next minibatch of this epoch.

        Raises:
            StopIteration: The epoch is over.
            TrainingError: A transformation did not return a minibatch.
        """
        if self.position >= len(self):
            raise StopIteration
        if self._order is None:
            self._order = self.order(self.epoch)
            for number in range(len(self.transformations)):
                self._give_stream(number)
        start = self.position * self.batch_size
        samples = self._order[start : start + self.batch_size]
        for event in self.events:
            event.before_sampling(self, len(samples))
        batch = self._transformed(self.dataset[samples])
        self.position += 1
        for event in self.events:
            event.after_sampling(self, batch)
        return batch

    def _transformed(self, batch: Batch) -> Batch:
        for transformation in self.transformations:
            changed = transformation(batch)
            if not isinstance(changed, Mapping):
                raise TrainingError(
                    f"The transformation {transformation!r} returned {type(changed).__name__}; it must return the "
                    f"minibatch, a dictionary of arrays."
                )
            batch = dict(changed)
        return batch

    def _give_stream(self, number: int) -> None:
        set_stream = getattr(self.transformations[number], "set_random_stream", None)
        if set_stream is not None:
            set_stream(random_stream(self.seed, "sampler", self.epoch, "transformation", number))


def _checked_events(events: Iterable[SamplerEvent] | None) -> list[SamplerEvent]:
    checked = list(events) if events is not None else []
    for event in checked:
        if not isinstance(event, SamplerEvent):
            raise TrainingError(f"A sampler listens to SamplerEvents only; received {type(event).__name__}.")
    return checked
