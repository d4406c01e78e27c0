from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from deep500.core.errors import InvalidInputError, MeasurementError, UnknownNameError
from deep500.measure.metric import Direction, MetricKind, TestMetric
from deep500.measure.metric_test import MetricValue, measure_metrics
from deep500.measure.metrics.flops import FLOPs
from deep500.measure.metrics.l2_error import L2Error
from deep500.measure.metrics.max_error import MaxError
from deep500.measure.metrics.wallclock_time import WallclockTime


class Journal(TestMetric):
    """Writes down what is called, into a list that its copies share."""

    unit = "calls"
    direction = Direction.LOWER
    kind = MetricKind.COST

    def __init__(self, label: str, log: list[Any], reruns: int = 0, needs: bool = True) -> None:
        self.label, self.log, self.times, self.needs = label, log, reruns, needs

    @property
    def reruns(self) -> int:
        return self.times

    @property
    def requires_inputs(self) -> bool:
        return self.needs

    @property
    def requires_outputs(self) -> bool:
        return self.needs

    def begin(self, inputs: Any) -> None:
        self.log.append((self.label, "begin", inputs))

    def end(self, outputs: Any) -> None:
        self.log.append((self.label, "end", outputs))

    def measure(self, inputs: Any, outputs: Any, reference_outputs: Any = None) -> float:
        self.log.append((self.label, "measure", inputs, outputs, reference_outputs))
        return float(outputs)

    def measure_summary(self, inputs: Any, outputs: Any, reference_outputs: Any = None) -> str:
        return f"{self.label}: {outputs}"


class Failing(TestMetric):
    def __init__(self, where: str, error: Exception) -> None:
        self.where, self.error = where, error

    def _fail(self, where: str) -> None:
        if where == self.where:
            raise self.error

    def begin(self, inputs: Any) -> None:
        self._fail("begin")

    def end(self, outputs: Any) -> None:
        self._fail("end")

    def measure(self, inputs: Any, outputs: Any, reference_outputs: Any = None) -> Any:
        self._fail("measure")
        return "many" if self.where == "value" else 1.0

    def measure_summary(self, inputs: Any, outputs: Any, reference_outputs: Any = None) -> str:
        self._fail("summary")
        return "1"


class Runs:
    """A test whose outputs are the number of its runs."""

    def __init__(self, log: list[Any] | None = None) -> None:
        self.count, self.log = 0, log if log is not None else []

    def __call__(self) -> int:
        self.count += 1
        self.log.append(("run", self.count))
        return self.count


def test_order_of_calls_and_what_each_is_given() -> None:
    log: list[Any] = []
    metrics = [Journal("a", log), Journal("alone", log, reruns=2), Journal("b", log, needs=False)]

    found = measure_metrics(metrics, Runs(log), inputs="in", reference_outputs="ref")

    assert log == [
        ("a", "begin", "in"),
        ("b", "begin", None),
        ("run", 1),
        ("b", "end", None),
        ("a", "end", 1),
        ("alone", "begin", "in"),
        ("run", 2),
        ("alone", "end", 2),
        ("alone", "begin", "in"),
        ("run", 3),
        ("alone", "end", 3),
        ("a", "measure", "in", 1, "ref"),
        ("alone", "measure", "in", 3, "ref"),
        ("b", "measure", "in", 1, "ref"),
    ]
    assert [(value.name, value.value, value.summary) for value in found] == [
        ("Journal", 1.0, "a: 1"),
        ("Journal", 3.0, "alone: 3"),
        ("Journal", 1.0, "b: 1"),
    ]
    assert (found[0].unit, found[0].kind, found[0].direction) == ("calls", MetricKind.COST, Direction.LOWER)


def test_test_is_run_only_for_metrics() -> None:
    runs = Runs()

    assert measure_metrics([], runs) == []
    assert runs.count == 0
    measure_metrics([WallclockTime(3, 1)], runs)
    assert runs.count == 3
    measure_metrics([FLOPs(1), FLOPs(2)], runs)
    assert runs.count == 4


def test_callers_metrics_stay_as_they_are() -> None:
    mine = WallclockTime(4, 1)

    first, second = measure_metrics([mine, mine], Runs())
    again = measure_metrics([mine], Runs())[0]

    assert mine.samples == []
    assert [len(value.metric.samples) for value in (first, second, again)] == [4, 4, 4]
    assert len({id(value.metric) for value in (first, second, again)} | {id(mine)}) == 4


def test_names_classes_and_instances_are_accepted() -> None:
    found = measure_metrics(
        ["l2_error", MaxError, L2Error()], lambda: {"y": np.ones(4)}, reference_outputs={"y": np.zeros(4)}
    )

    assert [(value.name, value.value) for value in found] == [("L2Error", 2.0), ("MaxError", 1.0), ("L2Error", 2.0)]
    assert all(isinstance(value, MetricValue) for value in found)


def test_metrics_are_told_how_to_wait_for_the_device() -> None:
    waits: list[int] = []
    runs = Runs()

    found = measure_metrics(["wallclock_time", FLOPs(1)], runs, synchronize=lambda: waits.append(runs.count))

    assert waits[:3] == [1, 2, 2]
    assert len(waits) == 200
    assert all(value.metric.synchronize is not None for value in found)
    assert measure_metrics([FLOPs(1)], runs)[0].metric.synchronize is None


@pytest.mark.parametrize("where", ["begin", "end", "measure", "summary"])
def test_metric_that_fails_is_named(where: str) -> None:
    cause = ZeroDivisionError("by zero")

    with pytest.raises(MeasurementError, match="The metric Failing failed: ZeroDivisionError: by zero") as caught:
        measure_metrics([FLOPs(1), Failing(where, cause)], Runs())
    assert caught.value.__cause__ is cause


@pytest.mark.parametrize("where", ["begin", "end", "measure", "summary"])
def test_what_deep500_says_itself_is_left_as_it_is(where: str) -> None:
    cause = InvalidInputError("not so")

    with pytest.raises(InvalidInputError) as caught:
        measure_metrics([Failing(where, cause)], Runs())
    assert caught.value is cause


@pytest.mark.parametrize("error", [ValueError("the test"), KeyboardInterrupt()])
def test_error_of_the_test_is_not_the_metrics(error: BaseException) -> None:
    def run() -> None:
        raise error

    with pytest.raises(type(error)) as caught:
        measure_metrics([FLOPs(1)], run)
    assert caught.value is error


def test_interruption_within_a_metric_passes() -> None:
    with pytest.raises(KeyboardInterrupt):
        measure_metrics([Failing("begin", KeyboardInterrupt())], Runs())  # type: ignore[arg-type]


def test_value_that_is_no_number_is_refused() -> None:
    with pytest.raises(MeasurementError, match="Failing measured 'many'; accepted is a number"):
        measure_metrics([Failing("value", ValueError())], Runs())


def test_nan_is_a_value() -> None:
    [found] = measure_metrics([L2Error()], lambda: [math.nan], reference_outputs=[0.0])

    assert math.isnan(found.value)
    assert found.summary == "nan"


@pytest.mark.parametrize(
    ("metrics", "message"),
    [
        ("l2_error", "accepted is a list"),
        (L2Error(), "accepted is a list"),
        (L2Error, "accepted is a list"),
        (None, "accepted is a list"),
        ([3], "3 is not a metric; accepted are metrics, their classes, and names"),
        ([int], "is not a metric"),
        ([Journal], "The metric Journal failed: TypeError"),
        ([Journal("a", [], reruns=-1)], "asks for -1 reruns"),
        ([Journal("a", [], reruns=1.5)], "asks for 1.5 reruns"),
    ],
)
def test_metrics_that_are_none(metrics: Any, message: str) -> None:
    runs = Runs()

    with pytest.raises(MeasurementError, match=message):
        measure_metrics(metrics, runs)
    assert runs.count == 0


def test_unknown_name_is_said() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'l2_error'"):
        measure_metrics(["l2_eror"], Runs())
    with pytest.raises(MeasurementError, match="needs reference outputs"):
        measure_metrics(["l2_error"], Runs())
