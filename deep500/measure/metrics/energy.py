"""Energy."""

from __future__ import annotations

import math
from typing import Any

from deep500.core.errors import InvalidInputError
from deep500.core.quantities import scaled
from deep500.core.texts import message_of
from deep500.measure.metric import Direction, MetricKind
from deep500.measure.metrics._energy_counters import EnergyCounters, UnavailableError, open_energy_counters
from deep500.measure.metrics._reruns import RerunMetric

__all__ = ["Energy"]


class Energy(RerunMetric):
    """Joules that the machine's counters count during a run, the mean of several runs.

    GPUs are read through the library Zeus, where it is installed (``pip install zeus``); processors and their memory
    through Linux (RAPL), where this process may read that, else through Zeus and its daemon. The counters are those of
    whole processors and GPUs, whoever uses them, and :attr:`domains` tells which: values of other domains are not to
    be compared. A counter steps every millisecond or, on a GPU, every tenth of a second; runs that are shorter are
    right on the average only.

    Where nothing can be read the value is NaN and the summary says "unavailable" with the reason. It is never an
    estimate.

    Attributes:
        method: What is read: ``"RAPL"``, ``"Zeus"`` or both; empty before the first run, and where nothing is.
        unavailable: Why there is no value; empty where there is one.
    """

    unit = "J"
    direction = Direction.LOWER
    kind = MetricKind.COST

    def __init__(self, reruns: int = 10) -> None:
        """Set how often the test is measured.

        Args:
            reruns: Number of runs of the test for this metric; 0 measures the test's own run.

        Raises:
            InvalidInputError: It is no whole number, or negative.
        """
        super().__init__(reruns)
        self._counters: EnergyCounters | None = None
        self._began = False
        self._runs: list[dict[str, float]] = []
        self.method = ""
        self.unavailable = ""

    @property
    def samples(self) -> list[float]:
        """The joules of each run, in order."""
        return [math.fsum(run.values()) for run in self._runs]

    @property
    def domains(self) -> dict[str, float]:
        """The mean joules of a run by what took them, such as ``"package-0"`` or ``"gpu 0"``."""
        names = self._runs[0] if self._runs else {}
        return {name: math.fsum(run[name] for run in self._runs) / len(self._runs) for name in names}

    def begin(self, inputs: Any = None) -> None:
        """Wait for the device and read the counters. A begin without an end, because the run failed, is forgotten."""
        if self._counters is None and not self.unavailable:
            self._open()
        if self.synchronize is not None:
            self.synchronize()
        self._began = True
        if self._counters is not None:
            try:
                self._counters.start()
            except UnavailableError as error:
                self._give_up(message_of(error))

    def end(self, outputs: Any = None) -> None:
        """Wait for the device, read the counters and keep the difference.

        Raises:
            InvalidInputError: There was no begin.
        """
        if self.synchronize is not None:
            self.synchronize()
        if not self._began:
            raise InvalidInputError("Energy was told the end of a run that it was not told the begin of.")
        self._began = False
        if self._counters is not None:
            try:
                self._runs.append(self._counters.stop())
            except UnavailableError as error:
                self._give_up(message_of(error))

    def measure(self, inputs: Any = None, outputs: Any = None, reference_outputs: Any = None) -> float:
        """Return the mean of the runs in joules, NaN where it is unavailable.

        Raises:
            InvalidInputError: Nothing was run.
        """
        if self._reason():
            return math.nan
        if not self._runs:
            raise InvalidInputError("Energy has seen no run yet. Call begin and end around what is measured.")
        return math.fsum(self.samples) / len(self._runs)

    def measure_summary(self, inputs: Any = None, outputs: Any = None, reference_outputs: Any = None) -> str:
        """Return the mean with what took it and how it was read, or ``"unavailable: "`` and the reason."""
        energy = self.measure()
        reason = self._reason()
        if reason:
            return f"unavailable: {reason}"
        parts = ", ".join(f"{name} {scaled(self.unit, joules)[0]}" for name, joules in self.domains.items())
        runs = f", mean of {len(self._runs)} runs" if len(self._runs) > 1 else ""
        return f"{scaled(self.unit, energy)[0]} ({parts}; {self.method}, whole devices{runs})"

    def _open(self) -> None:
        try:
            self._counters = open_energy_counters()
            self.method = self._counters.method
        except UnavailableError as error:
            self._give_up(message_of(error))

    def _give_up(self, reason: str) -> None:
        self.unavailable, self._counters, self.method = reason, None, ""

    def _reason(self) -> str:
        """Return why there is no value."""
        still = [name for name, joules in self.domains.items() if joules == 0]
        if still and not self.unavailable:
            return f"the counter of {' and '.join(still)} did not move in {len(self._runs)} runs; let one run do more"
        return self.unavailable
