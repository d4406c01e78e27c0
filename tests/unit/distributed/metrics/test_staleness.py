"""The histogram of staleness."""

from __future__ import annotations

import pytest

from deep500.core.errors import MeasurementError
from deep500.distributed.metrics.staleness import Staleness


def test_histogram_mean_and_largest() -> None:
    staleness = Staleness()
    for read, applied in [(0, 0), (0, 1), (0, 2), (3, 5), (4, 4)]:
        staleness.record(read, applied)

    assert dict(staleness.histogram) == {0: 2, 1: 1, 2: 2}
    assert staleness.largest == 2
    assert staleness.measure(None, None) == 1.0
    assert dict(staleness.fresh().histogram) == {}


def test_histograms_of_ranks_add_up() -> None:
    staleness = Staleness()
    staleness.add({0: 3, 2: 1})
    staleness.add([(2, 4)])

    assert dict(staleness.histogram) == {0: 3, 2: 5}


def test_refusals() -> None:
    with pytest.raises(MeasurementError, match="no gradient"):
        Staleness().measure(None, None)
    with pytest.raises(MeasurementError, match="older"):
        Staleness().record(2, 1)
    with pytest.raises(MeasurementError, match="read_at"):
        Staleness().record(-1, 1)
