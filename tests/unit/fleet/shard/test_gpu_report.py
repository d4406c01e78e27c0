from __future__ import annotations

import pytest

from deep500.core.errors import FleetError
from deep500.fleet.outcome import Outcome
from deep500.fleet.outcome_table import OutcomeTable
from deep500.fleet.shard.gpu_report import GpuRow, LostTest, gpu_report


def outcome(key: str, group: str, status: str = "passed", seconds: float = 10.0, **labels: float) -> Outcome:
    return Outcome(key, group, status, started=0.0, ended=seconds, labels=labels)


TABLE = OutcomeTable.from_outcomes(
    [
        outcome("exact", "1", gpus_declared=2.0, gpus_used=2.0),
        outcome("exact", "2", "failed", 30.0, gpus_declared=2.0, gpus_used=2.0),
        outcome("over", "1", gpus_declared=4.0, gpus_used=2.0),
        outcome("over", "2", gpus_declared=4.0, gpus_used=1.0),
        outcome("under", "1", gpus_declared=1.0, gpus_used=4.0),
        outcome("under", "3", "failed", gpus_declared=1.0, gpus_used=4.0),
        outcome("big", "1", "failed", 50.0, gpus_declared=4.0),
        Outcome("big", "2", "no_match", "needs 4 GPUs, 2 are given", labels={"gpus_declared": 4.0, "gpus_needed": 4.0}),
        Outcome("big", "3", "no_match", "needs 4 GPUs, 2 are given", labels={"gpus_declared": 4.0, "gpus_needed": 4.0}),
        Outcome(
            "never", "1", "no_match", "needs 8 GPUs, 2 are given", labels={"gpus_declared": 8.0, "gpus_needed": 8.0}
        ),
        Outcome("other", "1", "no_match", "no machine"),
        outcome("plain", "1"),
    ]
)


def test_declared_and_used() -> None:
    found = gpu_report(TABLE)
    assert found.declared == (
        GpuRow(1.0, 1, 1, 0, 10.0, 1),
        GpuRow(2.0, 1, 1, 0, 20.0, 1),
        GpuRow(4.0, 2, 2, 1, 60.0, 1),
        GpuRow(8.0, 1, 0, 1, 0.0, 0),
        GpuRow(None, 2, 1, 0, 10.0, 0),
    )
    assert found.used == (
        GpuRow(2.0, 2, 2, 0, 30.0, 1),
        GpuRow(4.0, 2, 2, 1, 60.0, 2),
        GpuRow(8.0, 1, 0, 1, 0.0, 0),
        GpuRow(None, 2, 1, 0, 10.0, 0),
    )
    assert found.seen == 3
    assert found.over_declared == (("over", 4.0, 2.0),)
    assert found.under_declared == (("under", 1.0, 4.0),)


def test_lost() -> None:
    found = gpu_report(TABLE, max_gpus=2)
    assert found.lost == (LostTest("never", 8.0, 1, None, 0, 0), LostTest("big", 4.0, 2, 50.0, 1, 1))
    assert found.would_be_lost == (*found.lost, LostTest("under", 4.0, 0, 10.0, 2, 1))
    # Group 1 has only the failure of "big", group 2 that of "exact", group 3 that of "under".
    assert (found.failing_groups, found.missed_groups) == (3, 2)
    assert gpu_report(TABLE).would_be_lost == ()


def test_a_group_in_which_another_test_fails_is_not_missed() -> None:
    table = OutcomeTable.from_outcomes(
        [
            outcome("big", "both", "failed", gpus_declared=4.0),
            outcome("small", "both", "failed", gpus_declared=1.0),
            outcome("big", "alone", "failed", gpus_declared=4.0),
            outcome("small", "alone", gpus_declared=1.0),
        ]
    )
    found = gpu_report(table, max_gpus=2)
    assert (found.failing_groups, found.missed_groups) == (2, 1)


def test_the_gpus_of_jobs_do_where_there_are_no_labels() -> None:
    table = OutcomeTable.from_outcomes([Outcome("job", "1", "passed", gpus=4), Outcome("cpu", "1", "passed", gpus=0)])
    assert [(row.gpus, row.tests) for row in gpu_report(table).used] == [(0.0, 1), (4.0, 1)]
    assert gpu_report(table).declared == (GpuRow(None, 2, 2, 0, 0.0, 0),)


def test_outcomes_that_tell_nothing_of_gpus() -> None:
    with pytest.raises(FleetError, match="run the tests with pytest --junitxml"):
        gpu_report(OutcomeTable.from_outcomes([outcome("a", "1")]))


def test_what_was_not_collected_is_no_test() -> None:
    table = OutcomeTable.from_outcomes(
        [outcome("a", "1", gpus_declared=2.0), Outcome("bad", "2", "failed", "error: collection failure")]
    )
    found = gpu_report(table)
    assert found.not_collected == (("2", "bad"),)
    assert sum(row.tests for row in found.used) == 1
    assert found.to_dict()["not_collected"] == [{"group": "2", "what": "bad"}]
