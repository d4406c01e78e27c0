from __future__ import annotations

import json
from pathlib import Path

from deep500.fleet.compat.job_record import JobRecord
from deep500.fleet.compat.joining import read_record


def test_every_step_is_on_disk_at_once(tmp_path: Path) -> None:
    record = JobRecord.new(tmp_path, "a-1", 2)
    assert record.stage == "matched"
    record.begin("matched")
    assert read_record(tmp_path).stages["matched"]["ok"] is None
    record.end("host", gpus=[])
    record.begin("environment")
    again = JobRecord.load(tmp_path)
    assert again.stage == "environment"
    again.fail("Died", "signal 9\n\x1b[31m" + "x" * 5000)
    again.finish()
    content = json.loads((tmp_path / "record.json").read_text())
    assert (content["cell"], content["attempt"], content["finished"]) == ("a-1", 2, True)
    assert content["stages"]["matched"]["detail"] == "host"
    assert content["error"]["stage"] == "environment"
    assert content["error"]["message"].startswith(r"signal 9 \x1b[31mxx")
    assert len(content["error"]["message"]) < 2010
    assert [path.name for path in tmp_path.iterdir()] == ["record.json"]


def test_a_record_without_stages_fails_in_the_first(tmp_path: Path) -> None:
    record = JobRecord.new(tmp_path, "a-1", 1)
    record.fail("Terminated", "SIGTERM")
    assert read_record(tmp_path).stage == "matched"
