"""Minibatches that a workload is fed: made up beforehand and kept in memory, or read by a sampler within each run."""

from __future__ import annotations

import abc
import functools
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, cast

from numpy.typing import NDArray

from deep500.core.random import random_stream
from deep500.networks.network import Network
from deep500.networks.random_inputs import random_values
from deep500.training.events.batch_hash import BatchHashEvent
from deep500.training.sampler import Batch, Sampler

__all__ = ["Batches", "SampledBatches", "SyntheticBatches", "hash_batches", "synthetic_batch"]


class Batches(abc.ABC):
    """Where the minibatches of the runs come from.

    Attributes:
        io: What of reading them a run does, in words.
    """

    io: str

    @abc.abstractmethod
    def endless(self) -> Iterator[Batch]:
        """Iterate over the minibatches, again from the start when they are at their end, with nothing between."""

    @abc.abstractmethod
    def first(self) -> Batch:
        """Return the first minibatch."""

    @property
    @abc.abstractmethod
    def hash(self) -> str:
        """SHA-256 over all of them, or over the first epoch, in the form of :class:`BatchHashEvent`."""


class SyntheticBatches(Batches):
    """Minibatches that were made up before; a run converts one to the framework's tensors, but reads nothing."""

    io = "synthetic, in memory"

    def __init__(self, batches: Sequence[Batch]) -> None:
        """Keep the minibatches."""
        self._batches = tuple(batches)

    def endless(self) -> Iterator[Batch]:
        """Iterate over the minibatches in turn."""
        return itertools.cycle(self._batches)

    def first(self) -> Batch:
        """Return the first minibatch."""
        return self._batches[0]

    @functools.cached_property
    def hash(self) -> str:
        """SHA-256 over all of them."""
        return hash_batches(self._batches)


class SampledBatches(Batches):
    """Minibatches that a sampler reads, one a run; the end of an epoch is part of the run that meets it."""

    io = "data set, read in each run"

    def __init__(self, make_sampler: Callable[[], Sampler]) -> None:
        """Keep what makes a sampler at the start of epoch 0; each use gets one of its own."""
        self._make_sampler = make_sampler

    def endless(self) -> Iterator[Batch]:
        """Iterate over the minibatches of one epoch after the other."""
        sampler = self._make_sampler()
        while True:
            yield from sampler
            sampler.reset()

    def first(self) -> Batch:
        """Read the first minibatch."""
        return next(self._make_sampler())

    @functools.cached_property
    def hash(self) -> str:
        """SHA-256 over the first epoch, which is read for it."""
        sampler = self._make_sampler()
        event = BatchHashEvent()
        sampler.events.append(event)
        for _ in sampler:
            continue
        return event.digest


class _Served:
    """What :class:`BatchHashEvent` asks a sampler: minibatches that were never sampled are one epoch."""

    epoch = 0

    def __init__(self, count: int) -> None:
        self.position = 0
        self._count = count

    def __len__(self) -> int:
        return self._count


def hash_batches(batches: Sequence[Mapping[str, NDArray[Any]]]) -> str:
    """Return the SHA-256 that :class:`BatchHashEvent` has for these minibatches as one epoch."""
    event = BatchHashEvent()
    served = _Served(len(batches))
    for served.position, batch in enumerate(batches, 1):
        event.after_sampling(cast(Sampler, served), batch)
    return event.digest


def synthetic_batch(network: Network, sizes: Mapping[str, tuple[int, ...]], seed: int, number: int) -> Batch:
    """Make up one minibatch for a network.

    Args:
        network: The network.
        sizes: Shapes by name, for each input that is to be fed.
        seed: The workload's seed.
        number: Number of the minibatch; each has random streams of its own, one an input.

    Raises:
        InvalidInputError: Values of an input cannot be made up.
    """
    return random_values(network, sizes, lambda name: random_stream(seed, "workload", "batch", number, name))
