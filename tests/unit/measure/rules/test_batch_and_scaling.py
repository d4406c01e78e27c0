from __future__ import annotations

import pytest

from tests.unit.measure.rules.support import measurement, recipe, system, verdict_of

SCALED = {"ranks": 4, "local_batch_size": 8, "global_batch_size": 32, "scaling": "weak"}


@pytest.mark.parametrize(
    ("changes", "verdict", "words"),
    [
        ({}, "obeyed", "4 ranks with 8 samples each, 32 in all, weak scaling"),
        ({"scaling": "Strong"}, "obeyed", "strong scaling"),
        ({"scaling": "good"}, "broken", "'weak' or 'strong'"),
        ({"local_batch_size": None}, "broken", "local_batch_size"),
        ({"global_batch_size": "32"}, "broken", "global_batch_size"),
        ({"global_batch_size": 64}, "broken", "are not the 64"),
        ({"global_batch_size": 31}, "obeyed", "31 in all"),
        ({"ranks": 1}, "not applicable", "one process"),
    ],
)
def test_ranks_tell_their_minibatches(changes, verdict, words):
    found, reason = verdict_of("batch_and_scaling", measurement(system(factors={**SCALED, **changes})))

    assert found == verdict
    assert words in reason


def test_a_recipe_is_one_process():
    assert verdict_of("batch_and_scaling", recipe())[0] == "not applicable"
