"""The contract of a sampler: which samples make up each minibatch."""

from __future__ import annotations

import abc
import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deep500.core.counts import check_count
from deep500.core.errors import CheckpointError, TrainingError
from deep500.core.random import check_seed, random_stream
from deep500.core.stateful import State, Stateful
from deep500.core.texts import shown
from deep500.datasets.dataset import Dataset
from deep500.training.training_event import SamplerEvent

__all__ = ["Batch", "Sampler", "Transformation", "fingerprint"]

#: A minibatch: arrays ``[N, ...]`` by the names of the network's inputs.
Batch = dict[str, NDArray[Any]]

#: Changes a minibatch, for example augments its images: ``transformation(batch)`` returns the batch to use.
#:
#: One that has a method ``set_random_stream(generator)`` is given a generator of its own before each minibatch; all of
#: its random choices must come from it. One that has a method ``set_dataset_nodes(input_node, label_node)`` is told
#: once for which inputs of the network samples and labels are. One that remembers something from minibatch to minibatch
#: has ``state`` and ``restore`` (:class:`deep500.core.stateful.Stateful`).
Transformation = Callable[[Batch], Batch]


class Sampler(Iterator[Batch], abc.ABC):
    """Goes through a data set in minibatches, epoch by epoch.

    Iterating yields the minibatches of one epoch; :meth:`reset` starts the next one. A new sampler is at the start of
    epoch 0. Which samples a minibatch holds depends on the data set, the batch size, the seed and the epoch, and on
    nothing else: not on the framework, nor on what ran before.

    Random choices come from Philox streams: ``random_stream(seed, "sampler", epoch)`` for the order of the samples,
    and ``random_stream(seed, "sampler", epoch, "batch", position, "transformation", i)`` for the transformation number
    ``i`` of a minibatch. So epoch and position are all that there is to save (:meth:`state`), and minibatches may be
    built in any order (:meth:`batch_at`).

    A subclass implements :meth:`order`; one that has further arguments adds them to :meth:`identity`.

    Attributes:
        each_sample_once: Whether an epoch, but for a dropped last minibatch, yields each sample exactly once.
        dataset: The data set.
        batch_size: Number of samples a minibatch.
        seed: Seed of the streams.
        drop_last_batch: Whether a last minibatch of fewer samples is left out.
        events: Listeners.
        transformations: What changes the minibatches, in this order.
        epoch: Number of the epoch, from 0.
        position: Number of minibatches that were yielded in this epoch.
    """

    each_sample_once: bool = True

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
        self.dataset = dataset
        self.batch_size = int(batch_size)
        self.seed = check_seed(seed)
        self.drop_last_batch = bool(drop_last_batch)
        self.events = _checked_events(events)
        self.transformations: list[Transformation] = []
        self.epoch = 0
        self.position = 0
        self._order: tuple[int, NDArray[np.int64]] | None = None
        count = self.samples_an_epoch
        if self.drop_last_batch and batch_size > count:
            which = "the data set" if count == len(dataset) else "an epoch"
            raise TrainingError(
                f"batch_size is {batch_size} and {which} has {count} samples, so that no minibatch is left when the "
                f"last one is dropped. Use a batch_size up to {count}, or drop_last_batch=False."
            )
        for transformation in _several("transformations", transformations):
            self.add_transformation(transformation)

    @abc.abstractmethod
    def order(self, epoch: int) -> NDArray[np.int64]:
        """Return the numbers of the samples in the order in which an epoch yields them, ``[samples_an_epoch]``."""

    @property
    def samples_an_epoch(self) -> int:
        """Number of samples an epoch, those of a dropped last minibatch among them: all of the data set."""
        return len(self.dataset)

    def __len__(self) -> int:
        """Return the number of minibatches an epoch."""
        count = self.samples_an_epoch
        return count // self.batch_size if self.drop_last_batch else -(-count // self.batch_size)

    @property
    def sample_count(self) -> int:
        """Number of samples an epoch, without those of a dropped last minibatch."""
        return min(len(self) * self.batch_size, self.samples_an_epoch)

    def reset(self) -> None:
        """Start the next epoch, whether this one is finished or not."""
        self.epoch += 1
        self.position = 0
        for event in self.events:
            event.on_sampler_reset(self)

    def add_transformation(self, transformation: Transformation) -> None:
        """Append a transformation; see :data:`Transformation`.

        Raises:
            TrainingError: It cannot be called.
        """
        if isinstance(transformation, type):
            raise TrainingError(
                f"A transformation was given as the class {transformation.__name__}; accepted is an object of it, "
                f"{transformation.__name__}(...)."
            )
        if not callable(transformation):
            raise TrainingError(
                f"A transformation was given as {transformation!r}; accepted is a function of a minibatch that "
                f"returns a minibatch."
            )
        set_nodes = getattr(transformation, "set_dataset_nodes", None)
        if set_nodes is not None:
            set_nodes(self.dataset.input_node, self.dataset.label_node)
        self.transformations.append(transformation)

    def __iter__(self) -> Iterator[Batch]:
        """Return the sampler itself."""
        return self

    def __next__(self) -> Batch:
        """Return the next minibatch of this epoch.

        Raises:
            StopIteration: The epoch is over.
            TrainingError: A transformation did not return a minibatch.
        """
        position = self.position
        if position >= len(self):
            raise StopIteration
        if self.events:
            size = self.minibatch_size(position)
            for event in self.events:
                event.before_sampling(self, size)
        batch = self._take(position)
        self.position += 1
        for event in self.events:
            event.after_sampling(self, batch)
        return batch

    def batch_at(self, position: int) -> Batch:
        """Return a minibatch of this epoch, without moving on and without telling any event.

        Args:
            position: Its number in the epoch, from 0.

        Raises:
            TrainingError: There is no such minibatch, or a transformation did not return a minibatch.
        """
        samples = self.samples_at(position)
        try:
            return self._transformed(self.dataset[samples], position)
        except StopIteration as error:  # it would end the epoch here, without a word
            raise TrainingError(
                f"The data set or a transformation raised StopIteration in minibatch {position} of epoch {self.epoch}."
            ) from error

    def samples_at(self, position: int) -> NDArray[np.int64]:
        """Return the numbers of the samples of a minibatch of this epoch.

        Raises:
            TrainingError: There is no such minibatch.
        """
        is_number = isinstance(position, (int, np.integer)) and not isinstance(position, bool)
        if not is_number or not 0 <= position < len(self):
            raise TrainingError(f"There is no minibatch {shown(position)}; an epoch has {len(self)}, numbered from 0.")
        if self._order is None or self._order[0] != self.epoch:
            self._order = (self.epoch, self.order(self.epoch))
        start = position * self.batch_size
        return self._order[1][start : start + self.batch_size]

    def minibatch_size(self, position: int) -> int:
        """Return the number of samples in a minibatch of this epoch."""
        return min(self.batch_size, self.samples_an_epoch - position * self.batch_size)

    def identity(self) -> State:
        """Return what the sequence of minibatches depends on besides epoch and position; :meth:`restore` compares it.

        A long argument, such as a weight for each sample, is put in as its :func:`fingerprint`.
        """
        return {
            "sampler": type(self).__name__,
            "samples": len(self.dataset),
            "batch_size": self.batch_size,
            "seed": self.seed,
            "drop_last_batch": self.drop_last_batch,
            "transformations": [type(transformation).__name__ for transformation in self.transformations],
        }

    def state(self) -> State:
        """Return where the sampler is; see :class:`deep500.core.stateful.Stateful`."""
        remembered = {number: transformation.state() for number, transformation in self._remembering().items()}
        return {
            "identity": self.identity(),
            "epoch": self.epoch,
            "position": self.position,
            "transformations": remembered,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on where a sampler of the same kind and arguments was.

        Raises:
            CheckpointError: It was another sampler, or no sampler; nothing is changed then.
        """
        if not isinstance(state, Mapping):
            raise CheckpointError(f"What was saved is not the state of a sampler: it is {shown(state)}.")
        _check_identity(state.get("identity"), self.identity())
        epoch, position, remembered = (state.get(name) for name in ("epoch", "position", "transformations"))
        places = self._remembering()
        epoch, position = _saved_count("epoch", epoch), _saved_count("position", position)
        if position > len(self):
            raise CheckpointError(f"A sampler was saved at position {position}; an epoch has {len(self)} minibatches.")
        if not isinstance(remembered, Mapping) or set(remembered) != set(places):
            raise CheckpointError(
                f"The saved sampler has the transformations' states {shown(remembered)}; here those that remember "
                f"something are {', '.join(sorted(places)) or 'none'}. Use the same ones."
            )
        for number, transformation in places.items():
            transformation.restore(remembered[number])
        self.epoch, self.position = epoch, position

    def _remembering(self) -> dict[str, Stateful]:
        numbered: Iterable[tuple[int, Any]] = enumerate(self.transformations)
        return {str(number): made for number, made in numbered if isinstance(made, Stateful)}

    def _take(self, position: int) -> Batch:
        """Return the next minibatch; where it is built elsewhere, from there."""
        return self.batch_at(position)

    def _transformed(self, batch: Batch, position: int) -> Batch:
        for number, transformation in enumerate(self.transformations):
            set_stream = getattr(transformation, "set_random_stream", None)
            if set_stream is not None:
                names = ("sampler", self.epoch, "batch", position, "transformation", number)
                set_stream(random_stream(self.seed, *names))
            changed = transformation(batch)
            if not isinstance(changed, Mapping):
                raise TrainingError(
                    f"The transformation {transformation!r} returned {type(changed).__name__}; it must return the "
                    f"minibatch, a dictionary of arrays."
                )
            batch = dict(changed)
        return batch


def fingerprint(values: NDArray[Any]) -> str:
    """Return the SHA-256 of an array's dtype, shape and (little-endian) values, as a hexadecimal text."""
    array = np.ascontiguousarray(values, values.dtype.newbyteorder("<"))
    return hashlib.sha256(f"{array.dtype.name}:{array.shape};".encode() + array.tobytes()).hexdigest()


def _saved_count(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 0:
        raise CheckpointError(f"A sampler was saved at {name} {shown(value)}; accepted are whole numbers from 0.")
    return int(value)


def _check_identity(saved: Any, here: State) -> None:
    if not isinstance(saved, Mapping):
        raise CheckpointError(f"What was saved is not the state of a sampler: its identity is {shown(saved)}.")
    names = sorted({*saved, *here})
    differing = [name for name in names if saved.get(name) != here.get(name)]
    if differing:
        differences = "; ".join(f"{n} was {shown(saved.get(n))}, here it is {shown(here.get(n))}" for n in differing)
        raise CheckpointError(
            f"A checkpoint of another sampler cannot be continued: {differences}. Use the same data and arguments."
        )


def _several(argument: str, given: Any) -> list[Any]:
    if given is not None and (isinstance(given, (str, Mapping)) or not isinstance(given, Iterable)):
        raise TrainingError(f"{argument} was given as {shown(given)}; accepted is a list of them.")
    return [] if given is None else list(given)


def _checked_events(events: Iterable[SamplerEvent] | None) -> list[SamplerEvent]:
    checked = _several("events", events)
    for event in checked:
        if not isinstance(event, SamplerEvent):
            raise TrainingError(f"A sampler listens to SamplerEvents only; received {type(event).__name__}.")
    return checked
