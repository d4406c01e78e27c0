"""What a table tells of the time that tasks took."""

from __future__ import annotations

import pytest

from deep500.core.errors import FleetError
from deep500.fleet import Outcome, OutcomeTable
from deep500.fleet.trace.observed import CENSORED, FAILED, PASSED, observe


def test_only_passed_and_failed_are_ends() -> None:
    table = OutcomeTable.from_outcomes(
        [
            Outcome("late", "u", "passed", started=1.0, ended=90.0),
            Outcome("runs", "u", "missing", "running", started=40.0),
            Outcome("stopped", "v", "cancelled", started=0.0, ended=20.0),
            Outcome("lost", "v", "unreachable", started=0.0, ended=30.0),
            Outcome("long", "v", "timeout", started=0.0, ended=70.0),
            Outcome("fell", "v", "failed", started=5.0, ended=10.0),
            Outcome("waits", "v", "missing", "waiting", submitted=100.0),
            Outcome("gone", "v", "missing", "nobody knows", started=5.0),
            Outcome("blind", "v", "failed", ended=10.0),
        ]
    )
    trace = observe(table)

    assert trace.end_s == 100.0
    assert trace.duration_s.tolist() == [5.0, 20.0, 30.0, 60.0, 70.0, 89.0]
    assert trace.event.tolist() == [FAILED, CENSORED, CENSORED, CENSORED, CENSORED, PASSED]
    assert trace.frame.columns == ["group", "gpus"]
    assert trace.censored == {"cancelled": 1, "running": 1, "timeout": 1, "unreachable": 1}
    assert trace.left_out == {
        "failed: no beginning is known": 1,
        "missing: no beginning is known": 1,
        "missing: no end is known": 1,
    }
    assert sum(trace.statuses.values()) == 9
    assert trace.users == ("u", "v")
    assert not trace.rerun.any()


def test_users_are_the_label_where_there_is_one() -> None:
    def task(user: str | None) -> Outcome:
        labels = {} if user is None else {"user": user}
        return Outcome("t", f"campaign-{user}", "passed", started=0.0, ended=1.0, labels=labels)

    assert observe(OutcomeTable.from_outcomes([task("b"), task(None), task("a")])).users == ("(unknown)", "a", "b")


def test_without_times_nothing_can_be_told() -> None:
    with pytest.raises(FleetError, match="None of the 1 outcomes has a time"):
        observe(OutcomeTable.from_outcomes([Outcome("t", "u", "passed")]))
