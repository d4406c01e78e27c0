from __future__ import annotations

import pytest

from tests.unit.measure.rules.support import changed, comparison, measurement, recipe, trained, verdict_of


def compared_training(**metric):
    document = comparison(2.0)
    document["metric"].update(metric)
    score = {"name": "TestAccuracy", "value": 98.0, "unit": "%", "kind": "score"}
    for side in (document["base"], document["rows"][0]["system"]):
        side.update(spec="recipe:digits_lenet", scores=[score])
    return document


@pytest.mark.parametrize(
    ("document", "verdict"),
    [
        (measurement(trained()), "obeyed"),
        (measurement(trained(scores=())), "broken"),
        (measurement(trained(metrics=())), "broken"),
        (measurement(), "not applicable"),
        (compared_training(), "obeyed"),
        (compared_training(kind="rate", unit="samples/s"), "broken"),
        (changed(compared_training(), lambda d: d["base"].update(scores=[])), "broken"),
        (comparison(2.0), "not applicable"),
        (recipe(), "obeyed"),
        (recipe(metrics=[]), "broken"),
        (changed(recipe(), lambda d: d["statistics"].update(training_s="3 s")), "broken"),
    ],
)
def test_a_training_shows_its_time_and_its_accuracy(document, verdict):
    assert verdict_of("time_and_accuracy", document)[0] == verdict
