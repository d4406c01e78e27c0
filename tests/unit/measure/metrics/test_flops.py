from __future__ import annotations

import pytest

from deep500.core.errors import InvalidInputError
from deep500.measure.metric import Direction, MetricKind
from deep500.measure.metrics.flops import FLOPs
from deep500.measure.workload import Work
from deep500.networks.creation import create_model


def test_value_is_the_count_however_often_it_is_asked() -> None:
    metric = FLOPs(2 * 128**3)
    for _ in range(3):
        metric.begin(None)
        metric.end(None)

    assert [metric.measure(), metric.measure(None, [1.0], [2.0]), metric.fresh().measure()] == [2.0 * 128**3] * 3
    assert metric.measure_summary() == "4.194 Mflop (counted)"


def test_network_and_work_count_themselves() -> None:
    network = create_model("lenet")

    assert FLOPs(network).measure() == network.flops() > 0
    assert FLOPs(Work(flops=7)).measure() == 7.0


def test_what_it_is() -> None:
    metric = FLOPs(0)

    assert (metric.unit, metric.direction, metric.kind) == ("flop", Direction.LOWER, MetricKind.COST)
    assert (metric.reruns, metric.requires_inputs, metric.requires_outputs) == (0, False, False)
    assert metric.measure_summary() == "0 flop (counted)"
    with pytest.raises(InvalidInputError, match="operations were given as None"):
        FLOPs()
