"""A fingerprint of the data that a training was fed."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deep500.core.stateful import State
from deep500.training.sampler import Sampler
from deep500.training.statistics import TrainingStatistics
from deep500.training.trainer import Trainer
from deep500.training.training_event import RunnerEvent, SamplerEvent

__all__ = ["BatchHashEvent"]


class BatchHashEvent(RunnerEvent, SamplerEvent):
    """Computes the SHA-256 over all minibatches of the training sampler's first epoch, as the network is fed them.

    Two runs with equal hashes were fed the same bits in the same order, whichever framework ran them. The hash of a
    minibatch is over name, dtype, shape and (little-endian) bytes of each array, arrays by name; that of all is over
    the hash of those before the last minibatch, and the last one's, so that it can be continued.

    In a trainer, the training sampler is followed, from its next epoch on. Attached to a sampler by hand, the first
    sampler that yields a minibatch is.

    Attributes:
        batches: Number of minibatches that the hash is over.
        complete: Whether they are the whole epoch.
    """

    may_stop = False

    def __init__(self) -> None:
        """Start with nothing hashed."""
        self._digest = hashlib.sha256().digest()
        self._sampler: Sampler | None = None
        self._epoch: int | None = None
        self.batches = 0
        self.complete = False

    def __deepcopy__(self, memo: dict[int, Any]) -> BatchHashEvent:
        """Return a copy that goes on from the same hash, following no sampler yet."""
        copy = type(self)()
        copy._digest = self._digest
        copy.batches, copy.complete = self.batches, self.complete
        return copy

    @property
    def digest(self) -> str:
        """The SHA-256 of what was hashed so far, as a hexadecimal text."""
        return self._digest.hex()

    def state(self) -> State:
        """Return a snapshot; see :class:`deep500.core.stateful.Stateful`."""
        return {"digest": self.digest, "epoch": self._epoch, "batches": self.batches, "complete": self.complete}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a snapshot, with the sampler that is followed already."""
        self._digest, self._epoch = bytes.fromhex(state["digest"]), state["epoch"]
        self.batches, self.complete = state["batches"], state["complete"]

    def before_training(self, runner: Trainer, training_stats: TrainingStatistics) -> None:
        """Start again, with the trainer's training sampler."""
        self._digest = hashlib.sha256().digest()
        self._sampler = runner.train_sampler
        self._epoch = None
        self.batches = 0
        self.complete = False

    def after_sampling(self, sampler: Sampler, samples: Mapping[str, NDArray[Any]]) -> None:
        """Hash a minibatch of the first epoch."""
        if self._sampler is None:
            self._sampler = sampler
        if self._epoch is None and sampler is self._sampler:
            self._epoch = sampler.epoch
        if self.complete or sampler is not self._sampler or sampler.epoch != self._epoch:
            return
        minibatch = hashlib.sha256(self._digest)
        for name in sorted(samples):
            array = np.asarray(samples[name])
            if array.dtype.byteorder == ">":
                array = array.astype(array.dtype.newbyteorder("<"))
            header = f"{array.dtype.name}:{array.shape}"
            minibatch.update(f"{len(name)}:{name}:{header};".encode())
            minibatch.update(np.ascontiguousarray(array).tobytes())
        self._digest = minibatch.digest()
        self.batches += 1
        self.complete = sampler.position == len(sampler)
