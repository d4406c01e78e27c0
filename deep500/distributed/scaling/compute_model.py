"""How long a step computes for a minibatch of some samples: measured on one rank, and a line through it."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from deep500.core.errors import MeasurementError
from deep500.distributed.simulation.training_step import TrainingStep
from deep500.measure.clock import Stopwatch

if TYPE_CHECKING:
    from collections.abc import Callable

    from deep500.training.optimizer import Optimizer

__all__ = ["ComputeModel", "ComputeTimes", "measure_compute"]


@dataclass(frozen=True)
class ComputeTimes:
    """Medians of what one rank computes alone, in seconds.

    Attributes:
        samples: Size of the minibatch.
        forward_s: Of the forward pass.
        differentiated_s: Of forward and backward pass.
        step_s: Of the step: both, the update, and what comes with it.
    """

    samples: int
    forward_s: float
    differentiated_s: float
    step_s: float


@dataclass(frozen=True)
class ComputeModel:
    r"""The time of a step without exchange, :math:`a + b n` for a minibatch of n samples.

    The share of the forward pass in what the samples take is that of the largest minibatch measured.

    Attributes:
        fixed_s: What a step takes whatever its minibatch: calls, and the update.
        sample_s: What each sample takes.
        forward_share: Part of the samples' time that the forward pass has.
        times: What the line was put through.
    """

    fixed_s: float
    sample_s: float
    forward_share: float
    times: tuple[ComputeTimes, ...]

    @classmethod
    def of(cls, times: Sequence[ComputeTimes]) -> ComputeModel:
        """Fit the line of least squared relative errors, with neither part negative.

        Raises:
            MeasurementError: Nothing was measured.
        """
        if not times:
            raise MeasurementError("A step's computation was to be described without a time; measure one first.")
        samples = np.array([time.samples for time in times], np.float64)
        steps = np.array([time.step_s for time in times])
        largest = max(times, key=lambda time: time.samples)
        share = min(1.0, largest.forward_s / max(largest.differentiated_s, 1e-12))
        if len(set(samples.tolist())) == 1:  # nothing tells what does not depend on the samples but the update
            fixed = min(max(largest.step_s - largest.differentiated_s, 0.0), largest.step_s)
            return cls(fixed, (largest.step_s - fixed) / largest.samples, share, tuple(times))
        design = np.stack([1 / steps, samples / steps], axis=1)
        fixed, slope = (float(value) for value in np.linalg.lstsq(design, np.ones(len(steps)), rcond=None)[0])
        if slope < 0:
            fixed, slope = float(np.median(steps)), 0.0
        elif fixed < 0:
            fixed, slope = 0.0, float(np.median(steps / samples))
        return cls(fixed, slope, share, tuple(times))

    def step_s(self, samples: float) -> float:
        """Return the time of a step for a minibatch."""
        return self.fixed_s + self.sample_s * samples

    def training_step(self, samples: int, gradient_bytes: int, bucket_bytes: int, overlaps: bool) -> TrainingStep:
        """Return the step for predictions; what does not depend on samples comes after the exchange."""
        varying = self.sample_s * samples
        forward = varying * self.forward_share
        return TrainingStep(
            forward,
            varying - forward,
            gradient_bytes,
            self.fixed_s,
            bucket_bytes=min(bucket_bytes, max(gradient_bytes, 4)),
            overlaps=overlaps,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return it for JSON."""
        return {**asdict(self), "times": [asdict(time) for time in self.times]}


def measure_compute(
    optimizer: Optimizer, batches: Mapping[int, Sequence[Mapping[str, Any]]], steps: int, warm_up: int
) -> list[ComputeTimes]:
    """Measure what a rank computes alone, for minibatches of several sizes, in turns.

    Args:
        optimizer: What makes the step; the one of a rank, on one rank, if that is what is to be predicted.
        batches: Minibatches by size.
        steps: Timed steps.
        warm_up: Steps before them that do not count.
    """
    executor, loss = optimizer.executor, optimizer.loss
    # Of the minibatch, each thing that is timed.
    parts: tuple[Callable[[Mapping[str, Any]], Any], ...] = (
        executor.inference,
        lambda batch: executor.inference_and_backprop(batch, loss),
        optimizer.step,
    )
    executor.network.train()
    endless = {size: itertools.cycle(of_size) for size, of_size in sorted(batches.items())}
    taken: dict[int, list[list[float]]] = {size: [[], [], []] for size in endless}
    for number in range(warm_up + steps):
        for size, of_size in endless.items():
            batch = next(of_size)
            for place, part in enumerate(parts):
                watch = Stopwatch(executor.synchronize)
                part(batch)
                elapsed = watch.elapsed_s()
                if number >= warm_up:
                    taken[size][place].append(elapsed)
    return [ComputeTimes(size, *(float(np.median(row)) for row in rows)) for size, rows in taken.items()]
