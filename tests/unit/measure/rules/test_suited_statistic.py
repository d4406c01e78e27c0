from __future__ import annotations

import pytest

from deep500.measure.results.document import Statistic
from tests.unit.measure.rules.support import (
    changed,
    comparison,
    measurement,
    metric,
    quantile_design,
    system,
    verdict_of,
)


@pytest.mark.parametrize(
    ("quantile", "size", "verdict"),
    [(0.9, 35, "broken"), (0.9, 36, "obeyed"), (0.95, 71, "broken"), (0.95, 72, "obeyed"), (0.01, 50, "broken")],
)
def test_a_quantile_needs_its_samples_in_each_launch(quantile, size, verdict):
    document = measurement(system(metrics=(metric(6, size),)), statistic=quantile_design(quantile))

    assert verdict_of("suited_statistic", document)[0] == verdict


def test_the_launch_with_the_fewest_samples_counts():
    document = measurement(system(metrics=(metric(6, 40),)), statistic=quantile_design(0.9))
    document["systems"][0]["metrics"][0]["launches"][4]["samples"] = [1.0, 2.0]

    assert "one has 2" in verdict_of("suited_statistic", document)[1]


@pytest.mark.parametrize(
    ("key", "quantile"),
    [
        ("p99", 0.99),
        ("P99", 0.99),
        ("p99_9", 0.999),
        ("p999", 0.999),
        ("p99.9", 0.999),
        ("p95_ms", 0.95),
        ("perc90", 0.9),
        ("percentile_95", 0.95),
        ("99th_percentile", 0.99),
        ("1st_percentile", 0.01),
        ("quantile_0.99", 0.99),
        ("q0_999", 0.999),
        ("p5", 0.05),
    ],
)
def test_a_percentile_is_known_by_its_key(key, quantile):
    document = changed(measurement(), lambda d: d["systems"][0]["metrics"][0].update(summary={key: 1.5}))
    verdict, reason = verdict_of("suited_statistic", document)

    assert verdict == "broken"
    assert f"the p{quantile * 100:.6g} of WallclockTime" in reason


@pytest.mark.parametrize("key", ["p_value", "p100", "p0", "p50", "p", "top5", "pi", "step_10"])
def test_other_keys_are_no_percentiles_that_lack_samples(key):
    document = changed(measurement(), lambda d: d["systems"][0]["metrics"][0].update(summary={key: 1.5}))

    assert verdict_of("suited_statistic", document)[0] == "obeyed"


def test_a_percentile_without_samples_is_found_and_one_with_enough_is_not():
    lone = changed(comparison(2.0), lambda d: d["base"]["absolute"].update(p99=1.0))
    kept = changed(
        measurement(system(metrics=(metric(6, 368),))), lambda d: d["systems"][0]["metrics"][0].update(p99=1.0)
    )

    assert "stands beside no samples, and needs 368" in verdict_of("suited_statistic", lone)[1]
    assert verdict_of("suited_statistic", kept)[0] == "obeyed"


@pytest.mark.parametrize(
    ("statistic", "words"),
    [
        ({"name": "median", "quantile": 0.9}, "0.9 quantile by its number"),
        ({"name": "quantile", "quantile": 1.0}, "between 0 and 1"),
        ({"name": "quantile"}, "between 0 and 1"),
        ({"name": "minimum", "quantile": 0.0}, "'minimum' has no interval"),
        ({"quantile": 0.5}, "does not name its statistic"),
    ],
)
def test_a_statistic_that_contradicts_itself_is_found(statistic, words):
    for document in (measurement(), comparison(2.0)):
        (document.get("design") or document)["statistic"] = {**statistic, "confidence": 0.95}
        verdict, reason = verdict_of("suited_statistic", document)
        assert verdict == "broken"
        assert words in reason


def test_quantiles_at_the_very_ends_need_more_samples_than_there_are_and_no_time():
    for quantile in (1 - 1e-16, 1e-300):
        document = measurement(statistic=Statistic("quantile", quantile))
        assert verdict_of("suited_statistic", document)[0] == "broken"


def test_a_comparison_of_percentiles_needs_the_samples_of_all_launches():
    document = comparison(2.0)
    document["statistic"].update(name="quantile", quantile=0.99)
    for side in (document["base"], document["rows"][0]["system"]):
        side["absolute"]["samples"] = 3680
    assert verdict_of("suited_statistic", document)[0] == "obeyed"
    document["base"]["absolute"]["samples"] = 3679
    assert verdict_of("suited_statistic", document)[0] == "broken"


def test_samples_that_are_all_equal_have_every_percentile():
    document = measurement(statistic=quantile_design(0.99))
    for launch in document["systems"][0]["metrics"][0]["launches"]:
        launch["samples"] = [2.0, 2.0]

    assert verdict_of("suited_statistic", document)[0] == "obeyed"
