from __future__ import annotations

import pytest

from deep500.measure.metric import MetricKind
from tests.unit.measure.rules.support import changed, comparison, measurement, metric, recipe, system, verdict_of


def ratio_metric():
    return metric(name="Speedup", unit="", kind=MetricKind.RATIO)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda d: d.pop("base"), "no base with an absolute value"),
        (lambda d: d["base"]["absolute"].pop("estimate"), "no base with an absolute value"),
        (lambda d: d["base"]["absolute"].update(estimate="1 ms"), "no base with an absolute value"),
        (lambda d: d["metric"].update(unit=""), "has no unit"),
        (lambda d: d["metric"].pop("unit"), "has no unit"),
        (lambda d: d["rows"][0]["system"].pop("absolute"), "row1 has no absolute value"),
        (lambda d: d["rows"][0].update(speedup=2.0), "rows[0].speedup is a ratio without its base"),
    ],
)
def test_a_comparison_without_its_base_is_found(change, words):
    verdict, reason = verdict_of("base_case", changed(comparison(2.0), change))

    assert verdict == "broken"
    assert words in reason


def test_the_base_is_told_as_evidence():
    document = comparison(2.0)
    _, reason = verdict_of("base_case", document)

    assert f"the ratio of row1 is to base, {document['base']['absolute']['estimate']:.4g} s" in reason


@pytest.mark.parametrize("key", ["ratio", "speedup", "speed_up", "SpeedUp", "gpuSlowdown", "ratio_to_torch"])
@pytest.mark.parametrize("value", [3.2, {"value": 3.2}, {"estimate": 3.2, "low": 3, "high": 4}])
def test_a_lone_ratio_is_found_in_any_document(key, value):
    documents = [
        changed(measurement(), lambda d: d.update({key: value})),
        changed(measurement(), lambda d: d["systems"][0].update(summary=[{key: value}])),
        changed(recipe(), lambda d: d["metrics"].append({"name": "x", key: value})),
    ]
    for document in documents:
        verdict, reason = verdict_of("base_case", document)
        assert verdict == "broken"
        assert f"{key} is a ratio without its base" in reason


def test_words_that_describe_what_was_run_are_no_results():
    document = measurement(system(identity={"problem": "speedup", "ratio": 0.5}, factors={"mean_ratio": 2.0}))

    assert verdict_of("base_case", document)[0] == "not applicable"
    assert verdict_of("no_mean_of_ratios", document)[0] == "not applicable"


def test_a_metric_of_ratios_needs_absolute_values_beside_it():
    assert verdict_of("base_case", measurement(system(metrics=(ratio_metric(), metric()))))[0] == "obeyed"
    verdict, reason = verdict_of("base_case", measurement(system(metrics=(ratio_metric(),))))
    assert verdict == "broken"
    assert "no absolute values stand beside it" in reason
