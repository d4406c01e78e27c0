"""Ranks that a recipe's training was continued without: the samples are dealt anew, and the result tells of it."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from deep500.core.stateful import State
from deep500.distributed.communicator import Communicator
from deep500.distributed.distributed_optimizer import DistributedOptimizer
from deep500.distributed.failures import Shrink
from deep500.distributed.surviving_communicator import SurvivingCommunicator
from deep500.recipe._rank_share import RankShare
from deep500.training.input_pipeline import InputPipeline
from deep500.training.sampler import Sampler
from deep500.training.training_event import RunnerEvent

__all__ = ["RankLosses"]

_logger = logging.getLogger(__name__)


class RankLosses(RunnerEvent):
    """Deals the samples out to the ranks that are left when one fails, and keeps what is to be told of it.

    It is an event for its state, which goes into checkpoints: a result tells of all ranks that were lost on the way.

    Attributes:
        found: What was lost, in order: ``step``, the ranks ``lost`` and the ``survivors`` by the numbers that they
            started with, the ``batch_size`` of all ranks from there on, the number of samples of the step that was
            repeated that nobody trained on (``samples_lost``), what else only the lost ranks had (``state_lost``), and
            ``warnings``.
    """

    may_stop = False

    def __init__(self) -> None:
        """Start with nothing lost."""
        self.found: list[dict[str, Any]] = []
        self._reports: list[str] = []
        self._sampler: Sampler | None = None
        self._communicator: Communicator | None = None
        self._held = (-1, 0)  # minibatches taken, and the size of the last one of this rank

    def begin_without(self, communicator: Communicator, batch_size: int) -> None:
        """Note the ranks that an earlier training of the same processes has lost."""
        if isinstance(communicator, SurvivingCommunicator) and communicator.lost:
            self.found.append(self._entry(0, communicator.lost, communicator, batch_size))

    def follow(self, optimizer: DistributedOptimizer, sampler: Sampler, reports: Sequence[str]) -> None:
        """Do so for one training.

        Args:
            optimizer: Tells of ranks that fail.
            sampler: Serves the training set.
            reports: Names of the events that rank 0 alone has.
        """
        self._communicator, self._sampler, self._reports = optimizer.communicator, sampler, list(reports)
        optimizer.on_shrink.append(self._deal_anew)

    def state(self) -> State:
        """Return a snapshot; see :class:`deep500.core.stateful.Stateful`."""
        return {"found": [dict(entry) for entry in self.found]}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a snapshot."""
        self.found[:0] = [dict(entry) for entry in state["found"]]

    def _deal_anew(self, shrink: Shrink) -> None:
        assert self._communicator is not None
        share = self._sampler.sampler if isinstance(self._sampler, InputPipeline) else self._sampler
        assert isinstance(share, RankShare)
        taken = share.minibatches_taken
        if taken != self._held[0]:  # else another one failed before the step was repeated
            self._held = taken, share.minibatch_size(share.position - 1) if share.position else 0
        share.deal_anew(self._communicator)
        if isinstance(self._sampler, InputPipeline):
            self._sampler.close()  # what it has built ahead was dealt out as before
            self._sampler.batch_size, self._sampler.seed = share.batch_size, share.seed
            self._sampler.each_sample_once = share.each_sample_once
        entry = self._entry(shrink.step, shrink.lost, self._communicator, share.served.batch_size)
        entry["samples_lost"] = self._held[1] * len(shrink.lost) if taken > shrink.step else 0
        entry["state_lost"] = list(shrink.state_lost)
        if self._communicator.rank == 0:
            for warning in entry["warnings"]:
                _logger.warning("%s", warning)
        # In place: whoever writes the result has this list. One that failed while the others told of another is new.
        self.found[:] = [known for known in self.found if not set(known["lost"]) <= set(shrink.lost)] + [entry]

    def _entry(self, step: int, lost: Sequence[int], communicator: Communicator, batch_size: int) -> dict[str, Any]:
        size = communicator.size
        kept = batch_size // size * size
        warnings = []
        if kept != batch_size:
            warnings.append(
                f"The minibatch of {batch_size} samples cannot be dealt out to {size} ranks evenly; from here on it "
                f"has {kept}."
            )
        if self._reports and communicator.world_ranks[0] > min(lost):
            warnings.append(f"Events that only report ended with the first rank: {', '.join(self._reports)}.")
        return {
            "step": step,
            "lost": list(lost),
            "survivors": list(communicator.world_ranks),
            "batch_size": kept,
            "samples_lost": 0,
            "state_lost": [],
            "warnings": warnings,
        }
