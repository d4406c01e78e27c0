from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from deep500.fleet.compat.backend import STATES, SchedulerState
from deep500.fleet.compat.job_record import STAGES
from deep500.fleet.compat.joining import ReadRecord, join, read_record
from tests.unit.fleet.compat.support import cell


def record(*went: str, error: dict[str, str] | None = None, finished: bool = True) -> ReadRecord:
    """Return a record of stages that went well; one of ``...>`` was begun only."""
    stages: dict[str, Any] = {}
    for place, stage in enumerate(went):
        ended = None if stage.endswith(">") else place + 1.0
        name = stage.rstrip(">")
        ok = None if ended is None else not (error is not None and error["stage"] == name)
        stages[name] = {"started": float(place), "ended": ended, "ok": ok, "detail": ""}
    return ReadRecord({"stages": stages, "error": error, "finished": finished, "facts": {}, "host": "n1"})


def fault(stage: str, kind: str, message: str) -> dict[str, str]:
    return {"stage": stage, "type": kind, "message": message}


TO_IMPORT = ("matched", "environment", "import")
NOTHING = ReadRecord()
RUNS = record("matched", "environment>", finished=False)

CASES = [
    (record(*STAGES), None, "passed", None),
    (record(*STAGES), SchedulerState("failed", 1), "passed", None),
    (record(*STAGES[:-1]), None, "missing", "the record ends without a word on recipe"),
    (record(*TO_IMPORT[:2], error=fault("environment", "EnvironmentFailedError", "no")), None, "environment", "no"),
    (record(*TO_IMPORT[:2], error=fault("environment", "Timeout", "5 s")), None, "timeout", "in environment: 5 s"),
    (record(*TO_IMPORT, error=fault("import", "ImportError", "libcudart.so")), None, "failed", "import: libcudart.so"),
    (
        record(*TO_IMPORT, "device_count", error=fault("device_count", "ProbeError", "1 asked, 0 seen")),
        None,
        "failed",
        "device_count: 1 asked, 0 seen",
    ),
    (record(*TO_IMPORT, error=fault("import", "Timeout", "5 s")), None, "timeout", "in import: 5 s"),
    (record(*TO_IMPORT, error=fault("import", "Died", "signal 9")), None, "failed", "died in import (signal 9)"),
    (record(*TO_IMPORT, error=fault("import", "Terminated", "SIGTERM")), None, "cancelled", "in import: SIGTERM"),
    (
        record(*TO_IMPORT, error=fault("import", "Terminated", "SIGTERM")),
        SchedulerState("timeout"),
        "timeout",
        "ended by the scheduler in import",
    ),
    (
        record(*TO_IMPORT, error=fault("import", "Terminated", "SIGTERM")),
        SchedulerState("node_lost"),
        "unreachable",
        "the machine was lost in import",
    ),
    (
        record(*TO_IMPORT, error=fault("import", "Died", "signal 15")),
        SchedulerState("cancelled"),
        "cancelled",
        "cancelled in import",
    ),
    (
        record(*TO_IMPORT, error=fault("import", "Died", "signal 9")),
        SchedulerState("out_of_memory"),
        "failed",
        "died in import (out of memory)",
    ),
    (
        record(*TO_IMPORT, error=fault("import", "Died", "signal 11")),
        SchedulerState("completed", 0),
        "failed",
        "died in import (signal 11)",
    ),
    (NOTHING, None, "missing", "not started"),
    (NOTHING, SchedulerState("refused", reason="no such GPU"), "no_match", "refused: no such GPU"),
    (NOTHING, SchedulerState("expired"), "no_match", "pending until the deadline"),
    (NOTHING, SchedulerState("pending", reason="Resources"), "missing", "pending: Resources"),
    (RUNS, SchedulerState("running"), "missing", "running in environment"),
    (RUNS, SchedulerState("timeout"), "timeout", "ended by the scheduler in environment"),
    (RUNS, SchedulerState("node_lost"), "unreachable", "the machine was lost in environment"),
    (NOTHING, SchedulerState("node_lost"), "unreachable", "the machine was lost before the first stage"),
    (RUNS, SchedulerState("cancelled"), "cancelled", "cancelled in environment"),
    (RUNS, SchedulerState("out_of_memory"), "failed", "died in environment (out of memory)"),
    (RUNS, SchedulerState("failed", -9), "failed", "died in environment (signal 9)"),
    (RUNS, SchedulerState("failed", 3), "failed", "died in environment (exit code 3)"),
    (RUNS, SchedulerState("failed"), "failed", "died in environment"),
    (NOTHING, SchedulerState("failed", 127), "unreachable", "the job ended before its first stage (exit code 127)"),
    (RUNS, SchedulerState("completed", 0), "missing", "the job ended without finishing its record in environment"),
    (RUNS, SchedulerState("unknown"), "missing", "the scheduler knows nothing of the job"),
    (RUNS, None, "missing", "nothing is known of the job; it was last in environment"),
]


@pytest.mark.parametrize(("found", "state", "status", "cause"), CASES)
def test_status_and_cause(found: ReadRecord, state: SchedulerState | None, status: str, cause: str | None) -> None:
    outcome = join(cell(), "november", found, state)
    assert (outcome.status, outcome.cause) == (status, cause)
    assert (outcome.key, outcome.group) == (cell().cell_id, "november")


def test_every_status_and_every_state_is_reached() -> None:
    assert {status for _, _, status, _ in CASES} == {
        *("passed", "failed", "no_match", "environment"),
        *("unreachable", "timeout", "cancelled", "missing"),
    }
    assert {state.state for _, state, _, _ in CASES if state is not None} == set(STATES)


def test_times_and_labels() -> None:
    state = SchedulerState("completed", 0, submitted=-5.0, started=-1.0, ended=99.0, label="17_3")
    outcome = join(cell(compute_capability="9.0", ranks=2), "november", record(*STAGES), state)
    assert (outcome.submitted, outcome.started, outcome.ended, outcome.gpus) == (-5.0, 0.0, 7.0, 2.0)
    assert outcome.labels == {
        "framework": "fleetalpha",
        "version": "1.0",
        "python": "3.11",
        "ranks": 2,
        "compute_capability": "9.0",
        "stage": "recipe",
        "host": "n1",
        "job": "17_3",
    }
    running = join(cell(), "november", RUNS, SchedulerState("running", submitted=-5.0))
    assert (running.started, running.ended) == (0.0, None)
    lost = join(cell(), "november", RUNS, SchedulerState("node_lost", ended=50.0))
    assert (lost.started, lost.ended) == (0.0, 50.0)


@pytest.mark.parametrize(
    "text",
    [
        "",
        '{"stages": {',
        "[]",
        "{}",
        '{"stages": [], "finished": true, "error": null}',
        '{"stages": {"import": null}, "finished": true, "error": null}',
        '{"stages": {"import": {"started": "now"}}, "finished": true, "error": null}',
        '{"stages": {"imports": {"started": 1}}, "finished": true, "error": null}',
        '{"stages": {}, "finished": true, "error": "no"}',
        '{"stages": {}, "finished": true, "error": null, "error": null}',
        "\x00\x00",
        "[" * 5000,
    ],
)
def test_a_torn_record_is_its_own_cells_fault(text: str, tmp_path: Path) -> None:
    (tmp_path / "record.json").write_text(text)
    found = read_record(tmp_path)
    assert found.content is None
    outcome = join(cell(), "november", found, SchedulerState("completed", 0))
    assert outcome.status == "missing"
    assert "record.json cannot be" in (outcome.cause or "")
    assert join(cell(), "november", found, SchedulerState("timeout")).status == "timeout"


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    (tmp_path / "record.json").write_bytes(b"\xff\xfe\x00{")
    assert "cannot be read" in (read_record(tmp_path).fault or "")
    (tmp_path / "record.json").unlink()
    assert read_record(tmp_path) == ReadRecord()
    (tmp_path / "record.json").mkdir()
    assert read_record(tmp_path).fault is not None


def test_clocks_that_run_backwards(tmp_path: Path) -> None:
    content = {"stages": {}, "error": None, "finished": False}
    content["stages"] = {
        "matched": {"started": 10.0, "ended": 11.0, "ok": True},
        "environment": {"started": 12.0, "ended": 11.5, "ok": True},
        "import": {"started": 5.0, "ended": None, "ok": None},
    }
    (tmp_path / "record.json").write_text(json.dumps(content))
    assert read_record(tmp_path).backwards == ["environment", "import"]
