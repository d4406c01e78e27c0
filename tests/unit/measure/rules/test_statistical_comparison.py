from __future__ import annotations

import pytest

from tests.unit.measure.rules.support import changed, comparison, measurement, recipe, system, verdict_of


def row(document):
    return document["rows"][0]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda d: row(d).update(verdict="faster"), "the interval of its ratio"),
        (lambda d: row(d).update(verdict="Slower!"), "no verdict"),
        (lambda d: row(d).update(verdict=None), "no verdict"),
        (lambda d: row(d)["ratio"].update(interval=None), "has no interval"),
        (lambda d: row(d)["ratio"]["interval"].update(low=0.9), "0.9 to"),
        (lambda d: row(d).update(p_holm=0.2), "its p-value is 0.2, above 0.05"),
        (lambda d: row(d).update(p_holm=None, p_value=None), "no p-value stands beside it"),
        (lambda d: row(d).update(pairing="by eye"), "pairing is not told"),
        (lambda d: row(d).update(verdict="equivalent"), "no margin was declared"),
        (lambda d: (row(d).update(verdict="equivalent"), d.update(margin=0.1)), "not within the margin"),
        (lambda d: d["metric"].pop("direction"), "which values are better"),
        (lambda d: d["metric"].update(direction="higher"), "the interval of its ratio"),
        (lambda d: d["statistic"].pop("confidence"), "no confidence"),
    ],
)
def test_a_verdict_that_its_own_numbers_do_not_support_is_found(change, words):
    verdict, reason = verdict_of("statistical_comparison", changed(comparison(2.0), change))

    assert verdict == "broken"
    assert words in reason


@pytest.mark.parametrize(
    ("document", "said"),
    [
        (comparison(2.0), "slower"),
        (comparison(0.5), "faster"),
        (comparison(1.0), "undecided"),
        (comparison(1.0, launches=40, margin=0.2), "equivalent"),
        (
            changed(
                comparison(2.0), lambda d: (d["metric"].update(direction="higher"), row(d).update(verdict="faster"))
            ),
            "faster",
        ),
        (changed(comparison(2.0), lambda d: row(d).update(verdict="undecided")), "undecided"),
    ],
)
def test_a_verdict_that_follows_from_its_numbers_obeys(document, said):
    verdict, reason = verdict_of("statistical_comparison", document)

    assert verdict == "obeyed", reason
    assert f"row1 is {said}: " in reason


def test_several_p_values_are_corrected():
    assert verdict_of("statistical_comparison", comparison(2.0, 1.5))[0] == "obeyed"
    for value in (None, 0.0019):  # not corrected: it is what one comparison alone would have
        document = changed(comparison(2.0, 1.5), lambda d, value=value: row(d).update(p_holm=value))
        verdict, reason = verdict_of("statistical_comparison", document)
        assert verdict == "broken"
        assert "row1 are not corrected for 2 comparisons (Holm)" in reason


def test_a_measurement_that_claims_a_difference_is_found():
    document = changed(measurement(system(), system("op:Relu")), lambda d: d["systems"][1].update(verdict="Faster"))
    verdict, reason = verdict_of("statistical_comparison", document)

    assert verdict == "broken"
    assert "systems[1].verdict says faster" in reason
    assert verdict_of("statistical_comparison", measurement(system(), system("op:Relu")))[0] == "not applicable"
    assert verdict_of("statistical_comparison", recipe())[0] == "not applicable"
