"""Running a test for its metrics: what the test functions of every level do with the metrics that they are given."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from deep500.core.errors import Deep500Error, MeasurementError
from deep500.core.texts import message_of, shown
from deep500.measure.metric import METRICS, Direction, MetricKind, TestMetric

__all__ = ["MetricValue", "measure_metrics", "metric_value"]

_ACCEPTED = "accepted are metrics, their classes, and names such as 'wallclock_time' (see: deep500 list metrics)"


@dataclass(frozen=True)
class MetricValue:
    """What a metric measured.

    Attributes:
        name: The metric's name.
        value: The value; NaN where it could not be measured, and the summary says why.
        unit: Its unit; empty for a pure number.
        kind: What it is.
        direction: Which values are better.
        summary: The value with its unit, and what belongs to it, for people.
        metric: The copy of the metric that measured it, with its samples.
    """

    name: str
    value: float
    unit: str
    kind: MetricKind
    direction: Direction
    summary: str
    metric: TestMetric


def measure_metrics(
    metrics: Iterable[TestMetric | type[TestMetric] | str],
    run: Callable[[], Any],
    *,
    inputs: Any = None,
    reference_outputs: Any = None,
    synchronize: Callable[[], None] | None = None,
) -> list[MetricValue]:
    """Run a test for its metrics.

    The test is run once for all metrics without reruns, which begin before it and end after it. Then it is run
    ``reruns`` times for each other metric, with that metric alone, so that the others do not disturb it. A metric
    measures from the outputs of the last run that was for it. All work on fresh copies: the caller's metrics stay as
    they are, and a metric that is named twice is measured twice.

    Args:
        metrics: Metrics, their classes, or their names.
        run: Runs the test once and returns its outputs.
        inputs: The test's inputs, for the metrics that need them.
        reference_outputs: What the test should return, where it is known.
        synchronize: Waits until the device has finished; timings call it before they read the clock.

    Returns:
        What each metric measured, in their order.

    Raises:
        MeasurementError: A metric failed, and its error is the cause; or something that is given is no metric.
        UnknownNameError: There is no metric of a name.
        Deep500Error: A metric refused what it was given.

    Example:
        >>> from deep500.measure.metrics.l2_error import L2Error
        >>> [found] = measure_metrics([L2Error()], lambda: [3.0, 4.0], reference_outputs=[0.0, 0.0])
        >>> found.name, found.value, found.direction.value
        ('L2Error', 5.0, 'lower')
    """
    if isinstance(metrics, (str, type, TestMetric)) or not isinstance(metrics, Iterable):
        raise MeasurementError(f"The metrics were given as {shown(metrics)}; accepted is a list of them.")
    copies = [_fresh(metric) for metric in metrics]
    for copy in copies:
        copy.synchronize = synchronize
    alone = [copy for copy in copies if _reruns(copy)]
    together = [copy for copy in copies if not _reruns(copy)]
    outputs = {id(copy): None for copy in copies}
    if together:
        outputs.update(dict.fromkeys(map(id, together), _run_once(together, run, inputs)))
    for copy in alone:
        for _ in range(_reruns(copy)):
            outputs[id(copy)] = _run_once([copy], run, inputs)
    return [metric_value(copy, inputs, outputs[id(copy)], reference_outputs) for copy in copies]


def _run_once(metrics: Sequence[TestMetric], run: Callable[[], Any], inputs: Any) -> Any:
    """Run the test between the metrics' begin and end; an error of the test's own is not the metrics'."""
    for metric in metrics:
        with _blamed_on(metric.name):
            metric.begin(inputs if metric.requires_inputs else None)
    outputs = run()
    for metric in reversed(metrics):
        with _blamed_on(metric.name):
            metric.end(outputs if metric.requires_outputs else None)
    return outputs


def metric_value(metric: TestMetric, inputs: Any, outputs: Any, reference_outputs: Any = None) -> MetricValue:
    """Return what a metric measured, after all runs that were for it; see :meth:`TestMetric.measure`.

    Raises:
        MeasurementError: It failed, or measured no number.
        Deep500Error: It refused what it was given.
    """
    with _blamed_on(metric.name):
        measured = metric.measure(inputs, outputs, reference_outputs)
        summary = metric.measure_summary(inputs, outputs, reference_outputs)
    try:
        value = float(measured)
    except (TypeError, ValueError, OverflowError) as error:
        raise MeasurementError(f"The metric {metric.name} measured {shown(measured)}; accepted is a number.") from error
    return MetricValue(metric.name, value, metric.unit, metric.kind, metric.direction, summary, metric)


def _fresh(metric: Any) -> TestMetric:
    given = METRICS.get(metric) if isinstance(metric, str) else metric
    is_class = isinstance(given, type) and issubclass(given, TestMetric)
    if not is_class and not isinstance(given, TestMetric):
        raise MeasurementError(f"{shown(metric)} is not a metric; {_ACCEPTED}.")
    with _blamed_on((given if is_class else type(given)).__name__):
        copy: TestMetric = given() if is_class else given.fresh()
    return copy


def _reruns(metric: TestMetric) -> int:
    with _blamed_on(metric.name):
        reruns = metric.reruns
    if isinstance(reruns, bool) or not isinstance(reruns, int) or reruns < 0:
        raise MeasurementError(f"The metric {metric.name} asks for {shown(reruns)} reruns; accepted: integers from 0.")
    return reruns


@contextmanager
def _blamed_on(name: str) -> Iterator[None]:
    """Turn a metric's foreign error into one that names the metric; what Deep500 says itself is left as it is."""
    try:
        yield
    except Deep500Error:
        raise
    except Exception as error:
        raise MeasurementError(f"The metric {name} failed: {type(error).__name__}: {message_of(error)}") from error
