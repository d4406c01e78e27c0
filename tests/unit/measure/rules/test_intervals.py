from __future__ import annotations

import numpy as np
import pytest

from deep500.measure.statistics.quantiles import quantile_interval
from tests.unit.measure.rules.support import changed, comparison, measurement, metric, recipe, system, verdict_of


def launches_of(document):
    return document["systems"][0]["metrics"][0]["launches"]


def test_the_interval_is_that_over_launches():
    samples = metric(10)
    interval = quantile_interval([float(np.median(row)) for row in samples.rows])
    _, reason = verdict_of("intervals", measurement(system(metrics=(samples,))))

    assert f"is {interval.estimate:.4g} s (95 % interval {interval.low:.4g} to {interval.high:.4g})" in reason


@pytest.mark.parametrize("count", [1, 2, 5])
def test_too_few_launches_break_the_rule_however_many_samples_they_have(count):
    verdict, reason = verdict_of("intervals", measurement(system(metrics=(metric(count, 500),))))

    assert verdict == "broken"
    assert "needs 6 process launches" in reason
    assert ("one process" in reason) is (count == 1)


def test_a_higher_confidence_needs_more_launches():
    document = changed(measurement(), lambda d: d["design"]["statistic"].update(confidence=0.99))

    assert "needs 8 process launches" in verdict_of("intervals", document)[1]


def test_launches_of_one_process_are_one():
    same = changed(measurement(), lambda d: [launch.update(process=0) for launch in launches_of(d)])
    own = changed(measurement(), lambda d: [process.update(fresh=False) for process in d["processes"]])

    assert verdict_of("intervals", same)[0] == "broken"
    assert verdict_of("intervals", own)[0] == "broken"


def test_equal_samples_need_no_interval():
    document = measurement(system(metrics=(metric(1),)))
    launches_of(document)[0]["samples"] = [7.0, 7.0, 7.0]
    verdict, reason = verdict_of("intervals", document)

    assert verdict == "obeyed"
    assert "all 3 samples" in reason
    launches_of(document)[0]["samples"] = [7.0]  # of one sample nobody knows
    assert verdict_of("intervals", document)[0] == "broken"


@pytest.mark.parametrize("confidence", [None, 0, 1, "0.95", True, -1])
def test_a_confidence_is_needed(confidence):
    for document, key in ((measurement(), "design"), (comparison(2.0), "")):
        (document[key] if key else document)["statistic"]["confidence"] = confidence
        assert verdict_of("intervals", document)[0] == "broken"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda d: d["base"]["absolute"].update(interval=None), "base has no interval"),
        (lambda d: d["base"]["absolute"]["interval"].update(low=0.0), "is not that of its launches"),
        (lambda d: d["base"]["absolute"].update(launch_values=[1.0, 2.0]), "base has 2 launches"),
        (lambda d: d["base"]["absolute"].update(estimate=1.0), "outside of its own interval"),
        (lambda d: d["rows"][0]["ratio"].update(interval=None), "the ratio of row1 has no interval"),
        (lambda d: d["rows"][0]["system"].update(absolute=3), "row1 has no absolute value"),
    ],
)
def test_the_intervals_of_a_comparison_are_computed_again(change, words):
    verdict, reason = verdict_of("intervals", changed(comparison(2.0), change))

    assert verdict == "broken"
    assert words in reason


def test_equal_launches_of_a_comparison_need_no_interval():
    document = comparison(2.0)
    document["base"]["absolute"].update(launch_values=[5.0, 5.0], interval=None, estimate=5.0)

    assert verdict_of("intervals", document)[0] == "obeyed"


def test_a_recipe_without_values_has_nothing_to_be_uncertain_of():
    assert verdict_of("intervals", recipe(metrics=[]))[0] == "not applicable"
    assert "TestAccuracy of one run" in verdict_of("intervals", recipe())[1]
