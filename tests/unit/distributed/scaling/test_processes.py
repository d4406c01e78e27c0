"""Launches report, fail in words, and are never left behind."""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
from pathlib import Path

import pytest

from deep500.core.errors import MeasurementError, MissingDependencyError, RecipeError
from deep500.distributed.scaling import processes
from deep500.distributed.scaling.processes import read_job, report_failure, report_result, run_job

PROGRAM = """
import os, sys, time
if "DEEP500_TEST_PID" in os.environ:
    with open(os.environ["DEEP500_TEST_PID"], "w") as file:
        file.write(str(os.getpid()))
    time.sleep(60)
from deep500.core.errors import RecipeError
from deep500.distributed.scaling.processes import read_job, report_failure, report_result
folder = sys.argv[1]
what = read_job(folder)["what"]
if what == "result":
    report_result(folder, {"threads": os.environ["OMP_NUM_THREADS"]})
if what == "own error":
    report_failure(folder, RecipeError("no such thing"), 2)
if what == "error":
    report_failure(folder, ValueError("a fault\\nof its own"), 1)
if what == "silence":
    print("the last words")
    os._exit(0)
"""


@pytest.fixture(autouse=True)
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "planted_rank_program.py").write_text(PROGRAM)
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")


def run(what: str, timeout_s: float = 30.0) -> dict:
    return run_job("planted_rank_program", {"what": what}, 1, threads=3, timeout_s=timeout_s)


def test_result_of_a_launch_with_its_threads() -> None:
    assert run("result") == {"threads": "3"}


def test_failures_are_told() -> None:
    with pytest.raises(RecipeError, match=r"^no such thing$"):
        run("own error")
    with pytest.raises(MeasurementError, match="Rank 1 failed: ValueError: a fault of its own"):
        run("error")
    with pytest.raises(MeasurementError, match=r"exit code 0\) before it had measured.*the last words"):
        run("silence")


def test_launch_that_takes_too_long_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEEP500_TEST_PID", str(tmp_path / "pid"))
    with pytest.raises(MeasurementError, match="within 2 s"):
        run("sleep", timeout_s=2.0)
    pid = int((tmp_path / "pid").read_text())
    deadline = time.monotonic() + 5
    while Path(f"/proc/{pid}").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not Path(f"/proc/{pid}").exists()


def test_no_launcher(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingDependencyError, match=r"deep500\[mpi\]"):
        run_job("planted_rank_program", {}, 2, threads=1, timeout_s=5.0)


def test_reports_appear_whole(tmp_path: Path) -> None:
    (tmp_path / "job.json").write_text('{"kind": "x"}')
    assert read_job(str(tmp_path)) == {"kind": "x"}
    report_result(str(tmp_path), {"a": 1.5})
    report_failure(str(tmp_path), KeyError("k"), 12)
    assert sorted(path.name for path in tmp_path.glob("[!_j]*.json")) == ["failure.000012.json", "result.json"]
    with pytest.raises(ValueError, match="JSON"):
        report_result(str(tmp_path), {"a": float("nan")})


def test_names_of_failures_match() -> None:
    assert processes._FAILURE.format(rank="*").startswith("failure.")


def test_fault_of_a_users_code_is_told_with_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "planted_user_code.py").write_text("import json\n\n\ndef step():\n    json.loads('{')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    step = importlib.import_module("planted_user_code").step

    for error in (ValueError("no traceback"), RecipeError("its own")):
        report_failure(str(tmp_path), error, 0)
        assert ".py" not in (tmp_path / "failure.000000.json").read_text()
    with pytest.raises(ValueError, match="Expecting") as caught:
        step()
    report_failure(str(tmp_path), caught.value, 0)
    message = str(processes._reported(json.loads((tmp_path / "failure.000000.json").read_text())))
    assert message.startswith(f"Rank 0 failed: {tmp_path / 'planted_user_code.py'}:5: JSONDecodeError: Expecting")
