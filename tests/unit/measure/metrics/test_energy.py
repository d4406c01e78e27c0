from __future__ import annotations

import math
from typing import Any

import pytest

from deep500.core.errors import InvalidInputError
from deep500.measure.metric import Direction, MetricKind
from deep500.measure.metric_test import measure_metrics
from deep500.measure.metrics import energy
from deep500.measure.metrics._energy_counters import UnavailableError
from deep500.measure.metrics.energy import Energy


class Given:
    """Counters whose differences are given."""

    method = "given"

    def __init__(self, *runs: dict[str, float] | Exception) -> None:
        self.runs, self.calls = list(runs), []  # type: ignore[var-annotated]

    def start(self) -> None:
        self.calls.append("start")

    def stop(self) -> dict[str, float]:
        self.calls.append("stop")
        found = self.runs.pop(0)
        if isinstance(found, Exception):
            raise found
        return found


def measured(monkeypatch: pytest.MonkeyPatch, *runs: dict[str, float] | Exception) -> Energy:
    counters = Given(*runs)
    monkeypatch.setattr(energy, "open_energy_counters", lambda: counters)
    metric = Energy(len(runs))
    for _ in runs:
        metric.begin()
        metric.end()
    return metric


def test_value_is_the_mean_of_all_that_was_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    metric = measured(
        monkeypatch,
        {"package-0": 1.0, "gpu 0": 10.0},
        {"package-0": 3.0, "gpu 0": 0.0},
        {"package-0": 2.0, "gpu 0": 5.0},
    )

    assert metric.samples == [11.0, 3.0, 7.0]
    assert metric.measure() == 7.0
    assert metric.domains == {"package-0": 2.0, "gpu 0": 5.0}
    assert metric.measure_summary() == "7 J (package-0 2 J, gpu 0 5 J; given, whole devices, mean of 3 runs)"
    assert (metric.method, metric.unavailable) == ("given", "")
    assert metric.fresh().samples == []


def test_small_energies_have_a_unit_that_suits(monkeypatch: pytest.MonkeyPatch) -> None:
    metric = measured(monkeypatch, {"package-0": 0.0025})

    assert metric.measure_summary() == "2.5 mJ (package-0 2.5 mJ; given, whole devices)"


def test_what_cannot_be_read_is_unavailable_and_no_number(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> Any:
        raise UnavailableError("no counter here")

    monkeypatch.setattr(energy, "open_energy_counters", refuse)
    [found] = measure_metrics(["energy"], lambda: 1)

    assert math.isnan(found.value)
    assert found.summary == "unavailable: no counter here"
    assert not found.metric.accepts(found.value, 1e9)


def test_one_run_that_could_not_be_read_makes_all_unavailable(monkeypatch: pytest.MonkeyPatch) -> None:
    metric = measured(monkeypatch, {"package-0": 1.0}, UnavailableError("gone"), {"package-0": 1.0})

    assert math.isnan(metric.measure())
    assert (metric.measure_summary(), metric.method) == ("unavailable: gone", "")


def test_counter_that_did_not_move_is_no_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    metric = measured(monkeypatch, {"package-0": 1.0, "gpu 0": 0.0}, {"package-0": 1.0, "gpu 0": 0.0})

    assert math.isnan(metric.measure())
    assert metric.measure_summary() == ("unavailable: the counter of gpu 0 did not move in 2 runs; let one run do more")


def test_device_has_finished_before_the_counters_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    counters = Given({"gpu 0": 1.0})
    monkeypatch.setattr(energy, "open_energy_counters", lambda: counters)
    metric = Energy(0)
    metric.synchronize = lambda: counters.calls.append("wait")
    metric.begin()
    metric.end()

    assert counters.calls == ["wait", "start", "wait", "stop"]


def test_what_it_is_and_wrong_use() -> None:
    metric = Energy()

    assert (metric.unit, metric.direction, metric.kind) == ("J", Direction.LOWER, MetricKind.COST)
    assert (metric.reruns, metric.requires_inputs, metric.requires_outputs) == (10, False, False)
    with pytest.raises(InvalidInputError, match="seen no run"):
        metric.measure()
    with pytest.raises(InvalidInputError, match="not told the begin"):
        metric.end()
    with pytest.raises(InvalidInputError, match="reruns"):
        Energy(-1)
