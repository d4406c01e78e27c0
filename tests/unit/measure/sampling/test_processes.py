from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from deep500.core.errors import MeasurementError
from deep500.measure.sampling.launch import Launch
from deep500.measure.sampling.plan import SamplingPlan
from deep500.measure.sampling.processes import launch_process
from tests.unit.measure.sampling.workloads import HERE

QUICK = SamplingPlan(minimum_time_s=0.0, warm_up=1, time_limit_s=1.0)


def launch(*names: str, plan: SamplingPlan = QUICK, tell: Any = lambda *_: None, environment: bool = False) -> Launch:
    specs = [f"{HERE}:{name}" for name in names]
    return launch_process(specs, plan, seed=0, number=0, environment=environment, tell=tell)


def test_launch_comes_back_whole() -> None:
    told: list[tuple[str, int, str]] = []

    found = launch("quick", "Described,seconds=0.0002", tell=lambda *what: told.append(what), environment=True)

    quick, described = found.systems
    assert quick.spec == f"{HERE}:quick"
    assert len(quick.metric().rows[0]) == len(described.metric().rows[0]) >= 10
    assert min(described.metric().rows[0]) >= 2e-4
    assert (described.work.items, described.work.item) == (3, "sheep")
    assert described.scores[0].acceptable == 97.0
    assert described.data_hash == "0" * 64
    assert found.process.fresh is True
    assert found.process.run_s > 0
    assert found.environment["sections"]["process"]
    assert told[-1][0] == "sampling"


def test_threads_reach_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "7")

    assert launch("Described").systems[0].factors["omp"] == "7"
    assert launch("Described", plan=SamplingPlan(warm_up=1, threads=2)).systems[0].factors["omp"] == "2"


def test_what_a_workload_prints_disturbs_nobody(capfd: pytest.CaptureFixture[str]) -> None:
    assert len(launch("print_much").systems[0].metric().rows[0]) >= 10
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("name", ["fork_child", "ask", "leave_thread"])
def test_workload_that_forks_asks_or_leaves_threads_is_measured(name: str) -> None:
    plan = SamplingPlan(minimum_time_s=0.0, warm_up=1, calls_per_sample=1, time_limit_s=5.0)

    assert len(launch(name, plan=plan).systems[0].metric().rows[0]) >= 10


def test_nothing_that_a_workload_started_is_left() -> None:
    launch("leave_child", plan=SamplingPlan(minimum_time_s=0.0, warm_up=1, calls_per_sample=1))

    deadline = time.monotonic() + 10  # a signal is sent at once, and the kernel ends the process when it comes to it
    while (left := _running("98765")) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not left


def _running(argument: str) -> list[psutil.Process]:
    """Return the processes that were started with the argument and have not ended."""
    found = [p for p in psutil.process_iter(["cmdline", "status"]) if argument in (p.info["cmdline"] or [])]
    return [p for p in found if p.info["status"] != psutil.STATUS_ZOMBIE]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("fail", r"A run of .*:fail failed: ValueError: no luck"),
        ("nothing", r"nothing"),
        ("die", r"died \(exit code 7\) before it had finished. Its last words: last words"),
        ("crash", r"died \(SIGSEGV\)"),
        ("Unspeakable", r"cannot say what it is: KeyError: 'identity'"),
        ("Broken", r"no such luck"),
        ("Described,colour=3", r"colour"),
    ],
)
def test_failures_are_told(name: str, message: str) -> None:
    with pytest.raises(MeasurementError, match=message):
        launch(name)


def test_interruption_ends_the_process() -> None:
    before = set(psutil.Process().children())  # a library's helpers, such as torch's pool of compilers
    seen: list[int] = []

    def interrupt(*_: Any) -> None:
        seen.extend(child.pid for child in psutil.Process().children() if child not in before)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        launch("quick", tell=interrupt)
    assert len(seen) == 1
    assert not psutil.pid_exists(seen[0])


def test_process_ends_when_its_parent_is_killed(tmp_path: Path) -> None:
    program = (
        "from deep500.measure.sampling.processes import launch_process\n"
        "from deep500.measure.sampling.plan import SamplingPlan\n"
        f"launch_process(['{HERE}:sleep_long'], SamplingPlan(), seed=0, number=0, environment=False, tell=print)\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", program])
    try:
        children = _wait_for(lambda: psutil.Process(parent.pid).children(), 30)
        os.kill(parent.pid, signal.SIGKILL)
        parent.wait()
        _wait_for(lambda: not children[0].is_running() or children[0].status() == psutil.STATUS_ZOMBIE, 30)
    finally:
        parent.kill()
    assert not children[0].is_running() or children[0].status() == psutil.STATUS_ZOMBIE


def _wait_for(condition: Any, limit_s: float) -> Any:
    deadline = time.monotonic() + limit_s
    while not (found := condition()) and time.monotonic() < deadline:
        time.sleep(0.02)
    return found
