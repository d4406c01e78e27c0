from __future__ import annotations

import pytest

from tests.unit.measure.rules.support import changed, comparison, measurement, recipe, verdict_of


def metric_of(document):
    return document["systems"][0]["metrics"][0]


def launch_of(document):
    return metric_of(document)["launches"][1]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda d: launch_of(d).update(samples=[]), "samples is a list, not a list with a sample or more"),
        (lambda d: launch_of(d).update(samples="1 2 3"), "samples is the text '1 2 3'"),
        (lambda d: launch_of(d).update(samples=[1.0, None, "2", True]), "3 of the 4 entries"),
        (lambda d: launch_of(d).update(process=99), "process is a number, not the index of one of the 6 processes"),
        (
            lambda d: launch_of(d).update(process=0),
            "several launches of WallclockTime of op:Conv@pytorch are of process 0",
        ),
        (lambda d: launch_of(d).pop("process"), "launches[1].process is missing"),
        (lambda d: metric_of(d).update(launches=None), "launches is missing"),
        (lambda d: metric_of(d).update(launches=[3]), "launches[0] is a number, not an object"),
        (lambda d: d["systems"][0].update(metrics=[]), "has no metric"),
        (lambda d: d.update(systems=[]), "no systems"),
        (lambda d: metric_of(d)["hashes"].update(metric="0" * 64), "the metric hash is not that of its definition"),
        (lambda d: metric_of(d).update(unit="ms"), "the metric hash is not that of its definition"),
        (lambda d: metric_of(d).pop("hashes"), "no metric hash is stated"),
        (lambda d: d["design"]["statistic"].update(confidence=0.9), "the statistic hash is not that"),
        (lambda d: d["systems"][0]["identity"].update(size=3), "the workload hash is not that of its identity"),
        (lambda d: d["systems"][0]["factors"].update(size=3), "the configuration hash is not that"),
        (lambda d: d["systems"][0]["hashes"].update(data="0" * 64), "the configuration hash is not that"),
        (lambda d: d["systems"][0]["work"].update(flops=3), "the configuration hash is not that"),
        (lambda d: d["systems"][0].update(hashes=None), "no workload hash is stated"),
        (lambda d: d["systems"][0]["identity"].update(size=float("nan")), "the workload hash is not that"),
    ],
)
def test_samples_and_hashes_that_do_not_fit_are_found(change, words):
    verdict, reason = verdict_of("raw_samples", changed(measurement(), change))

    assert verdict == "broken"
    assert words in reason


def test_evidence_counts_the_samples():
    assert "180 samples in 6 launches" in verdict_of("raw_samples", measurement())[1]


@pytest.mark.parametrize("epochs", [None, [], [{}], [{"training": None}], 3])
def test_a_recipe_keeps_the_record_of_each_epoch(epochs):
    assert verdict_of("raw_samples", recipe())[0] == "obeyed"
    document = changed(recipe(), lambda d: d["statistics"].update(epochs=epochs))
    assert verdict_of("raw_samples", document)[0] == "broken"


def test_a_comparison_has_no_samples():
    assert verdict_of("raw_samples", comparison(2.0))[0] == "not applicable"
