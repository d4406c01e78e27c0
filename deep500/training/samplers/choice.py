"""Samples drawn at random, some more often than others."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deep500.core.counts import check_count
from deep500.core.errors import TrainingError
from deep500.core.random import random_stream
from deep500.core.stateful import State
from deep500.core.texts import shown
from deep500.datasets.dataset import Dataset
from deep500.datasets.draws import uniform
from deep500.training.sampler import Sampler, Transformation, fingerprint
from deep500.training.training_event import SamplerEvent

__all__ = ["ChoiceSampler"]


class ChoiceSampler(Sampler):
    r"""Draws samples at random with given weights, with or without replacement; each epoch draws anew.

    With replacement, each draw is sample :math:`i` with the probability :math:`w_i / \sum_j w_j`, whatever was drawn
    before. Without, each draw has these probabilities among the samples that are left; the draws come in the order of
    :math:`E_i / w_i` with independent exponential :math:`E_i`.

    Source: P. S. Efraimidis, P. G. Spirakis, "Weighted random sampling with a reservoir", Information Processing
    Letters 97, 2006 (its keys :math:`u_i^{1/w_i}` are in the same order).

    Attributes:
        weights: Weight of each sample, ``[len(dataset)]``, float64; ``None`` when all weigh the same.
        replacement: Whether a sample may be drawn again in the same epoch.
        samples: Number of draws an epoch.
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
        weights: ArrayLike | None = None,
        replacement: bool = False,
        samples: int | None = None,
    ) -> None:
        """Start epoch 0; see :class:`Sampler`.

        Args:
            dataset: The data set.
            batch_size: Number of samples a minibatch.
            seed: Seed of the streams.
            drop_last_batch: Whether to leave out a last minibatch of fewer samples.
            events: Listeners.
            transformations: What changes the minibatches.
            weights: Weight of each sample, finite, from 0; by default all weigh the same.
            replacement: Whether a sample may be drawn again in the same epoch.
            samples: Number of draws an epoch; by default as many as the data set has samples (without replacement, as
                many as have a weight above 0).

        Raises:
            TrainingError: An argument is not accepted, or there are not enough samples to draw without replacement.
        """
        if not isinstance(replacement, (bool, np.bool_)):
            raise TrainingError(f"replacement was given as {shown(replacement)}; accepted are True and False.")
        count = len(dataset) if isinstance(dataset, Dataset) else 0  # what is no data set is refused below
        self.weights = _checked_weights(weights, count) if count else None
        self.replacement = bool(replacement)
        drawable = count if self.weights is None else int(np.count_nonzero(self.weights))
        default = count if self.replacement else drawable
        self.samples = default if samples is None else check_count("samples", samples, least=1, error=TrainingError)
        if not self.replacement and self.samples > drawable and count:
            raise TrainingError(
                f"samples was given as {self.samples}, but only {drawable} samples can be drawn without replacement. "
                f"Draw fewer, or with replacement=True."
            )
        super().__init__(dataset, batch_size, seed, drop_last_batch, events, transformations)
        self.each_sample_once = not self.replacement and self.samples == count

    @property
    def samples_an_epoch(self) -> int:
        """Number of draws an epoch."""
        return self.samples

    def order(self, epoch: int) -> NDArray[np.int64]:
        """Return the samples drawn from ``random_stream(seed, "sampler", epoch)``, ``[samples]``."""
        count = len(self.dataset)
        stream = random_stream(self.seed, "sampler", epoch)
        weights = np.ones(count) if self.weights is None else self.weights
        if self.replacement:
            ends = np.cumsum(weights)
            ends /= ends[-1]
            # To the right of an end that is met: a sample of weight 0, whose interval is empty, is never taken.
            return np.searchsorted(ends, uniform(stream, self.samples), side="right").astype(np.int64, copy=False)
        with np.errstate(divide="ignore"):
            waiting = -np.log1p(-uniform(stream, count)) / weights
        waiting[weights == 0] = np.inf
        return np.argsort(waiting, kind="stable")[: self.samples].astype(np.int64, copy=False)

    def identity(self) -> State:
        """Return the arguments too; see :meth:`Sampler.identity`."""
        weights = None if self.weights is None else fingerprint(self.weights)
        more = {"weights": weights, "replacement": self.replacement, "draws": self.samples}
        return {**super().identity(), **more}


def _checked_weights(weights: ArrayLike | None, count: int) -> NDArray[np.float64] | None:
    if weights is None:
        return None
    try:
        array: NDArray[np.float64] = np.array(weights, np.float64)
    except (TypeError, ValueError) as error:
        raise TrainingError(f"weights are not numbers: {error}") from error
    if array.shape != (count,):
        raise TrainingError(f"weights has the shape {array.shape}; accepted is one for each of the {count} samples.")
    wrong = np.flatnonzero(~(np.isfinite(array) & (array >= 0)))
    if wrong.size:
        raise TrainingError(
            f"The weight of sample {wrong[0]} is {array[wrong[0]]}; accepted are finite numbers from 0."
        )
    if not array.any():
        raise TrainingError("All weights are 0, so that no sample can be drawn. Give some sample a weight above 0.")
    array /= array.max()  # sums of them cannot overflow
    return array
