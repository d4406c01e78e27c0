"""This rank's part of any sampler."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deep500.core.random import random_stream
from deep500.core.stateful import State, checkpoint_errors
from deep500.distributed.communicator import Communicator
from deep500.distributed.samplers._rank_sampler import RankSampler
from deep500.training.sampler import Sampler, Transformation

__all__ = ["RankShare"]


@dataclass(frozen=True)
class _Deal:
    """From where on the samples are dealt out as they are now.

    Attributes:
        epoch: In which epoch that was.
        position: After how many minibatches of it.
        samples: After how many samples of the served sampler's order.
        minibatches: After how many minibatches of the whole training.
    """

    epoch: int = 0
    position: int = 0
    samples: int = 0
    minibatches: int = 0


class RankShare(RankSampler):
    """Serves this rank its part of each minibatch of another sampler, whatever the order of that one is.

    The minibatches of all ranks together are those of the other sampler, which one process would train on: sample i of
    a minibatch is rank i mod p's. A sampler that leaves out a last minibatch of fewer samples does so here too. One
    that does not is padded, so that all ranks make steps with minibatches of equal size (:class:`RankSampler`).

    Where ranks are lost, :meth:`deal_anew` deals what is left of the epoch, and the epochs to come, out to the others.
    The minibatch of all ranks stays that of the other sampler where their number divides it, and is the largest
    multiple of it below else.

    Attributes:
        served: The sampler of all ranks.
    """

    def __init__(
        self, served: Sampler, communicator: Communicator, transformations: Iterable[Transformation] = ()
    ) -> None:
        """Take a part.

        Args:
            served: The sampler of all ranks, whose minibatches have a multiple of their number of samples.
            communicator: Says which rank this is.
            transformations: What changes this rank's minibatches; it draws from streams of the rank's own.

        Raises:
            TrainingError: No minibatch would be left.
        """
        self.served = served
        self._deal = _Deal()
        super().__init__(
            served.dataset,
            served.batch_size // communicator.size,
            communicator,
            served.seed,
            served.drop_last_batch,
            served.events,
            transformations,
            padding="drop" if served.drop_last_batch else "repeat",
        )
        served.events = []  # they listen to this sampler, and do not go to workers
        self._check_coverage()

    @property
    def minibatches_taken(self) -> int:
        """Number of minibatches that were taken since the training began, if no epoch was broken off."""
        deal = self._deal
        if self.epoch == deal.epoch:
            return deal.minibatches + self.position - deal.position
        between = (self.epoch - deal.epoch - 1) * self._minibatches_in(deal.epoch + 1)
        return deal.minibatches + self._minibatches_in(deal.epoch) - deal.position + between + self.position

    def deal_anew(self, communicator: Communicator) -> None:
        """Take this rank's part among other ranks, from the next minibatch on.

        Done again before that one is taken, it changes nothing but the ranks.

        Args:
            communicator: Says which rank this is now.
        """
        self._deal = _Deal(self.epoch, self.position, self._samples_taken(), self.minibatches_taken)
        self.rank, self.size = communicator.rank, communicator.size
        self.batch_size = self.served.batch_size // self.size
        self.seed = self.order_seed
        if self.size > 1:
            self.seed = int(random_stream(self.order_seed, "sampler", "rank", self.rank).bit_generator.random_raw())
        self._order = None
        self._check_coverage()

    def own(self, epoch: int) -> NDArray[np.int64]:
        """Return every p-th sample of the served sampler's order; in an epoch that was dealt anew of both its parts."""
        before, rest = self._parts(epoch)
        return np.concatenate([before, rest])

    def own_count(self) -> int:
        """Return the number of samples that :meth:`own` returns."""
        position, samples = self._dealt_in(self.epoch)
        before = min(position * self.batch_size, len(range(self.rank, samples, self.size)))
        return before + len(range(samples + self.rank, self.served.samples_an_epoch, self.size))

    @property
    def samples_an_epoch(self) -> int:
        """Number of samples of this rank an epoch, with padding."""
        return self._samples_in(self.epoch)

    @property
    def padding_count(self) -> int:
        """Number of samples, the last ones of this rank's epoch, that are served a second time."""
        position, samples = self._dealt_in(self.epoch)
        own = len(range(samples + self.rank, self.served.samples_an_epoch, self.size))
        return max(0, self.samples_an_epoch - position * self.batch_size - own)

    def order(self, epoch: int) -> NDArray[np.int64]:
        """Return the samples of this rank in their order, with padding.

        In an epoch that was dealt anew, what comes before is there for its places alone, so that the next minibatch
        begins where it should.
        """
        before, rest = self._parts(epoch)
        position, _ = self._dealt_in(epoch)
        missing = position * self.batch_size - before.size  # minibatches that were larger, or had a padding
        places = [before, np.zeros(missing, np.int64), rest]
        count = self._samples_in(epoch) - position * self.batch_size
        if rest.size < count:  # by one sample, since the parts differ by at most one
            places.append(rest[:1] if rest.size else self.served.order(epoch)[:1])
        return np.concatenate(places)[: position * self.batch_size + count]

    def state(self) -> State:
        """Return where the sampler is, and from where on it is dealt out as it is now; see :meth:`Sampler.state`."""
        dealt = {} if self._deal == _Deal() else {"dealt": asdict(self._deal)}
        return {**super().state(), **dealt}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on where a sampler of the same kind, arguments and ranks was; see :meth:`Sampler.restore`."""
        before = self._deal, self.epoch
        try:
            if isinstance(state, Mapping):
                with checkpoint_errors("a sampler"):
                    self._deal = _Deal(**state.get("dealt", {}))
                    self.epoch = int(state.get("epoch", 0))  # its length is checked
            super().restore(state)
        except BaseException:
            self._deal, self.epoch = before
            raise
        self._order = None

    def identity(self) -> State:
        """Return what the served sampler depends on too; see :meth:`Sampler.identity`."""
        return {**super().identity(), "served": self.served.identity()}

    def _check_coverage(self) -> None:
        divides = self.served.samples_an_epoch % self.size == 0
        self.each_sample_once = self.served.each_sample_once and (divides or self.padding == "drop")

    def _dealt_in(self, epoch: int) -> tuple[int, int]:
        """Return after how many minibatches and samples of an epoch its samples are dealt out as they are now."""
        return (self._deal.position, self._deal.samples) if epoch == self._deal.epoch else (0, 0)

    def _parts(self, epoch: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return what would have been this rank's before its samples were dealt anew, and its samples after that."""
        position, samples = self._dealt_in(epoch)
        order = self.served.order(epoch)
        before = order[:samples][self.rank :: self.size][: position * self.batch_size]
        return before, order[samples:][self.rank :: self.size]

    def _samples_in(self, epoch: int) -> int:
        position, samples = self._dealt_in(epoch)
        count = self.served.samples_an_epoch - samples
        rest = count // self.size if self.padding == "drop" else -(-count // self.size)
        return position * self.batch_size + rest

    def _minibatches_in(self, epoch: int) -> int:
        count = self._samples_in(epoch)
        return count // self.batch_size if self.drop_last_batch else -(-count // self.batch_size)

    def _samples_taken(self) -> int:
        """Return the number of samples of this epoch's order that all ranks together have taken."""
        position, samples = self._dealt_in(self.epoch)
        taken = samples + (self.position - position) * self.batch_size * self.size
        return min(taken, self.served.samples_an_epoch)
