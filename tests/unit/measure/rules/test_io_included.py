from __future__ import annotations

import pytest

from tests.unit.measure.rules.support import changed, measurement, recipe, system, trained, verdict_of


@pytest.mark.parametrize(
    ("document", "verdict", "words"),
    [
        (measurement(system("dataset:digits")), "obeyed", "its runs read the data"),
        (measurement(trained()), "obeyed", "its runs read the data"),
        (
            measurement(system("model:lenet", factors={"io": "data set, read in each run"})),
            "obeyed",
            "read in each run",
        ),
        (measurement(system("model:lenet", identity={"problem": "x", "io": "none"})), "obeyed", "none (io)"),
        (measurement(system("model:lenet", factors={"io": ""})), "broken", "does not tell"),
        (measurement(system("op:Conv")), "not applicable", "no system reads data"),
        (recipe(), "obeyed", "3 s of training"),
        (changed(recipe(), lambda d: d["statistics"].pop("training_s")), "broken", "training_s"),
    ],
)
def test_reading_is_timed_or_said_not_to_be(document, verdict, words):
    found, reason = verdict_of("io_included", document)

    assert found == verdict
    assert words in reason
