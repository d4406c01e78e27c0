from __future__ import annotations

import pytest

from deep500.core.errors import FleetError
from deep500.fleet.outcome import STATUSES, Outcome, check_status


def test_duration() -> None:
    assert Outcome("k", "g", "passed", started=2.0, ended=5.0).duration_s == 3.0
    assert Outcome("k", "g", "missing", started=2.0).duration_s is None


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (("", "g", "passed"), "key"),
        (("k", 3, "passed"), "group"),
        (("k", "g", "pass"), "Did you mean 'passed'"),
        (("k", "g", None), "no status None"),
        (("k", "g", "passed", None, float("nan")), "'submitted'"),
        (("k", "g", "passed", None, None, "soon"), "'started'"),
        (("k", "g", "passed", None, None, None, None, float("inf")), "'gpus'"),
    ],
)
def test_what_is_no_outcome(values: tuple[object, ...], message: str) -> None:
    with pytest.raises(FleetError, match=message):
        Outcome(*values)  # type: ignore[arg-type]


def test_statuses() -> None:
    assert [check_status(status) for status in STATUSES] == list(STATUSES)
