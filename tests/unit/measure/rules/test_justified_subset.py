from __future__ import annotations

import copy

import pytest

from tests.unit.measure.rules.support import changed, measurement, metric, recipe, system, verdict_of


def test_a_reason_justifies_workloads_that_were_left_out():
    document = measurement(system(), workloads=("op:Conv@pytorch", "op:Relu"), justification="Relu is memory-bound")
    verdict, reason = verdict_of("justified_subset", document)

    assert verdict == "obeyed"
    assert "op:Relu was planned and not run, because: Relu is memory-bound" in reason


def test_a_workload_that_is_measured_twice_has_to_be_there_twice():
    twice = ("op:Conv@pytorch",) * 2
    assert verdict_of("justified_subset", measurement(system(), system(label="again")))[0] == "obeyed"
    assert verdict_of("justified_subset", measurement(system(), workloads=twice))[0] == "broken"


def test_missing_launches_are_not_justified_by_a_reason():
    document = measurement(system(metrics=(metric(6),)), launches=10, justification="enough")
    verdict, reason = verdict_of("justified_subset", document)

    assert verdict == "broken"
    assert "has 6 of 10 planned launches" in reason


def test_an_incomplete_measurement_tells_why():
    document = changed(measurement(), lambda d: d.update(complete=False, failure="interrupted\nby hand"))
    verdict, reason = verdict_of("justified_subset", document)

    assert verdict == "broken"
    assert r"interrupted\nby hand" in reason


@pytest.mark.parametrize(
    ("section", "field", "value", "words"),
    [
        ("process", "affinity_count", 1, "may run on 1"),
        ("process", "cpu_quota", 1.5, "quota is 1.5"),
        ("process", "affinity_count", 2, ""),
        ("process", "affinity_count", "unavailable", ""),
        ("cpu", "cores", "unavailable", ""),
    ],
)
def test_a_part_of_the_machine_needs_a_reason(section, field, value, words):
    document = copy.deepcopy(measurement())
    document["environment"]["sections"][section][field] = value
    verdict, reason = verdict_of("justified_subset", document)

    assert verdict == ("broken" if words else "obeyed")
    assert words in reason
    document["design"]["justification"] = "one core, against migration"
    assert verdict_of("justified_subset", document)[0] == "obeyed"


def test_fewer_threads_than_cores_need_a_reason():
    document = measurement(system(factors={"threads": 1}))

    assert "threads for 1" in verdict_of("justified_subset", document)[1]


@pytest.mark.parametrize(
    ("change", "verdict", "words"),
    [
        (lambda d: d["statistics"]["epochs"].pop(), "broken", "1 of 2 epochs"),
        (
            lambda d: (d["statistics"]["epochs"].pop(), d["statistics"].update(outcome="stopped")),
            "obeyed",
            "stopped it",
        ),
        (lambda d: d.update(complete=False, failure="diverged"), "broken", "diverged"),
        (lambda d: d["statistics"].pop("epochs_planned"), "broken", "how many epochs"),
    ],
)
def test_a_recipe_runs_all_epochs_or_tells_why(change, verdict, words):
    found, reason = verdict_of("justified_subset", changed(recipe(), change))

    assert found == verdict
    assert words in reason


def test_a_document_without_a_plan_has_nothing_to_be_held_against():
    document = changed(measurement(), lambda d: d.update(design={}, environment={}))

    assert verdict_of("justified_subset", document)[0] == "not applicable"
