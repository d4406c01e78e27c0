from __future__ import annotations

import pytest

from tests.unit.measure.rules.support import changed, measurement, recipe, system, verdict_of

TOLD = {"ranks": 2, "synchronisation": "barrier before each run", "rank_summary": "max"}


@pytest.mark.parametrize(
    "document",
    [
        measurement(),
        measurement(system(factors={})),
        measurement(system(factors={"ranks": 1, "device": "CPU"})),
        recipe(),
    ],
)
def test_one_process_on_the_cpu_is_not_parallel(document):
    assert verdict_of("parallel_timing", document)[0] == "not applicable"


@pytest.mark.parametrize("without", ["synchronisation", "rank_summary"])
def test_ranks_need_to_tell_everything(without):
    assert verdict_of("parallel_timing", measurement(system(factors=TOLD)))[0] == "obeyed"
    factors = {key: value for key, value in TOLD.items() if key != without}
    verdict, reason = verdict_of("parallel_timing", measurement(system(factors=factors)))
    assert verdict == "broken"
    assert without in reason


@pytest.mark.parametrize(
    "parts",
    [
        {"factors": {"device": "gpu:0"}},
        {"factors": {}, "spec": "model:lenet@pytorch:gpu:0"},
        {"factors": {"device": "GPU (index 1)"}},
    ],
)
def test_an_accelerator_needs_to_tell_its_synchronisation(parts):
    document = measurement(system(**parts))
    assert verdict_of("parallel_timing", document)[0] == "broken"
    document["design"]["plan"]["device_synchronised"] = True
    assert verdict_of("parallel_timing", document)[0] == "obeyed"
    document["design"]["plan"]["device_synchronised"] = False
    assert verdict_of("parallel_timing", document)[0] == "broken"


def test_the_clock_is_named():
    document = changed(measurement(system(factors=TOLD)), lambda d: d["environment"]["sections"].pop("clock"))

    assert "the clock is not named" in verdict_of("parallel_timing", document)[1]


def test_a_recipe_waits_for_its_device():
    assert verdict_of("parallel_timing", recipe(device="gpu:0"))[0] == "obeyed"
