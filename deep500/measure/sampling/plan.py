"""How samples are taken within one process: warm-up, batches of short runs, and when to stop."""

from __future__ import annotations

import dataclasses
import functools
import math
from dataclasses import dataclass
from typing import Any

from deep500.core.errors import MeasurementError
from deep500.measure.statistics.stopping import SequentialStop

__all__ = ["SamplingPlan"]

#: Variables by which the libraries are told how many threads to use; read when a process starts.
THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "TF_NUM_INTRAOP_THREADS",
)


@dataclass(frozen=True)
class SamplingPlan:
    """Settings of the sampler; the defaults suit runs from nanoseconds to seconds.

    Attributes:
        relative_half_width: Sampling stops once half the interval of the median is at most this share of the median.
        ratio_half_width: Of several systems that are measured round by round, also once half the interval of the
            median ratio to the first is at most this share.
        minimum_samples: Number of samples at the first look.
        growth: Factor from one look to the next.
        maximum_samples: Number of samples at which sampling stops, converged or not.
        minimum_time_s: Sampling goes on for at least this long.
        time_limit_s: Sampling stops after this long, converged or not; a run that has begun is finished.
        confidence: Confidence of the intervals.
        warm_up: Number of samples that do not count, or ``None`` to find out: until the times keep one level.
        warm_up_time_s: Longest time that is given to finding out.
        calls_per_sample: Number of runs to a sample, or ``None`` to find out: as many as make what reading the clock
            costs small, and all samples that are allowed fill the minimum time.
        builds: How often the workloads are built within the minimum time, each time elsewhere in memory, and as often
            again after it; ``None`` for up to 32 times where building costs little, else once. Fresh processes only.
        timer_share: Largest share of a sample that reading the clock may cost.
        threads: Number of threads that libraries are told to use; ``None`` leaves it to them. Fresh processes only.

    Raises:
        MeasurementError: The settings contradict each other.
    """

    relative_half_width: float = 0.05
    ratio_half_width: float = 0.01
    minimum_samples: int = 10
    growth: float = 1.25
    maximum_samples: int = 10_000
    minimum_time_s: float = 0.5
    time_limit_s: float = 10.0
    confidence: float = 0.95
    warm_up: int | None = None
    warm_up_time_s: float = 2.0
    calls_per_sample: int | None = None
    builds: int | None = None
    timer_share: float = 0.05
    threads: int | None = None

    def __post_init__(self) -> None:
        """Check the settings."""
        for name in ("minimum_samples", "maximum_samples", "warm_up", "calls_per_sample", "builds", "threads"):
            value = getattr(self, name)
            optional = name not in ("minimum_samples", "maximum_samples")
            least = 0 if name == "warm_up" else 1
            is_whole = isinstance(value, int) and not isinstance(value, bool) and value >= least
            if not is_whole and not (optional and value is None):
                also = " or None" if optional else ""
                raise MeasurementError(f"{name} was given as {value!r}; accepted are whole numbers from {least}{also}.")
        times = ("minimum_time_s", "time_limit_s", "warm_up_time_s")
        for name in (*times, "timer_share", "ratio_half_width", "relative_half_width", "growth", "confidence"):
            value = getattr(self, name)
            is_number = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
            if not is_number or value < 0 or (value == 0 and name not in times):
                accepted = "numbers from 0" if name in times else "positive numbers"
                raise MeasurementError(f"{name} was given as {value!r}; accepted are {accepted}.")
        if self.minimum_time_s > self.time_limit_s:
            raise MeasurementError(
                f"minimum_time_s, {self.minimum_time_s:g}, is more than time_limit_s, {self.time_limit_s:g}."
            )
        _ = self.stop  # checks the rest

    @functools.cached_property
    def stop(self) -> SequentialStop:
        """The stopping rule of a system by itself."""
        return SequentialStop(
            self.relative_half_width, self.minimum_samples, self.growth, self.maximum_samples, self.confidence
        )

    @functools.cached_property
    def ratio_stop(self) -> SequentialStop:
        """The stopping rule of the ratio of two systems."""
        return dataclasses.replace(self.stop, relative_half_width=self.ratio_half_width)

    @property
    def environment(self) -> dict[str, str]:
        """Variables that a fresh process is started with."""
        return {} if self.threads is None else dict.fromkeys(THREAD_VARIABLES, str(self.threads))

    def to_dict(self) -> dict[str, Any]:
        """Return the settings for JSON."""
        return dataclasses.asdict(self)
