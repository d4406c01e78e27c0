from __future__ import annotations

import numpy as np
import pytest

from deep500.measure.metric import MetricKind
from tests.unit.measure.rules.support import changed, comparison, measurement, metric, recipe, system, verdict_of

COSTS = metric(6, 10)
RATES = metric(6, 10, name="Throughput", unit="1/s", kind=MetricKind.RATE, median_s=100.0)
ROWS = np.array(RATES.rows)


def harmonic(values):
    return len(values) / np.sum(1 / values)


def with_mean(samples, **reported):
    return changed(
        measurement(system(metrics=(samples,))), lambda d: d["systems"][0]["metrics"][0].update(summary=reported)
    )


@pytest.mark.parametrize(
    ("samples", "reported", "verdict"),
    [
        (COSTS, {"mean": np.mean(COSTS.rows)}, "obeyed"),
        (COSTS, {"mean": float(f"{np.mean(COSTS.rows):.4g}")}, "obeyed"),
        (COSTS, {"mean_s": np.mean([np.median(row) for row in COSTS.rows])}, "obeyed"),
        (COSTS, {"mean": 1.01 * np.mean(COSTS.rows)}, "broken"),
        (COSTS, {"mean": harmonic(np.array(COSTS.rows).ravel())}, "broken"),
        (COSTS, {"harmonic_mean": np.mean(COSTS.rows)}, "broken"),
        (COSTS, {"geomean": 1e-3}, "broken"),
        (RATES, {"harmonic_mean": harmonic(ROWS.ravel())}, "obeyed"),
        (RATES, {"mean": harmonic(ROWS.ravel())}, "obeyed"),
        (RATES, {"mean": ROWS.mean()}, "broken"),
        (RATES, {"harmonic_mean": ROWS.mean()}, "broken"),
        (RATES, {"arithmetic_mean": ROWS.mean()}, "broken"),
        (RATES, {"average": {"value": ROWS.mean(), "ci": [1, 2]}}, "broken"),
    ],
)
def test_a_mean_is_held_against_the_samples(samples, reported, verdict):
    found, reason = verdict_of("means", with_mean(samples, **{key: _plain(value) for key, value in reported.items()}))

    assert found == verdict, reason


def test_an_arithmetic_mean_of_rates_is_told_with_the_right_one():
    _, reason = verdict_of("means", with_mean(RATES, mean=float(ROWS.mean())))

    assert "is the arithmetic mean of the samples" in reason
    assert f"the harmonic mean is {harmonic(ROWS.ravel()):.6g}" in reason


def test_rates_that_are_not_positive_have_no_mean():
    document = changed(
        with_mean(RATES, mean=1.0), lambda d: d["systems"][0]["metrics"][0]["launches"][0].update(samples=[0.0, -1.0])
    )
    document["systems"][0]["metrics"][0]["launches"] = document["systems"][0]["metrics"][0]["launches"][:1]

    assert "no harmonic mean" in verdict_of("means", document)[1]


@pytest.mark.parametrize(
    ("document", "verdict"),
    [
        (changed(comparison(2.0), lambda d: d["base"]["absolute"].update(mean=1.0)), "obeyed"),
        (changed(comparison(2.0), lambda d: (d["metric"].update(kind="rate"), d["base"].update(mean=1.0))), "broken"),
        (changed(comparison(2.0), lambda d: (d.pop("metric"), d["base"].update(mean=1.0))), "broken"),
        (changed(measurement(), lambda d: d.update(mean=1.0)), "broken"),
        (changed(recipe(), lambda d: d.update(average_s=1.0)), "broken"),
        (changed(measurement(), lambda d: d["design"]["statistic"].update(name="mean")), "obeyed"),
        (
            changed(
                measurement(system(metrics=(RATES,))), lambda d: d["design"]["statistic"].update(name="arithmetic mean")
            ),
            "broken",
        ),
        (comparison(2.0), "not applicable"),
        (recipe(), "not applicable"),
    ],
)
def test_a_mean_without_samples_is_judged_by_its_name_and_its_metric(document, verdict):
    assert verdict_of("means", document)[0] == verdict


def _plain(value):
    return value if isinstance(value, dict) else float(value)
