"""What the metrics have in common that ask for runs of their own."""

from __future__ import annotations

from deep500.core.counts import check_count
from deep500.measure.metric import TestMetric

__all__ = ["RerunMetric"]


class RerunMetric(TestMetric):
    """Looks at how a test runs, not at what goes in or comes out, in runs that no other metric disturbs."""

    def __init__(self, reruns: int) -> None:
        """Set the number of runs.

        Args:
            reruns: Number of runs of the test for this metric; 0 measures the test's own run.

        Raises:
            InvalidInputError: It is no whole number, or negative.
        """
        self._reruns = check_count("reruns", reruns, least=0)

    @property
    def reruns(self) -> int:
        """Number of runs of the test for this metric."""
        return self._reruns

    @property
    def requires_inputs(self) -> bool:
        """False: they are not looked at."""
        return False

    @property
    def requires_outputs(self) -> bool:
        """False: they are not looked at."""
        return False
