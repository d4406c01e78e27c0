"""What a training step takes on many ranks, before it is run on them: time, efficiency, and where the time goes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from deep500.core.errors import CommunicationError
from deep500.distributed.simulation.catalogue import ALGORITHMS
from deep500.distributed.simulation.clocks import Clocks
from deep500.distributed.simulation.closed_forms import closed_form
from deep500.distributed.simulation.delays import Disturbance

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from deep500.distributed.simulation.cost_model import CostModel

__all__ = ["ScalingMode", "ScalingPoint", "SimulatedRun", "TrainingStep", "exposed_exchange_s", "predict", "simulate"]

#: Whether the minibatch of all ranks together stays the same (strong), or that of each rank (weak).
ScalingMode = Literal["strong", "weak"]


@dataclass(frozen=True)
class TrainingStep:
    """A step on one rank, and what it exchanges.

    Attributes:
        forward_s: Time of the forward pass, which shrinks with the minibatch.
        backward_s: Time of the backward pass, which shrinks with the minibatch.
        gradient_bytes: Bytes of all gradients.
        fixed_s: Time that does not depend on the minibatch, such as the update; it comes after the exchange.
        bucket_bytes: Bytes that are exchanged together; by default all. Buckets fill in the order of the backward pass,
            which is taken to produce bytes evenly.
        overlaps: Whether a bucket's exchange starts while the backward pass goes on.
        item_bytes: Bytes of an element.
    """

    forward_s: float
    backward_s: float
    gradient_bytes: int
    fixed_s: float = 0.0
    bucket_bytes: int | None = None
    overlaps: bool = True
    item_bytes: int = 4

    def __post_init__(self) -> None:
        """Check the numbers.

        Raises:
            CommunicationError: A time is negative or not finite, or bytes make no whole elements.
        """
        times = (self.forward_s, self.backward_s, self.fixed_s)
        are_whole = self.item_bytes >= 1 and self.gradient_bytes >= 0 and self.gradient_bytes % self.item_bytes == 0
        if not all(0 <= time < math.inf for time in times) or not are_whole or self.compute_s <= 0:
            raise CommunicationError(
                f"Received {self}. Accepted are times that are finite and not negative, not all 0, and bytes of the "
                "gradients that are a multiple of item_bytes."
            )
        if self.bucket_bytes is not None and self.bucket_bytes < self.item_bytes:
            raise CommunicationError(
                f"A bucket of {self.bucket_bytes} bytes holds no element of {self.item_bytes} bytes; give it more."
            )

    @property
    def compute_s(self) -> float:
        """What the step takes alone on one rank."""
        return self.forward_s + self.backward_s + self.fixed_s

    @property
    def buckets(self) -> list[int]:
        """Elements of each bucket, in the order in which they are ready."""
        count = self.gradient_bytes // self.item_bytes
        size = count if self.bucket_bytes is None else self.bucket_bytes // self.item_bytes
        return [min(size, count - start) for start in range(0, count, max(size, 1))]

    def ready_shares(self) -> list[float]:
        """Return the share of the backward pass after which each bucket is ready."""
        if not self.overlaps:
            return [1.0] * len(self.buckets)
        count = self.gradient_bytes // self.item_bytes
        return [float(end) / count for end in np.cumsum(self.buckets)]


@dataclass(frozen=True)
class ScalingPoint:
    """A step on a number of ranks.

    Attributes:
        ranks: How many.
        step_s: Time of the step.
        compute_s: Time that a rank computes in it.
        exchange_s: Time that the network is busy with it.
        exposed_s: Time of the exchange that no computation hides.
        efficiency: Strong: ``T(1) / (p T(p))``; weak: ``T(1) / T(p)``, with the step on one rank as the base case.
    """

    ranks: int
    step_s: float
    compute_s: float
    exchange_s: float
    exposed_s: float
    efficiency: float

    @property
    def speedup(self) -> float:
        """Efficiency times ranks: against one rank, strong for the same minibatch, weak for p times as many samples."""
        return self.efficiency * self.ranks


@dataclass(frozen=True, eq=False)
class SimulatedRun:
    """Steps in which each rank has its own clock, ``[step, rank]`` each.

    Attributes:
        compute_s: What each rank computed.
        exposed_s: How long each waited for the exchange after its own computation.
        imbalance_s: The part of it in which another rank had not finished its backward pass yet.
        step_s: Time of each step: the last rank's end of this one less its end of the one before, ``[step]``.
    """

    compute_s: NDArray[np.float64]
    exposed_s: NDArray[np.float64]
    imbalance_s: NDArray[np.float64]
    step_s: NDArray[np.float64]


def exposed_exchange_s(ready_s: Sequence[float], exchange_s: Sequence[float], backward_end_s: float) -> float:
    r"""Return the time after the backward pass until the last bucket is exchanged, one bucket after the other.

    :math:`f_i = \max(r_i, f_{i-1}) + x_i`, and the result is :math:`\max(f_n - t, 0)`.

    Args:
        ready_s: When each bucket is ready.
        exchange_s: What the exchange of each takes.
        backward_end_s: When the backward pass ends.
    """
    finished = 0.0
    for ready, exchange in zip(ready_s, exchange_s, strict=True):
        finished = max(ready, finished) + exchange
    return max(finished - backward_end_s, 0.0)


def predict(
    step: TrainingStep,
    algorithm: str,
    rank_counts: Sequence[int],
    model: CostModel,
    mode: ScalingMode = "weak",
    closed: Callable[..., float] | None = None,
) -> list[ScalingPoint]:
    """Predict a step on numbers of ranks from the closed form of its exchange, all ranks being equally fast.

    Args:
        step: The step as measured on one rank. For strong scaling forward and backward shrink with the ranks.
        algorithm: How gradients are exchanged.
        rank_counts: The numbers of ranks.
        model: What a message costs.
        mode: Which scaling.
        closed: ``(model, size, count, item_bytes)`` to seconds, for an exchange without a name.

    Raises:
        UnknownNameError: There is no closed form of this algorithm.
        CommunicationError: The mode is neither ``"strong"`` nor ``"weak"``.

    Example:
        >>> from deep500.distributed.simulation.cost_model import LogGP
        >>> network = LogGP(latency_s=25e-6, gap_s_per_byte=1 / 1.1e9)
        >>> step = TrainingStep(0.3, 0.5, 4 * 11_689_512, overlaps=False)
        >>> [f"{point.efficiency:.2f}" for point in predict(step, "ring_allreduce", [1, 1024], network)]
        ['1.00', '0.85']
    """
    _check_mode(mode)
    form = closed_form(algorithm) if closed is None else closed
    points = []
    for ranks in rank_counts:
        share = 1 / ranks if mode == "strong" else 1.0
        forward, backward = step.forward_s * share, step.backward_s * share
        exchange = [form(model, ranks, count, step.item_bytes) for count in step.buckets]
        ready = [forward + backward * part for part in step.ready_shares()]
        exposed = exposed_exchange_s(ready, exchange, forward + backward)
        compute = forward + backward + step.fixed_s
        total = compute + exposed
        efficiency = step.compute_s * share / total
        points.append(ScalingPoint(ranks, total, compute, sum(exchange), exposed, efficiency))
    return points


def simulate(
    step: TrainingStep,
    algorithm: str,
    ranks: int,
    model: CostModel,
    *,
    mode: ScalingMode = "weak",
    disturbance: Disturbance | None = None,
    steps: int = 1,
) -> SimulatedRun:
    """Simulate steps with a clock for each rank, so that stragglers and late messages can be put in.

    The network works beside the ranks' computation; a rank's buckets are exchanged one after the other.

    Args:
        step: See :func:`predict`.
        algorithm: How gradients are exchanged.
        ranks: How many.
        model: What a message costs.
        mode: Which scaling.
        disturbance: What goes wrong; by default nothing.
        steps: How many steps.

    Raises:
        UnknownNameError: There is no such algorithm.
        CommunicationError: The mode is neither ``"strong"`` nor ``"weak"``, or there is no rank or no step.
    """
    _check_mode(mode)
    if ranks < 1 or steps < 1:
        raise CommunicationError(
            f"Received {ranks} ranks and {steps} steps to simulate; accepted is 1 or more of each."
        )
    trouble = disturbance or Disturbance()
    network = Clocks(model, ranks, trouble.late_messages(ranks))
    make = ALGORITHMS.get(algorithm)
    schedules = [make(ranks, count, step.item_bytes) for count in step.buckets]
    share = 1 / ranks if mode == "strong" else 1.0
    now, ends = np.zeros(ranks), [0.0]
    rows: list[tuple[NDArray[np.float64], ...]] = []
    for number in range(steps):
        factors = trouble.compute_factors(ranks, number)
        forward, backward = step.forward_s * share * factors, step.backward_s * share * factors
        ended = now + forward + backward
        for part, schedule in zip(step.ready_shares(), schedules):
            network.wait_until(now + forward + backward * part)
            network.run(schedule)
        # Without an exchange nobody waits for anybody.
        exchanged = np.maximum(ended, network.now_s) if schedules and ranks > 1 else ended
        fixed = step.fixed_s * factors
        exposed = exchanged - ended
        rows.append((forward + backward + fixed, exposed, np.minimum(exposed, ended.max() - ended)))
        now = exchanged + fixed
        ends.append(float(now.max()))
    compute, exposed, imbalance = (np.stack(columns) for columns in zip(*rows))
    return SimulatedRun(compute, exposed, imbalance, np.diff(ends))


def _check_mode(mode: str) -> None:
    if mode not in ("strong", "weak"):
        raise CommunicationError(f"Received the mode {mode!r}. Accepted are 'strong' and 'weak'.")
