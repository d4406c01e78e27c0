"""What a scaling run does: on how many ranks, in which order, and what of it this machine can run at once."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from deep500.core.counts import check_count
from deep500.core.errors import MeasurementError, near_miss
from deep500.core.random import check_seed, random_stream
from deep500.core.texts import shown
from deep500.distributed._launch_limits import MOST_RANKS

__all__ = ["MODES", "ScalingDesign", "available_processors", "batch_of_rank", "ranks_of_text"]

#: Whether the minibatch of all ranks together stays the same, or that of each rank.
MODES = ("strong", "weak")


@dataclass(frozen=True)
class ScalingDesign:
    """The settings of a scaling run.

    Attributes:
        ranks: The numbers of ranks, ascending; the first is the base case.
        mode: ``"strong"``: the minibatch of all ranks together stays the same; ``"weak"``: that of each rank.
        launches: How often each number of ranks is launched afresh; an interval needs 6.
        steps: Timed steps of a launch; as many again are recorded for the split of time.
        warm_up: Steps before them that do not count.
        threads: Threads of each rank, the same for every number of ranks.
        seed: Of the order of launches.
        timeout_s: Longest time of a launch.
    """

    ranks: tuple[int, ...]
    mode: str = "strong"
    launches: int = 6
    steps: int = 30
    warm_up: int = 10
    threads: int = 1
    seed: int = 0
    timeout_s: float = 600.0

    def __post_init__(self) -> None:
        """Check the settings.

        Raises:
            MeasurementError: One is not accepted.
        """
        if self.mode not in MODES:
            raise MeasurementError(
                f"mode was given as {shown(self.mode)}.{near_miss(str(self.mode), MODES)} Accepted are 'strong' (the "
                "minibatch of all ranks together stays the same) and 'weak' (that of each rank does)."
            )
        for name in ("launches", "steps", "threads"):
            check_count(name, getattr(self, name), least=1, error=MeasurementError)
        check_count("warm_up", self.warm_up, least=0, error=MeasurementError)
        check_seed(self.seed)
        counts = [check_count("ranks", count, least=1, error=MeasurementError) for count in self.ranks]
        if not counts or sorted(set(counts)) != counts or counts[-1] > MOST_RANKS:
            raise MeasurementError(
                f"ranks were given as {shown(self.ranks)}. Accepted are different numbers from 1 to {MOST_RANKS}, "
                "ascending, such as 1,2,4; the first is the base case."
            )
        is_time = isinstance(self.timeout_s, (int, float)) and not isinstance(self.timeout_s, bool)
        if not is_time or not 0 < self.timeout_s < np.inf:
            raise MeasurementError(f"timeout_s was given as {shown(self.timeout_s)}; accepted are seconds above 0.")

    @property
    def base(self) -> int:
        """The number of ranks that efficiencies are against."""
        return self.ranks[0]

    def order(self) -> list[tuple[int, int]]:
        """Return the launches as pairs (number of the launch, ranks): all numbers of ranks in each, in random order.

        What disturbs the machine for a while then falls on all of them.
        """
        stream = random_stream(self.seed, "scaling", "order")
        return [(launch, int(count)) for launch in range(self.launches) for count in stream.permutation(self.ranks)]

    def oversubscribed(self, ranks: int) -> bool:
        """Whether so many ranks have more threads together than this process may use processors."""
        return ranks * self.threads > available_processors()

    def to_dict(self) -> dict[str, Any]:
        """Return the settings for JSON."""
        return {**asdict(self), "ranks": list(self.ranks)}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> ScalingDesign:
        """Return the settings that :meth:`to_dict` gave."""
        return cls(**{**content, "ranks": tuple(content["ranks"])})


def ranks_of_text(text: str) -> tuple[int, ...]:
    """Return the numbers of a text such as ``"1,2,4"``, ascending.

    Raises:
        MeasurementError: It is no such text.
    """
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdigit() and len(part) < 10 for part in parts):
        raise MeasurementError(f"ranks were given as {shown(text)}; accepted are numbers such as 1,2,4.")
    return tuple(sorted({int(part) for part in parts}))


def available_processors() -> int:
    """Return how many processors (hardware threads) this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def batch_of_rank(batch_size: int, ranks: int, mode: str) -> int:
    """Return the samples of a rank's minibatch.

    Args:
        batch_size: The recipe's: of all ranks together for strong scaling, of each rank for weak scaling.
        ranks: How many there are.
        mode: ``"strong"`` or ``"weak"``.

    Raises:
        MeasurementError: It cannot be divided equally.
    """
    if mode == "weak":
        return batch_size
    if batch_size % ranks:
        below, above = batch_size // ranks * ranks, -(-batch_size // ranks) * ranks
        nearest = " and ".join(str(size) for size in dict.fromkeys((below, above)) if size)
        raise MeasurementError(
            f"A minibatch of {batch_size} samples cannot be divided equally among {ranks} ranks. Accepted is a "
            f"batch_size that is a multiple of every number of ranks (nearest for {ranks}: {nearest}); change it with "
            f"--set batch_size={above}, the ranks, or use --mode weak."
        )
    return batch_size // ranks
