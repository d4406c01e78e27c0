"""Achieved floating-point rate."""

from __future__ import annotations

from typing import Any

from deep500.core.errors import InvalidInputError, MeasurementError
from deep500.core.quantities import scaled
from deep500.core.texts import shown
from deep500.measure.metric import Direction, MetricKind
from deep500.measure.metrics._timing import TimedMetric
from deep500.measure.metrics._work import count_flops
from deep500.measure.peak import Peak
from deep500.measure.workload import Work

__all__ = ["AchievedFlops"]


class AchievedFlops(TimedMetric):
    r"""Floating-point operations a second: the counted operations of a run over the median time of the runs.

    Against a peak that was measured on this machine (:func:`deep500.measure.peak.measured_peak`), it also tells which
    share of it that is. The peak has to be that of the work's own dtype: a share of another precision's peak fools
    its reader.

    Source: T. Hoefler, R. Belli, "Scientific Benchmarking of Parallel Computing Systems", SC15, rule 11.

    Attributes:
        flops: Operations of one run.
        peak: The peak it is held against; ``None`` for none.
    """

    unit = "flop/s"
    direction = Direction.HIGHER
    kind = MetricKind.RATE

    def __init__(self, work: Any = None, *, peak: Peak | None = None, reruns: int = 100, avg_over: int = 10) -> None:
        """Count the operations.

        Args:
            work: The operations of one run as a number, or what counts them, as :class:`FLOPs` takes it.
            peak: What this machine reached.
            reruns: Number of runs of the test for this metric; 0 times the test's own run.
            avg_over: Number of consecutive runs whose mean time is one sample.

        Raises:
            InvalidInputError: The operations are not known, or another argument is not accepted.
            MeasurementError: The peak is of another dtype than the work.
        """
        super().__init__(reruns, avg_over)
        self.flops = count_flops(work)
        if peak is not None and not isinstance(peak, Peak):
            raise InvalidInputError(f"The peak was given as {shown(peak)}; accepted is what measured_peak() returns.")
        if peak is not None and isinstance(work, Work):
            peak.check_dtype(work)
        self.peak = peak

    def measure(self, inputs: Any = None, outputs: Any = None, reference_outputs: Any = None) -> float:
        """Return the operations a second at the median time.

        Raises:
            InvalidInputError: Nothing was timed.
            MeasurementError: The clock did not move during the runs.
        """
        return self._rate(self.median_s())

    def share_of_peak(self) -> float | None:
        """Return the value over the peak, 0 to 1, more where the peak was measured worse; ``None`` without a peak.

        Raises:
            InvalidInputError: Nothing was timed.
            MeasurementError: The clock did not move during the runs.
        """
        return None if self.peak is None else self.measure() / self.peak.flops_per_s

    def measure_summary(self, inputs: Any = None, outputs: Any = None, reference_outputs: Any = None) -> str:
        """Return the rate, what it was made from, and its share of the peak with the peak itself."""
        rate = self.measure()
        interval = self.median_interval()
        if interval is not None and interval.low > 0:
            text, low, high = scaled(self.unit, rate, self._rate(interval.high), self._rate(interval.low))
            text = f"{text} [{low}, {high}]"
            how = f", in-process {interval.confidence_requested * 100:.6g} % interval"
        else:
            (text,), how = scaled(self.unit, rate), ""
        time, work = scaled("s", self.median_s())[0], scaled("flop", self.flops)[0]
        parts = [f"{work} in {time}, median of {self.described_samples()}{how}"]
        if self.peak is not None:
            peak = scaled(self.unit, self.peak.flops_per_s)[0]
            share = f"{rate / self.peak.flops_per_s * 100:.3g} %"
            parts.append(f"{share} of the measured {self.peak.dtype} peak of {peak}")
        return f"{text} ({'; '.join(parts)})"

    def _rate(self, time_s: float) -> float:
        if time_s <= 0:
            raise MeasurementError(
                "The clock did not move during the runs, so that they have no rate; make them longer."
            )
        return self.flops / time_s
