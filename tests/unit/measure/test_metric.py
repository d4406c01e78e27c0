from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deep500.core.event import Event
from deep500.measure.metric import METRICS, Direction, MetricKind, TestMetric

numbers = st.floats(allow_nan=True, allow_infinity=True)


class Counting(TestMetric):
    unit = "runs"
    direction = Direction.LOWER
    kind = MetricKind.COST

    def __init__(self, start: int = 0, *, step: int = 1) -> None:
        self.count = start
        self.step = step

    def begin(self, inputs: Any) -> None:
        self.count += self.step

    def measure(self, inputs: Any, outputs: Any, reference_outputs: Any = None) -> float:
        return float(self.count)


class Score(TestMetric):
    def measure(self, inputs: Any, outputs: Any, reference_outputs: Any = None) -> float:
        return 0.5


class Wrapping(Event, TestMetric):
    def __init__(self, metric: TestMetric) -> None:
        self.metric = metric

    def measure(self, inputs: Any, outputs: Any, reference_outputs: Any = None) -> float:
        return self.metric.measure(inputs, outputs)


@given(value=numbers, acceptable=numbers)
@pytest.mark.parametrize("metric", [Counting(), Score()], ids=["lower", "higher"])
def test_accepts_what_is_as_good_or_better_and_margin_agrees(
    metric: TestMetric, value: float, acceptable: float
) -> None:
    better = value <= acceptable if metric.direction is Direction.LOWER else value >= acceptable

    assert metric.accepts(value, acceptable) is better
    assert (metric.margin(value, acceptable) >= 0) is better
    assert math.isnan(metric.margin(value, acceptable)) is (math.isnan(value) or math.isnan(acceptable))


@pytest.mark.parametrize("metric", [Counting(), Score()])
def test_nan_is_never_accepted(metric: TestMetric) -> None:
    assert not metric.accepts(math.nan, 0.0)
    assert not metric.accepts(0.0, math.nan)
    assert not metric.accepts(math.nan, math.nan)
    assert not metric.accepts(math.nan, -math.inf)


def test_margin_is_in_the_metrics_unit() -> None:
    assert Score().margin(97.5, 95.0) == 2.5
    assert Counting().margin(97.5, 95.0) == -2.5
    assert Score().margin(math.inf, math.inf) == 0.0


def test_fresh_copies_share_nothing() -> None:
    used = Counting(3, step=2)
    used.begin(None)

    fresh = used.fresh()
    fresh.begin(None)

    assert (used.measure(None, None), fresh.measure(None, None)) == (5.0, 5.0)
    fresh.begin(None)
    assert used.measure(None, None) == 5.0
    assert fresh.fresh().measure(None, None) == 3.0


def test_fresh_copy_waits_for_no_device() -> None:
    metric = Counting()
    assert metric.synchronize is None

    metric.synchronize = lambda: None

    assert metric.fresh().synchronize is None
    assert Counting.synchronize is None


def test_fresh_reaches_metrics_among_the_arguments() -> None:
    inner = Counting()
    inner.begin(None)

    for wrapping in (Wrapping(inner), Wrapping(metric=inner)):
        assert wrapping.fresh().measure(None, None) == 0.0
    assert inner.count == 1


def test_defaults_and_summary() -> None:
    assert (Score().name, Score().unit, Score().reruns) == ("Score", "", 0)
    assert Score().requires_inputs
    assert Score().requires_outputs
    assert Score().measure_summary(None, None) == "0.5"
    assert Counting(4).measure_summary(None, None) == "4 runs"


def test_metric_without_measure_cannot_be_made() -> None:
    with pytest.raises(TypeError, match="measure"):
        TestMetric()  # type: ignore[abstract]


def test_pytest_does_not_collect_metrics() -> None:
    assert TestMetric.__test__ is False
    assert Score.__test__ is False


def test_every_registered_metric_states_itself() -> None:
    assert {
        "achieved_flops",
        "diff_heatmap",
        "energy",
        "flops",
        "l1_error",
        "l2_error",
        "max_error",
        "peak_memory",
        "relative_error",
        "throughput",
        "var_heatmap",
        "wallclock_time",
    } <= set(METRICS.names())
    for name in METRICS:
        metric = METRICS.get(name)
        assert issubclass(metric, TestMetric)
        assert isinstance(metric.direction, Direction)
        assert isinstance(metric.kind, MetricKind)
