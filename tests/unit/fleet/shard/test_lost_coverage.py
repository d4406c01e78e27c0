from __future__ import annotations

from dataclasses import dataclass, field

from deep500.fleet.shard.lost_coverage import LostCoverage


@dataclass
class Phase:
    nodeid: str
    when: str | None
    outcome: str = "passed"
    duration: float = 0.5
    user_properties: list[tuple[str, object]] = field(default_factory=list)


def test_reports_are_put_together() -> None:
    coverage = LostCoverage()
    used: list[tuple[str, object]] = [("gpus_declared", 4), ("other", 1), ("gpus_used", 2), ("gpus_used_by", "said")]
    coverage.observe(Phase("ran", "setup", user_properties=used[:2]))
    coverage.observe(Phase("ran", "call", user_properties=used[:2]))
    coverage.observe(Phase("ran", "teardown", user_properties=used))
    lost: list[tuple[str, object]] = [("gpus_declared", 8), ("gpus_needed", 8), ("gpus_given", 4)]
    coverage.observe(Phase("lost", "setup", "skipped", user_properties=lost))
    coverage.observe(Phase("lost", "teardown", user_properties=lost))
    for when in ("setup", "call", "teardown"):
        coverage.observe(Phase("plain", when))
    coverage.durations = {"lost": 60.0}

    assert coverage.total == 3
    assert coverage.measured() == {"ran": 1.5}
    assert list(coverage.lines(4, "--max-gpus")) == [
        "1 of 3 tests did not run because they need more GPUs than there are (4 given by --max-gpus)",
        "needs 8 GPUs: 1 test, 60.0 s",
        "  lost (60.0 s)",
        "over-declared: ran declares 4, used 2 (said)",
    ]
    assert coverage.to_dict(4, "--max-gpus") == {
        "ran": True,
        "incomplete": None,
        "tests": 3,
        "gpus_given": 4,
        "gpus_given_by": "--max-gpus",
        "lost": [{"test": "lost", "gpus": 8, "given": 4, "duration_s": 60.0}],
        "lost_by_gpus": {"8": 1},
        "lost_duration_s": 60.0,
        "lost_durations_known": 1,
        "executed_by_gpus_used": {"2": 1},
        "over_declared": [{"test": "ran", "declared": 4, "used": 2, "used_by": "said"}],
        "under_declared": [],
    }


def test_a_test_that_did_not_pass_declares_too_much_to_nobodys_knowledge() -> None:
    coverage = LostCoverage()
    used: list[tuple[str, object]] = [("gpus_declared", 4), ("gpus_used", 0), ("gpus_used_by", "fixture")]
    coverage.observe(Phase("failed", "call", "failed", user_properties=used))
    assert coverage.over_declared == []
    more: list[tuple[str, object]] = [("gpus_declared", 4), ("gpus_used", 1), ("gpus_used_by", "driver, or more")]
    coverage.observe(Phase("unclear", "call", user_properties=more))
    assert coverage.over_declared == []
    assert coverage.lost == []


def test_what_was_not_collected_is_not_what_is_not_lost() -> None:
    coverage = LostCoverage()
    coverage.not_collected.append("test_bad.py")
    found = coverage.to_dict(2, "--max-gpus")
    assert (found["ran"], found["lost"]) == (False, None)
    assert found["incomplete"] == "test_bad.py could not be collected"

    coverage.observe(Phase("plain", "call"))  # as with --continue-on-collection-errors
    found = coverage.to_dict(2, "--max-gpus")
    assert (found["ran"], found["lost"]) == (True, [])
    assert found["incomplete"] == "test_bad.py could not be collected"
    assert list(coverage.lines(2, "x")) == ["more may be lost than is known: test_bad.py could not be collected"]


def test_short_times_are_not_nothing() -> None:
    coverage = LostCoverage()
    coverage.expect("quick", 1, 0)
    coverage.durations = {"quick": 0.0042}
    assert list(coverage.lines(0, "x"))[1:] == ["needs 1 GPU: 1 test, 4.2 ms", "  quick (4.2 ms)"]
