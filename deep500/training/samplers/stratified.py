"""Minibatches in which the classes have their shares."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deep500.core.errors import TrainingError
from deep500.core.random import random_stream
from deep500.core.stateful import State
from deep500.datasets.dataset import Dataset
from deep500.datasets.shuffling import shuffled_order
from deep500.training.sampler import Sampler, Transformation, fingerprint
from deep500.training.training_event import SamplerEvent

__all__ = ["StratifiedSampler"]

#: Samples that are read at once where labels have to be read with them.
_CHUNK = 1024


class StratifiedSampler(Sampler):
    r"""Yields each sample once an epoch, in minibatches in which each class has its share, as near as may be.

    Of a class with :math:`n_c` of the :math:`n` samples, a minibatch of :math:`b` has :math:`\lfloor b n_c / n \rfloor`
    or one more. Each epoch draws anew which samples come together; each sample is as likely to be in one minibatch as
    in another, a last one of fewer samples included.

    Such minibatches exist always: all full ones have the same bounds, so the samples beyond the lower bounds, class by
    class, can be dealt to the minibatches in turn, no class twice to one, as in McNaughton's wrap-around rule.

    Attributes:
        labels: Class of each sample, ``[len(dataset)]``.
    """

    def __init__(
        self,
        dataset: Dataset,
        batch_size: int,
        seed: int = 0,
        drop_last_batch: bool = True,
        events: Iterable[SamplerEvent] | None = None,
        transformations: Iterable[Transformation] | None = None,
        *,
        labels: ArrayLike | None = None,
    ) -> None:
        """Start epoch 0; see :class:`Sampler`.

        Args:
            dataset: The data set.
            batch_size: Number of samples a minibatch.
            seed: Seed of the streams.
            drop_last_batch: Whether to leave out a last minibatch of fewer samples.
            events: Listeners.
            transformations: What changes the minibatches.
            labels: Class of each sample, whole numbers; by default the data set's labels. Where the data set does not
                have them as an array ``labels``, it is read once from end to end.

        Raises:
            TrainingError: An argument is not accepted, or the labels are not class numbers.
        """
        super().__init__(dataset, batch_size, seed, drop_last_batch, events, transformations)
        self.labels = _class_numbers(_labels_of(dataset) if labels is None else labels, len(dataset))

    def order(self, epoch: int) -> NDArray[np.int64]:
        """Return the order of an epoch, drawn from ``random_stream(seed, "sampler", epoch)``."""
        stream = random_stream(self.seed, "sampler", epoch)
        count = len(self.dataset)
        full = count // self.batch_size
        shuffled = shuffled_order(stream, count)
        _, classes, sizes = np.unique(self.labels, return_inverse=True, return_counts=True)
        dealt = shuffled_order(stream, len(sizes))  # in which order classes are dealt
        places = np.argsort(dealt)[classes[shuffled]]
        by_class = np.argsort(places, kind="stable")
        in_last = self._in_last(stream, sizes[dealt])
        minibatch = np.empty(count, np.int64)
        names = shuffled_order(stream, full)
        start = extra = 0
        for number, size in enumerate(sizes[dealt]):
            last = int(in_last[number])
            share = (size - last) // full if full else 0
            regular = np.arange(size - last - share * full) + extra
            extra += len(regular)
            turns = np.concatenate([np.repeat(np.arange(full), share), regular % full if full else regular])
            own = by_class[start : start + size]
            minibatch[own] = np.concatenate([np.full(last, full), names[turns] if full else turns])
            start += size
        return shuffled[np.argsort(minibatch, kind="stable")]

    def identity(self) -> State:
        """Return the arguments too; see :meth:`Sampler.identity`."""
        return {**super().identity(), "labels": fingerprint(self.labels)}

    def _in_last(self, stream: np.random.Generator, sizes: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return how many of each class are in the last, smaller minibatch: the share, rounded at random.

        Systematic sampling: one random number for all classes, so that the sum is right, and each class is rounded up
        with the probability of its remainder.
        """
        count = int(sizes.sum())
        rest = count % self.batch_size
        lower, remainders = np.divmod(sizes * rest, count)
        ends = np.cumsum(remainders) + int(stream.bit_generator.random_raw()) % count
        up: NDArray[np.int64] = ends // count - (ends - remainders) // count
        return lower + up


def _labels_of(dataset: Dataset) -> NDArray[np.generic]:
    if dataset.label_node is None:
        raise TrainingError("The data set has no labels, so there are no classes. Give them: labels=[...].")
    known = getattr(dataset, "labels", None)
    if known is not None and np.shape(known)[:1] == (len(dataset),):
        return np.asarray(known)
    starts = range(0, len(dataset), _CHUNK)
    parts = [dataset[start : start + _CHUNK][dataset.label_node] for start in starts]
    return np.concatenate(parts)


def _class_numbers(labels: ArrayLike, count: int) -> NDArray[np.int64]:
    array = np.asarray(labels)
    if array.dtype.kind not in "iu" or array.shape != (count,):
        raise TrainingError(
            f"The labels are {array.dtype} of the shape {array.shape}; accepted is one whole number, the class, for "
            f"each of the {count} samples. Give them: labels=[...]."
        )
    return array.astype(np.int64)
