from __future__ import annotations

import copy

import pytest

from tests.unit.measure.rules.support import changed, comparison, measurement, recipe, verdict_of


def sections(document):
    return document["environment"]["sections"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda d: d.pop("environment"), "not recorded"),
        (lambda d: d["environment"].update(sections=[]), "not recorded"),
        (lambda d: sections(d).pop("cpu"), "does not tell cpu.model, cpu.cores"),
        (lambda d: sections(d)["host"].pop("kernel"), "does not tell host.kernel"),
        (lambda d: d["design"].pop("seed"), "design.seed"),
        (lambda d: d["design"].update(plan={}), "design.plan"),
        (lambda d: d["design"].update(launches="six"), "design.launches"),
        (lambda d: d["systems"][0].update(identity={}), "does not tell what it computes"),
        (lambda d: d["systems"][0]["factors"].update(options=[1]), "no single values"),
        (lambda d: d["systems"][0].pop("spec"), "systems[0].spec is missing"),
        (lambda d: d["systems"][0].update(label=3), "systems[0].label is a number, not a text"),
        (lambda d: d.update(deep500=None), "deep500 is missing"),
        (lambda d: d.update(complete="yes"), "complete is the text 'yes', not true or false"),
        (lambda d: d["systems"].append(copy.deepcopy(d["systems"][0])), "two systems have the same label"),
    ],
)
def test_what_is_missing_is_named(change, words):
    verdict, reason = verdict_of("documented_setup", changed(measurement(), change))

    assert verdict == "broken"
    assert words in reason


def test_single_fields_may_be_unavailable_but_not_all():
    document = measurement()
    assert verdict_of("documented_setup", document)[0] == "obeyed"  # its operating system is unavailable
    sections(document)["cpu"] = {"unavailable": "RuntimeError"}
    assert verdict_of("documented_setup", document)[0] == "obeyed"
    for name in sections(document):
        sections(document)[name] = {"unavailable": "RuntimeError"}
    verdict, reason = verdict_of("documented_setup", document)
    assert verdict == "broken"
    assert "could be read" in reason


def test_evidence_names_the_machine():
    assert "Test CPU, kernel 6.1, 1 libraries with versions" in verdict_of("documented_setup", measurement())[1]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda d: d.pop("environment"), "not recorded"),
        (lambda d: d["framework"].pop("version"), "framework.version"),
        (lambda d: d.pop("initial_weights_hash"), "initial_weights_hash"),
        (lambda d: d.update(seeds=0), "seeds is a number, not an object"),
    ],
)
def test_a_recipe_names_its_software_and_its_machine(change, words):
    assert verdict_of("documented_setup", recipe())[0] == "obeyed"
    verdict, reason = verdict_of("documented_setup", changed(recipe(), change))
    assert verdict == "broken"
    assert words in reason


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda d: d["base"].update(source=None), "base names no result file"),
        (lambda d: d["rows"][0]["system"]["source"].pop("sha256"), "row1 names no result file"),
        (lambda d: d["base"].pop("configuration_hash"), "base has no configuration_hash"),
        (lambda d: d["rows"][0].pop("factors"), "row1 does not tell what differs"),
        (lambda d: d.pop("created"), "created is missing"),
    ],
)
def test_a_comparison_names_its_files_and_what_differs(change, words):
    verdict, reason = verdict_of("documented_setup", comparison(2.0))
    assert verdict == "obeyed"
    assert "row1 differs from the base in framework" in reason
    verdict, reason = verdict_of("documented_setup", changed(comparison(2.0), change))
    assert verdict == "broken"
    assert words in reason
