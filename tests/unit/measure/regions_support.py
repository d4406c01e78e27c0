"""A clock that stands still until it is told to go on, and regions that cost what a test says."""

from __future__ import annotations

import pytest

from deep500.measure import clock, regions
from deep500.measure.region_breakdown import RegionBreakdown, RegionCost


class FakeClock:
    """Shows whole seconds."""

    def __init__(self) -> None:
        self.now_s = 1000

    def __call__(self) -> int:
        return self.now_s * 10**9

    def go_on(self, seconds: int) -> None:
        self.now_s += seconds


@pytest.fixture
def fake_clock(monkeypatch: pytest.MonkeyPatch) -> FakeClock:
    fake = FakeClock()
    monkeypatch.setattr(clock, "now_ns", fake)
    monkeypatch.setattr(regions, "calibrate_regions", lambda: RegionCost(inside_s=0.25, whole_s=0.5))
    return fake


def times(breakdown: RegionBreakdown) -> dict[str, tuple[int, float, float]]:
    """Return calls, total and own time by path."""
    return {">".join(row.path): (row.calls, row.total_s, row.self_s) for row in breakdown.rows()}
