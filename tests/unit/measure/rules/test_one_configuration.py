from __future__ import annotations

import pytest

from tests.unit.measure.rules.support import changed, measurement, recipe, trained, verdict_of


def test_without_scores_there_is_nothing_to_bind():
    assert verdict_of("one_configuration", measurement())[0] == "not applicable"


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d["systems"][0]["hashes"].update(configuration="0" * 64),
        lambda d: d["systems"][0]["hashes"].pop("configuration"),
        lambda d: d["systems"][0]["hashes"].update(initialisation=None),
        lambda d: d["systems"][0]["identity"].update(epochs=1),
    ],
)
def test_a_configuration_that_was_changed_is_found(change):
    assert verdict_of("one_configuration", changed(measurement(trained()), change))[0] == "broken"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda d: d["mutable"].update(batch_size=64), "changed after the run"),
        (lambda d: d["fixed"].update(epochs=1), "changed after the run"),
        (lambda d: d.update(configuration_hash=None), "no configuration_hash"),
        (lambda d: d.update(fixed={"a": float("inf")}), "changed after the run"),
    ],
)
def test_a_recipe_whose_parts_were_changed_is_found(change, words):
    assert verdict_of("one_configuration", recipe())[0] == "obeyed"
    verdict, reason = verdict_of("one_configuration", changed(recipe(), change))
    assert verdict == "broken"
    assert words in reason
