"""What one launch measures on its ranks: plain steps, recorded steps, bytes, clocks."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from deep500.core.errors import MeasurementError
from deep500.distributed.scaling.clock_offsets import ClockOffset, arrival_leads_s, measure_clock_offsets
from deep500.distributed.scaling.exchange_recorder import ExchangeRecorder
from deep500.distributed.time_split import StepTimes, TimeSplit
from deep500.measure.clock import Stopwatch

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from deep500.distributed.communicator import Communicator
    from deep500.distributed.distributed_optimizer import DistributedOptimizer
    from deep500.distributed.scaling.design import ScalingDesign

__all__ = ["LaunchMeasurement", "measure_launch"]

#: What is counted of each rank, over all timed steps.
_COUNTED = ("sent_bytes", "received_bytes", "payload_bytes")


@dataclass(frozen=True, eq=False)
class LaunchMeasurement:
    """What one launch measured, the same on every rank.

    Attributes:
        step_s: Time of each plain step, ``[rank, step]``.
        split: The recorded steps.
        leads_s: By how much each rank waited before the last one did, at least and at most, ``[2, step, rank]``.
        clock_offsets: The bounds of the ranks' clocks.
        bytes_a_step: By rank, the mean bytes a step that its ledger counted: sent, received, and of the callers'
            buffers.
    """

    step_s: NDArray[np.float64]
    split: TimeSplit
    leads_s: NDArray[np.float64]
    clock_offsets: tuple[ClockOffset, ...]
    bytes_a_step: tuple[Mapping[str, float], ...]

    @property
    def ranks(self) -> int:
        """Number of ranks."""
        return len(self.step_s)

    @property
    def slowest_s(self) -> NDArray[np.float64]:
        """Time of each step on the rank for which it took longest, ``[step]``."""
        return np.asarray(self.step_s.max(axis=0))

    def to_dict(self) -> dict[str, Any]:
        """Return it for JSON, with all samples."""
        return {
            "step_s": self.step_s.tolist(),
            "split_s": self.split.times_s().tolist(),
            "arrival_lead_s": self.leads_s.tolist(),
            "clock_offset_s": [[offset.low_s, offset.high_s] for offset in self.clock_offsets],
            "bytes_a_step": [dict(counted) for counted in self.bytes_a_step],
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> LaunchMeasurement:
        """Return what :meth:`to_dict` gave."""
        split = TimeSplit()
        for step in content["split_s"]:
            split.record([StepTimes(*times) for times in step])
        return cls(
            np.asarray(content["step_s"], np.float64),
            split,
            np.asarray(content["arrival_lead_s"], np.float64),
            tuple(ClockOffset(rank, *bounds) for rank, bounds in enumerate(content["clock_offset_s"])),
            tuple(content["bytes_a_step"]),
        )


def measure_launch(
    optimizer: DistributedOptimizer, batches: Sequence[Mapping[str, Any]], design: ScalingDesign
) -> LaunchMeasurement:
    """Measure steps on all ranks together: some that do not count, timed ones, and recorded ones.

    The timed steps run as they do in a training, with two readings of the clock around each; only the steps after them
    are recorded.

    Args:
        optimizer: The rank's.
        batches: Minibatches of this rank, in memory; they are used in turn.
        design: How many steps.

    Raises:
        MeasurementError: There is no minibatch.
    """
    if not batches:
        raise MeasurementError("Steps were to be measured without a minibatch; give one or more.")
    communicator, endless = optimizer.communicator, itertools.cycle(batches)
    _steps(optimizer, endless, design.warm_up)
    _meet(optimizer)
    before = communicator.ledger.snapshot()
    own = _steps(optimizer, endless, design.steps)
    counted = communicator.ledger.snapshot() - before
    _meet(optimizer)
    with ExchangeRecorder(optimizer) as recorder:
        for batch in itertools.islice(endless, design.steps):
            recorder.begin_step()
            optimizer.step(batch)
            optimizer.executor.synchronize()
            recorder.end_step()
    _meet(optimizer)
    offsets = measure_clock_offsets(communicator)
    arrivals = _of_all(np.array(recorder.arrivals_s), communicator)
    traffic = _of_all(np.array([getattr(counted, name) / design.steps for name in _COUNTED]), communicator)
    return LaunchMeasurement(
        step_s=_of_all(own, communicator),
        split=TimeSplit.gathered(recorder.steps, communicator),
        leads_s=np.stack(arrival_leads_s(arrivals.T, offsets)),
        clock_offsets=tuple(offsets),
        bytes_a_step=tuple(dict(zip(_COUNTED, row, strict=True)) for row in traffic.tolist()),
    )


def _steps(optimizer: DistributedOptimizer, batches: Iterator[Mapping[str, Any]], count: int) -> NDArray[np.float64]:
    """Make steps, and return the seconds of each."""
    times = np.empty(count)
    synchronize = optimizer.executor.synchronize
    for number, batch in enumerate(itertools.islice(batches, count)):
        watch = Stopwatch()
        optimizer.step(batch)
        synchronize()
        times[number] = watch.elapsed_s()
    return times


def _meet(optimizer: DistributedOptimizer) -> None:
    """Bring to an end what an asynchronous scheme has under way, and wait for all ranks."""
    optimizer.finish()
    optimizer.communicator.barrier()


def _of_all(own: NDArray[np.float64], communicator: Communicator) -> NDArray[np.float64]:
    """Return the arrays of all ranks, ``[rank, ...]``."""
    gathered = np.empty(communicator.size * own.size)
    communicator.allgather(np.ascontiguousarray(own, np.float64), gathered)
    return gathered.reshape(communicator.size, -1)
