"""How long a training is to be: epochs, steps, samples or seconds."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from deep500.core.counts import check_count
from deep500.core.errors import TrainingError
from deep500.core.texts import shown
from deep500.training.sampler import Sampler
from deep500.training.statistics import TrainingStatistics

__all__ = ["Budget"]


@dataclass(frozen=True)
class Budget:
    """One of the four budgets of a training.

    Attributes:
        kind: ``"epochs"``, ``"steps"``, ``"samples"`` or ``"time_limit_s"``.
        amount: How many of them.
    """

    kind: str
    amount: float

    @classmethod
    def of(cls, epochs: Any, steps: Any, samples: Any, time_limit_s: Any) -> Budget:
        """Return the one budget that was given.

        Raises:
            TrainingError: None was given, or several, or it is not accepted.
        """
        given = {"epochs": epochs, "steps": steps, "samples": samples, "time_limit_s": time_limit_s}
        given = {kind: amount for kind, amount in given.items() if amount is not None}
        if len(given) != 1:
            received = ", ".join(f"{kind}={shown(amount)}" for kind, amount in given.items()) or "none"
            raise TrainingError(
                f"A training was given the budgets: {received}; accepted is exactly one of epochs, steps, samples and "
                f"time_limit_s."
            )
        ((kind, amount),) = given.items()
        if kind != "time_limit_s":
            return cls(kind, check_count(kind, amount, least=0, error=TrainingError))
        is_number = isinstance(amount, (int, float, np.integer, np.floating)) and not isinstance(amount, bool)
        if not is_number or not 0 <= amount < math.inf:
            raise TrainingError(f"time_limit_s was given as {shown(amount)}; accepted are finite numbers from 0.")
        return cls(kind, float(amount))

    def epochs_planned(self, sampler: Sampler, ranks: int = 1) -> int | None:
        """Return the epochs that it is on a training set, the last one perhaps in part; ``None`` for seconds.

        Args:
            sampler: Serves the training set, on several ranks the part of one of them.
            ranks: Number of ranks, which all have as many samples.
        """
        if self.kind == "epochs":
            return int(self.amount)
        steps = self.steps_planned(sampler, ranks)
        return None if steps is None else -(-steps // len(sampler))

    def steps_planned(self, sampler: Sampler, ranks: int = 1) -> int | None:
        """Return the steps that it is on a training set; ``None`` for seconds. See :meth:`epochs_planned`."""
        if self.kind == "epochs":
            return int(self.amount) * len(sampler)
        if self.kind == "steps":
            return int(self.amount)
        if self.kind == "time_limit_s":
            return None
        whole, rest = divmod(int(self.amount), max(sampler.sample_count * ranks, 1))
        return whole * len(sampler) + min(-(-rest // (sampler.batch_size * ranks)), len(sampler))

    def is_spent(self, stats: TrainingStatistics, running_s: float = 0.0) -> bool:
        """Whether nothing is left of it.

        Args:
            stats: What was done so far.
            running_s: Seconds of the pass over the training set that is under way.
        """
        if self.kind == "epochs":
            return stats.epochs_done >= self.amount
        if self.kind == "steps":
            return stats.steps >= self.amount
        if self.kind == "samples":
            return stats.samples >= self.amount
        ended = math.fsum(record.training.duration_s for record in stats.epochs if record.training)
        return ended + running_s >= self.amount
