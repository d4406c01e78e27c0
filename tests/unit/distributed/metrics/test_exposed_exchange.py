"""The exposed exchange of the rank that waits longest."""

from __future__ import annotations

import pytest

from deep500.core.errors import MeasurementError
from deep500.distributed.metrics.exposed_exchange import ExposedExchange
from deep500.distributed.time_split import StepTimes, TimeSplit


def test_largest_of_the_medians() -> None:
    split = TimeSplit()
    metric = ExposedExchange(split)
    for step in range(3):
        split.record([StepTimes(1, 1, 0.1 * step), StepTimes(1, 1, 0.3)])

    assert metric.measure(None, None) == 0.3


def test_nothing_recorded() -> None:
    with pytest.raises(MeasurementError, match="no step"):
        ExposedExchange().measure(None, None)
