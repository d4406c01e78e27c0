"""What samplers of several ranks share: their arguments, the padding, streams of their own."""

from __future__ import annotations

import abc
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from deep500.core.errors import TrainingError
from deep500.core.random import check_seed, random_stream
from deep500.core.stateful import State
from deep500.core.texts import shown
from deep500.datasets.dataset import Dataset
from deep500.datasets.shuffling import shuffled_order
from deep500.distributed.communicator import Communicator
from deep500.training.hyperparameters import flag
from deep500.training.sampler import Sampler, Transformation
from deep500.training.training_event import SamplerEvent

__all__ = ["PADDINGS", "RankSampler"]

#: What is done where the ranks cannot have equally many samples.
PADDINGS = ("repeat", "drop", "none")


class RankSampler(Sampler):
    r"""Serves this rank its part of the samples of each epoch.

    Over all ranks, each of the n samples is served exactly once an epoch. Where the number of ranks p does not divide
    n, ``padding`` says what is done:

    * ``"repeat"``: every rank has :math:`\lceil n / p \rceil` samples; a rank that lacks one has a sample again, as its
      last one (:attr:`padding_count`). All ranks make equally many steps, with minibatches of equal size.
    * ``"drop"``: every rank has :math:`\lfloor n / p \rfloor` samples, and up to p - 1 are served by no rank.
    * ``"none"``: some ranks have one sample more, and may make one step more. It is for tests, where no rank waits for
      another: a scheme would wait for ever.

    Transformations draw from streams of the rank's own, so that ranks do not augment alike.

    Attributes:
        rank: The number of this rank.
        size: The number of ranks.
        order_seed: The seed that was given, which all ranks share; ``seed`` is this rank's, from which its
            transformations draw.
        shuffles: Whether each epoch has a new random order.
        padding: See above.
    """

    def __init__(
        self,
        dataset: Dataset,
        batch_size: int,
        communicator: Communicator,
        seed: int = 0,
        drop_last_batch: bool = False,
        events: Iterable[SamplerEvent] | None = None,
        transformations: Iterable[Transformation] | None = None,
        *,
        shuffles: bool = True,
        padding: str = "repeat",
    ) -> None:
        """Start epoch 0; see :class:`deep500.training.sampler.Sampler`.

        Args:
            dataset: The whole data set, the same on every rank.
            batch_size: Number of samples a minibatch of one rank.
            communicator: Says which rank this is; nothing is sent.
            seed: Seed of the order, the same on every rank.
            drop_last_batch: Whether to leave out a last minibatch of fewer samples.
            events: Listeners.
            transformations: What changes the minibatches.
            shuffles: Whether each epoch has a new random order.
            padding: ``"repeat"``, ``"drop"`` or ``"none"``.

        Raises:
            TrainingError: An argument is not accepted, or no minibatch would be left.
        """
        if not isinstance(communicator, Communicator):
            raise TrainingError(f"communicator was given as {shown(communicator)}; accepted is a Communicator.")
        if padding not in PADDINGS:
            raise TrainingError(f"padding was given as {shown(padding)}; accepted are: {', '.join(PADDINGS)}.")
        self.rank = communicator.rank  # the communicator itself is not kept: worker processes get the sampler
        self.size = communicator.size
        self.order_seed = check_seed(seed)
        self.shuffles = flag("shuffles", shuffles)
        self.padding = padding
        own = self.order_seed
        if self.size > 1:
            own = int(random_stream(self.order_seed, "sampler", "rank", self.rank).bit_generator.random_raw())
        super().__init__(dataset, batch_size, own, drop_last_batch, events, transformations)
        self.each_sample_once = len(dataset) % self.size == 0 or padding != "repeat"
        if padding == "drop" and len(dataset) < self.size:
            raise TrainingError(
                f"The data set has {len(dataset)} samples for {self.size} ranks, so that padding='drop' leaves none. "
                f"Use padding='repeat', or fewer ranks."
            )

    @abc.abstractmethod
    def own(self, epoch: int) -> NDArray[np.int64]:
        """Return the samples of this rank in their order, without padding; those of all ranks are all samples."""

    @abc.abstractmethod
    def own_count(self) -> int:
        """Return the number of samples that :meth:`own` returns."""

    @property
    def samples_an_epoch(self) -> int:
        """Number of samples of this rank an epoch, with padding."""
        if self.padding == "none":
            return self.own_count()
        count = len(self.dataset)
        return count // self.size if self.padding == "drop" else -(-count // self.size)

    @property
    def padding_count(self) -> int:
        """Number of samples, the last ones of this rank's epoch, that are served a second time."""
        return max(0, self.samples_an_epoch - self.own_count())

    def order(self, epoch: int) -> NDArray[np.int64]:
        """Return the samples of this rank in their order, with padding."""
        own = self.own(epoch)
        if self.padding_count:  # one sample, since the parts differ by at most one
            again = own[:1] if own.size else np.array([self.rank % len(self.dataset)], np.int64)
            own = np.concatenate([own, again])
        return own[: self.samples_an_epoch]

    def shuffled(self, count: int, epoch: int, *names: str | int) -> NDArray[np.int64]:
        """Return the numbers to ``count - 1`` in the order of an epoch, drawn from a stream of all ranks' seed."""
        if not self.shuffles:
            return np.arange(count, dtype=np.int64)
        return shuffled_order(random_stream(self.order_seed, "sampler", epoch, *names), count)

    def identity(self) -> State:
        """Return the arguments too; see :meth:`Sampler.identity`."""
        more = {"rank": self.rank, "size": self.size, "shuffles": self.shuffles, "padding": self.padding}
        return {**super().identity(), **more}
