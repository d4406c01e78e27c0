from __future__ import annotations

import numpy as np
import pytest

from deep500.measure.sampling.builds import Builds
from deep500.measure.workload import Workload


class Noted(Workload):
    """Notes when it is built and closed."""

    def __init__(self, events: list[str], name: str) -> None:
        self.name = name
        self._events = events
        events.append(f"build {name}")

    def run(self) -> None:
        raise AssertionError

    def close(self) -> None:
        self._events.append(f"close {self.name}")


def builds(events: list[str], names: str = "ab", seed: int = 0) -> Builds:
    openers = [lambda name=name: Noted(events, name) for name in names]
    return Builds(openers, np.random.default_rng(seed))


def test_workloads_come_in_their_order_whatever_the_order_of_building() -> None:
    events: list[str] = []
    made = builds(events)
    orders = set()
    for _ in range(20):
        events.clear()
        assert [workload.name for workload in made.build()] == ["a", "b"]
        orders.add(tuple(event for event in events if event.startswith("build")))

    assert orders == {("build a", "build b"), ("build b", "build a")}
    assert made.setup_s > 0


def test_those_before_are_closed_before_the_next_are_built() -> None:
    events: list[str] = []
    made = builds(events)
    made.build()
    events.clear()
    made.build()

    assert sorted(events[:2]) == ["close a", "close b"]
    assert sorted(events[2:]) == ["build a", "build b"]


def test_all_are_closed_once_whatever_happens() -> None:
    events: list[str] = []
    made = builds(events)

    def use() -> None:
        with made.closing():
            made.build()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        use()
    made.close()
    assert sorted(event for event in events if event.startswith("close")) == ["close a", "close b"]


def test_those_that_were_built_are_closed_when_another_cannot_be() -> None:
    events: list[str] = []

    def fail() -> Workload:
        raise ValueError("no")

    made = Builds([lambda: Noted(events, "a"), fail], np.random.default_rng(1))
    with pytest.raises(ValueError, match="no"), made.closing():
        made.build()

    assert events in ([], ["build a", "close a"])
