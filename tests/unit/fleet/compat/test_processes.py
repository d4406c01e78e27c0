from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from deep500.fleet.compat.processes import Ended, OutOfTimeError, run, terminated_as_exit, without_python_settings
from tests.unit.fleet.compat.support import alive, until

#: Starts a process that never ends and ignores SIGTERM, and writes both numbers.
FAMILY = """
import os, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
print(os.getpid(), child.pid, flush=True)
if sys.argv[1:] == ["wait"]:
    time.sleep(600)
"""


def soon(seconds: float = 60.0) -> float:
    return time.monotonic() + seconds


def run_python(program: str, output: Path, *arguments: str, deadline: float) -> int:
    with output.open("w") as file:
        return run([sys.executable, "-c", program, *arguments], deadline, file, subprocess.STDOUT)


def test_exit_codes_and_signals(tmp_path: Path) -> None:
    assert run_python("raise SystemExit(3)", tmp_path / "o", deadline=soon()) == 3
    assert run_python("import os; os.kill(os.getpid(), 9)", tmp_path / "o", deadline=soon()) == -9
    with pytest.raises(FileNotFoundError):
        run(["/no/such/program"], soon(), subprocess.DEVNULL, subprocess.DEVNULL)


def test_what_a_process_leaves_behind_is_ended(tmp_path: Path) -> None:
    assert run_python(FAMILY, tmp_path / "o", deadline=soon()) == 0
    pids = [int(word) for word in (tmp_path / "o").read_text().split()]
    assert len(pids) == 2
    until(lambda: not any(map(alive, pids)))


def test_deadline_ends_the_whole_group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deep500.fleet.compat.processes._GRACE_S", 0.1)
    with pytest.raises(OutOfTimeError):
        run_python(FAMILY, tmp_path / "o", "wait", deadline=soon(1.0))
    pids = [int(word) for word in (tmp_path / "o").read_text().split()]
    until(lambda: not any(map(alive, pids)))


def test_a_signal_becomes_an_exception_once() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(Ended, match="SIGTERM"), terminated_as_exit():  # noqa: PT012 - the block is what is tested
        try:
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(5)
        finally:
            os.kill(os.getpid(), signal.SIGTERM)  # must not cut short what ends the children
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_process_ends_when_its_parent_is_killed_or_its_time_is_up(tmp_path: Path) -> None:
    lonely = "import os, time; from deep500.fleet.compat.processes import end_when_alone\n"
    child = f"{lonely}end_when_alone(600); print(os.getpid(), flush=True); time.sleep(600)"
    parent = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}], start_new_session=True)"
    with (tmp_path / "o").open("w") as output:
        process = subprocess.Popen([sys.executable, "-c", parent], stdout=output)
        until(lambda: (tmp_path / "o").read_text().strip() != "")
        pid = int((tmp_path / "o").read_text())
        process.kill()
        process.wait()
        until(lambda: not alive(pid))
        stuck = f"{lonely}end_when_alone(0.2)\nwhile True: pass"
        assert subprocess.run([sys.executable, "-c", stuck], check=False).returncode == -signal.SIGALRM


def test_settings_of_another_python_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", "/elsewhere")
    monkeypatch.setenv("VIRTUAL_ENV", "/elsewhere")
    monkeypatch.setenv("KEPT", "yes")
    made = without_python_settings()
    assert "PYTHONPATH" not in made
    assert "VIRTUAL_ENV" not in made
    assert made["KEPT"] == "yes"
