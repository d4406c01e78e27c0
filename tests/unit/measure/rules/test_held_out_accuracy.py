from __future__ import annotations

import pytest

from deep500.measure.workload import Score
from tests.unit.measure.rules.support import measurement, recipe, trained, verdict_of


def score(held_out, name="Accuracy"):
    return Score(name, 99.0, "%", held_out=held_out)


@pytest.mark.parametrize(
    ("scores", "verdict"),
    [
        ((score(True),), "obeyed"),
        ((score(False),), "broken"),
        ((score(False), score(True, "other")), "obeyed"),
        ((score(None),), "not applicable"),
        ((), "not applicable"),
    ],
)
def test_one_score_is_of_data_that_the_training_did_not_see(scores, verdict):
    assert verdict_of("held_out_accuracy", measurement(trained(scores=scores)))[0] == verdict


@pytest.mark.parametrize(
    ("names", "verdict"),
    [
        (["TestAccuracy"], "obeyed"),
        (["ValidationLoss"], "obeyed"),
        (["TrainingAccuracy"], "broken"),
        (["TrainingAccuracy", "TestAccuracy"], "obeyed"),
        (["Perplexity"], "not applicable"),
    ],
)
def test_metrics_of_a_recipe_tell_it_by_their_names(names, verdict):
    metrics = [{"name": name, "value": 98.0, "unit": "%", "acceptable": None} for name in names]

    assert verdict_of("held_out_accuracy", recipe(metrics=metrics))[0] == verdict
