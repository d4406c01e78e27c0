from __future__ import annotations

import numpy as np
import pytest

from tests.unit.measure.rules.support import changed, comparison, measurement, metric, recipe, system, verdict_of


def with_mean(rows, **reported):
    document = measurement(system(metrics=(metric(len(rows)),)))
    entry = document["systems"][0]["metrics"][0]
    for launch, row in zip(entry["launches"], rows):
        launch["samples"] = [float(value) for value in row]
    entry.update(reported or {"mean": 1.0, "ci": [0.9, 1.1]})
    return document


def draws(kind, launches, size, seed=0):
    stream = np.random.default_rng(seed)
    return [stream.normal(1, 0.1, size) if kind == "normal" else stream.lognormal(0, 1, size) for _ in range(launches)]


@pytest.mark.parametrize(
    ("rows", "verdict", "words"),
    [
        (draws("normal", 1, 100), "obeyed", "may be normal (Shapiro-Wilk"),
        (draws("lognormal", 1, 100), "broken", "are not normal (Shapiro-Wilk, p = "),
        (draws("normal", 1, 19), "broken", "fewer than 20"),
        (draws("normal", 30, 3), "obeyed", "rests on 30 launches"),
        (draws("lognormal", 30, 1), "broken", "rests on 30 launches"),
        ([np.ones(40)], "broken", "cannot be tested"),
    ],
)
def test_samples_behind_a_mean_with_an_interval_are_tested_again(rows, verdict, words):
    found, reason = verdict_of("normality", with_mean(rows))

    assert found == verdict, reason
    assert words in reason


def test_a_mean_without_an_interval_assumes_nothing():
    assert verdict_of("normality", with_mean(draws("lognormal", 1, 100), mean=1.0))[0] == "obeyed"


@pytest.mark.parametrize("beside", [{"low": 0.9}, {"confidence_interval": [1, 2]}, {"ci95": 0.1}, {"stderr": 0.1}])
def test_an_interval_is_known_by_the_words_beside_it(beside):
    assert verdict_of("normality", with_mean(draws("lognormal", 1, 100), mean=1.0, **beside))[0] == "broken"


def test_a_mean_that_the_design_asks_for_has_an_interval():
    document = with_mean(draws("lognormal", 1, 100), note="")
    document["design"]["statistic"]["name"] = "mean"

    assert verdict_of("normality", document)[0] == "broken"


def test_where_there_are_no_samples_nothing_can_be_tested():
    document = changed(comparison(2.0), lambda d: d["base"]["absolute"].update(mean={"value": 1, "low": 0, "high": 2}))

    assert verdict_of("normality", document)[0] == "broken"
    assert verdict_of("normality", comparison(2.0))[0] == "obeyed"
    assert verdict_of("normality", recipe())[0] == "not applicable"
