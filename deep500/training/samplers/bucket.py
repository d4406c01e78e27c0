"""Minibatches of samples of similar length."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deep500.core.counts import check_count
from deep500.core.errors import TrainingError
from deep500.core.random import random_stream
from deep500.core.stateful import State
from deep500.datasets.dataset import Dataset
from deep500.datasets.shuffling import shuffled_order
from deep500.training.sampler import Sampler, Transformation, fingerprint
from deep500.training.training_event import SamplerEvent

__all__ = ["BucketSampler"]

#: Most minibatches that a pool is cut into, unless told otherwise, and the least number of pools.
_LARGEST_POOL, _LEAST_POOLS = 50, 4


class BucketSampler(Sampler):
    """Yields each sample once an epoch, in minibatches of samples of similar length, such as that of a text.

    Each epoch puts the samples in random order, cuts it into pools, sorts each pool by length and cuts it into
    minibatches, which come in random order. The smaller the pools, the more do minibatches change from epoch to epoch;
    the larger, the more alike are the lengths in one. A last minibatch of fewer samples holds neighbours by length too;
    where in the lengths they lie is random, so that dropping them favours no length.

    Source: the pools are those of Hugging Face Transformers' ``LengthGroupedSampler``.

    Attributes:
        lengths: Length of each sample, ``[len(dataset)]``, float64.
        pool_batches: Number of minibatches that a pool is cut into, at least.
    """

    def __init__(
        self,
        dataset: Dataset,
        batch_size: int,
        lengths: ArrayLike | Callable[[Mapping[str, NDArray[Any]]], float],
        seed: int = 0,
        drop_last_batch: bool = True,
        events: Iterable[SamplerEvent] | None = None,
        transformations: Iterable[Transformation] | None = None,
        *,
        pool_batches: int | None = None,
    ) -> None:
        """Start epoch 0; see :class:`Sampler`.

        Args:
            dataset: The data set.
            batch_size: Number of samples a minibatch.
            lengths: The length of each sample, ``[len(dataset)]``, or a function of a sample (arrays by name) that
                returns it and is called once for each sample, which reads the whole data set.
            seed: Seed of the streams.
            drop_last_batch: Whether to leave out a last minibatch of fewer samples.
            events: Listeners.
            transformations: What changes the minibatches.
            pool_batches: Number of minibatches that a pool is cut into, at least; by default 50, or fewer, so that
                there are at least four pools.

        Raises:
            TrainingError: An argument is not accepted.
        """
        super().__init__(dataset, batch_size, seed, drop_last_batch, events, transformations)
        self.lengths = _checked_lengths(lengths, dataset)
        if pool_batches is None:
            self.pool_batches = max(1, min(_LARGEST_POOL, len(dataset) // (self.batch_size * _LEAST_POOLS)))
        else:
            self.pool_batches = check_count("pool_batches", pool_batches, least=1, error=TrainingError)

    def order(self, epoch: int) -> NDArray[np.int64]:
        """Return the order of an epoch, drawn from ``random_stream(seed, "sampler", epoch)``."""
        stream = random_stream(self.seed, "sampler", epoch)
        count, size = len(self.dataset), self.batch_size
        full, rest = divmod(count, size)
        shuffled = shuffled_order(stream, count)
        pools = max(1, full // self.pool_batches)
        ends = [len(batches) * size for batches in np.array_split(np.arange(full), pools)]
        ends[-1] += rest
        ordered = [self._sorted(pool) for pool in np.split(shuffled, np.cumsum(ends)[:-1])]
        last = np.zeros(0, np.int64)
        if rest:  # neighbours in the last pool, from anywhere, around the end where needed: each is as likely
            start = int(stream.bit_generator.random_raw()) % len(ordered[-1])
            turned = np.roll(ordered[-1], -start)
            last, ordered[-1] = turned[:rest], self._sorted(turned[rest:])
        batches = np.concatenate(ordered).reshape(full, min(size, count))
        return np.concatenate([batches[shuffled_order(stream, full)].reshape(-1), last])

    def identity(self) -> State:
        """Return the arguments too; see :meth:`Sampler.identity`."""
        return {**super().identity(), "lengths": fingerprint(self.lengths), "pool_batches": self.pool_batches}

    def _sorted(self, samples: NDArray[np.int64]) -> NDArray[np.int64]:
        return samples[np.argsort(self.lengths[samples], kind="stable")]


def _checked_lengths(lengths: Any, dataset: Dataset) -> NDArray[np.float64]:
    values = [lengths(sample) for sample in dataset] if callable(lengths) else lengths
    try:
        array = np.array(values, np.float64)
    except (TypeError, ValueError) as error:
        raise TrainingError(f"lengths are not numbers: {error}") from error
    if array.shape != (len(dataset),):
        raise TrainingError(
            f"lengths has the shape {array.shape}; accepted is one number for each of the {len(dataset)} samples."
        )
    if np.isnan(array).any():
        raise TrainingError(f"The length of sample {np.flatnonzero(np.isnan(array))[0]} is NaN; give a number.")
    return array
