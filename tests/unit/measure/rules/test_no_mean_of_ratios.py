from __future__ import annotations

import pytest

from deep500.measure.metric import MetricKind
from tests.unit.measure.rules.support import changed, comparison, measurement, metric, recipe, system, verdict_of


def ratios(**parts):
    return measurement(system(metrics=(metric(name="Speedup", unit="", kind=MetricKind.RATIO, **parts),)))


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d.update(mean_ratio=1.7),
        lambda d: d.update(speedup={"mean": 1.7}),
        lambda d: d.update(summary={"average speedup": 1.7}),
        lambda d: d.update(ratios={"geomean": {"value": 1.7}, "mean": 1.8}),
        lambda d: d["rows"][0]["ratio"].update(mean=1.7),
    ],
)
def test_a_mean_of_ratios_is_found_wherever_it_stands(change):
    verdict, reason = verdict_of("no_mean_of_ratios", changed(comparison(2.0, 1.5), change))

    assert verdict == "broken"
    assert "depends on the base" in reason


def test_a_mean_of_a_ratio_metric_is_found():
    document = changed(ratios(), lambda d: d["systems"][0]["metrics"][0].update(mean=1.1))

    assert verdict_of("no_mean_of_ratios", document)[0] == "broken"
    assert verdict_of("means", document)[0] == "not applicable"  # one mistake, one rule


def test_samples_that_are_means_of_ratios_are_found():
    assert verdict_of("no_mean_of_ratios", ratios())[0] == "obeyed"
    assert verdict_of("no_mean_of_ratios", ratios(calls_per_sample=10))[0] == "broken"


def test_a_geometric_mean_that_says_so_is_let_pass_where_the_costs_are_lost():
    lost = changed(recipe(), lambda d: d.update(speedups={"geometric_mean": 1.7}))
    kept = changed(measurement(), lambda d: d.update(speedups={"geometric_mean": 1.7}))

    assert verdict_of("no_mean_of_ratios", lost)[0] == "obeyed"
    assert verdict_of("no_mean_of_ratios", kept)[0] == "broken"
