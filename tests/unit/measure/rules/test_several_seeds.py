from __future__ import annotations

from tests.unit.measure.rules.support import measurement, recipe, system, trained, verdict_of


def test_systems_that_differ_in_more_than_their_seed_are_several_trainings():
    systems = [trained(seed, factors={"framework": name, "seed": seed}) for seed, name in enumerate("abc")]

    assert verdict_of("several_seeds", measurement(*systems))[0] == "broken"


def test_one_seed_three_times_is_one():
    systems = [trained(0, label=f"again {number}") for number in range(3)]

    assert "with 1 seed" in verdict_of("several_seeds", measurement(*systems))[1]


def test_what_is_no_training_needs_no_seeds():
    assert verdict_of("several_seeds", measurement(system("model:lenet")))[0] == "not applicable"
    assert verdict_of("several_seeds", recipe(metrics=[]))[0] == "not applicable"


def test_one_run_tells_its_seed():
    assert "the seed 0" in verdict_of("several_seeds", recipe())[1]
