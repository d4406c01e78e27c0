from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from deep500.core.errors import FleetError, UnknownNameError
from deep500.fleet.compat.backend import SchedulerState, new_backend
from deep500.fleet.compat.backends.local import LocalBackend
from deep500.fleet.compat.campaign import Campaign
from deep500.fleet.compat.collecting import collect_campaign
from deep500.fleet.compat.matrix import Matrix
from deep500.fleet.compat.package_index import PackageIndex
from deep500.fleet.compat.planning import plan_campaign
from deep500.fleet.compat.running import outcomes_now, plan_run, run_campaign
from tests.unit.fleet.compat.support import HERE, alive, campaign_of, cell, fleet_cache, until  # noqa: F401 - a fixture
from tests.unit.fleet.compat.tiny_wheels import make_frameworks

MATRIX = """
frameworks:
  fleetbeta: {versions: ["1.0", "2.0"], timeout_s: 1.5}
  fleetalpha: ["1.0", "2.0"]
  fleetgamma: ["1.0", "2.0"]
ranks: [1, 2]
pip: {no_index: true, find_links: [wheels]}
timeout_s: 60
"""


def planned(folder: Path, matrix: str = MATRIX, offline: bool = True) -> Campaign:
    make_frameworks(folder / "wheels")
    (folder / "matrix.yaml").write_text(matrix)
    made = plan_campaign(Matrix.read(folder / "matrix.yaml"), folder / "campaign", offline=offline)
    made.write()
    return made


def start_driver(made: Campaign, cache: Path, **variables: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "deep500", "fleet", "compat", "run", str(made.folder), "--on", "local"]
    options = ["--option", f"cache={cache}", "--option", "jobs=2"]
    return subprocess.Popen(
        command + options, env={**os.environ, **variables}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )


def statuses(made: Campaign) -> dict[str, list[str]]:
    """Return the statuses by framework and version, of one rank and of two."""
    found: dict[str, list[str]] = {}
    for outcome in collect_campaign(made).outcomes:
        found.setdefault(f"{outcome.labels['framework']} {outcome.labels['version']}", []).append(outcome.status)
    return found


def running_job(made: Campaign) -> dict[str, int]:
    """Return the processes of the jobs that run, by cell."""
    found = {}
    for path in (made.scheduler_folder / "local").glob("*.json"):
        said = json.loads(path.read_text())
        if said["state"] == "running" and alive(said["pid"]):
            found[path.stem] = said["pid"]
    return found


def test_a_campaign_whose_driver_is_killed(tmp_path: Path, fleet_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    count = tmp_path / "count"
    monkeypatch.setenv("FLEET_TEST_COUNT", str(count))
    made = planned(tmp_path)
    assert len(made.cells) == 12
    driver = start_driver(made, fleet_cache)
    until(lambda: count.exists() and count.read_text().count("\n") >= 2, 100)  # both cells of fleetbeta 1.0 import
    driver.kill()
    driver.wait()
    current = Campaign.read(made.folder)
    active = plan_run(current).active
    assert len(active) == 2  # they go on without the driver, and are not started again
    until(lambda: not plan_run(current).active)
    assert statuses(current)["fleetbeta 1.0"] == ["timeout", "timeout"]
    begun = {outcome.key for outcome in collect_campaign(current).outcomes if outcome.status != "missing"}
    assert len(begun) < 12

    options = {"cache": str(fleet_cache), "jobs": "2"}
    current, plan = run_campaign(current, "local", options)
    assert {c.cell_id for c in plan.cells} == {c.cell_id for c in made.cells} - begun
    assert statuses(current) == {
        "fleetbeta 1.0": ["timeout"] * 2,
        "fleetbeta 2.0": ["failed"] * 2,
        "fleetalpha 1.0": ["passed"] * 2,
        "fleetalpha 2.0": ["passed"] * 2,
        "fleetgamma 1.0": ["failed"] * 2,
        "fleetgamma 2.0": ["environment"] * 2,
    }
    causes = {outcome.key.split("-python")[0]: outcome.cause for outcome in collect_campaign(current).outcomes}
    assert causes["fleetbeta-1.0"] == "in import: not done after 1.5 s"
    assert causes["fleetbeta-2.0"] == "import: libfleet.so.2: cannot open shared object file"
    assert causes["fleetgamma-1.0"] == "died in import (signal 9)"
    assert "fleetgamma 2.0 depends on fleetlow<2" in (causes["fleetgamma-2.0"] or "")

    once = Counter(count.read_text().splitlines())
    assert once == {f"{name} {version}": 2 for name in ("fleetalpha", "fleetbeta") for version in ("1.0", "2.0")} | {
        "fleetgamma 1.0": 2
    }
    _, plan = run_campaign(current, "local", options)
    assert (len(plan.cells), len(plan.done)) == (0, 12)
    assert Counter(count.read_text().splitlines()) == once
    with pytest.raises(FleetError, match="There is no status"):
        run_campaign(current, "local", options, rerun=["bad"])


SLOW = """
frameworks:
  fleetbeta: {versions: ["1.0"], timeout_s: 120}
  fleetalpha: ["1.0"]
pip: {no_index: true, find_links: [wheels]}
"""


def test_interrupted_and_killed(tmp_path: Path, fleet_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    count = tmp_path / "count"
    monkeypatch.setenv("FLEET_TEST_COUNT", str(count))
    made = planned(tmp_path, SLOW)
    driver = start_driver(made, fleet_cache)
    until(lambda: count.exists() and "fleetbeta" in count.read_text(), 100)
    until(lambda: list(statuses(Campaign.read(made.folder)).values())[1] == ["passed"])
    with pytest.raises(FleetError, match="Another process runs the campaign"):
        run_campaign(Campaign.read(made.folder), "local", {"cache": str(fleet_cache)})
    until(lambda: len(running_job(made)) == 1)  # a job that has told its result is about to end
    (pid,) = running_job(made).values()
    driver.send_signal(signal.SIGINT)
    assert driver.wait(30) == 130
    assert not alive(pid)
    current = Campaign.read(made.folder)
    assert statuses(current) == {"fleetbeta 1.0": ["cancelled"], "fleetalpha 1.0": ["passed"]}
    assert [c.framework for c in plan_run(current).cells] == ["fleetbeta"]  # what was interrupted goes on

    driver = start_driver(current, fleet_cache)
    until(lambda: count.read_text().count("fleetbeta") == 2 and len(running_job(made)) == 1, 100)
    (pid,) = running_job(made).values()
    os.kill(pid, signal.SIGKILL)  # the job, not its driver
    assert driver.wait(30) == 0
    outcomes, states = outcomes_now(Campaign.read(made.folder))
    (key,) = [key for key in outcomes if key.startswith("fleetbeta")]
    assert (outcomes[key].status, outcomes[key].cause) == ("failed", "died in import (signal 9)")
    assert states[key].exit_code == -9


def test_memory_that_cannot_be_read_and_processes_that_are_gone(tmp_path: Path) -> None:
    made = campaign_of(tmp_path, cell(), cell(ranks=2), cell(ranks=3))
    memory = made.scheduler_folder / "local"
    memory.mkdir(parents=True)
    names = [c.cell_id for c in made.cells]
    (memory / f"{names[0]}.json").write_text("{")
    said = {"state": "running", "pid": 2**22 + 1, "created": 1.0, "submitted": 1.0, "ended": None, "exit_code": None}
    (memory / f"{names[1]}.json").write_text(json.dumps({**said, "started": 4e9, "reason": ""}))
    (memory / f"{names[2]}.json").write_text(json.dumps({**said, "started": 5.0, "reason": ""}))
    states = LocalBackend({}).states(made)
    assert states[names[0]].state == "unknown"
    (memory / f"{names[0]}.json").write_text(json.dumps({**said, "state": "completed", "started": "x", "reason": ""}))
    assert LocalBackend({}).states(made)[names[0]].state == "unknown"
    assert (states[names[1]].state, states[names[1]].reason) == ("failed", "its process is gone")
    assert states[names[2]].state == "node_lost"  # it began before the machine was started


def test_options() -> None:
    with pytest.raises(FleetError, match="Did you mean 'jobs'"):
        new_backend("local", {"job": "2"})
    with pytest.raises(FleetError, match="a whole number"):
        new_backend("local", {"jobs": "0"})
    with pytest.raises(UnknownNameError):
        new_backend("locall", {})
    with pytest.raises(FleetError, match="Did you mean 'running'"):
        SchedulerState("runing")


def test_a_python_that_cannot_be_started(tmp_path: Path) -> None:
    made = campaign_of(tmp_path, cell())
    with pytest.raises(FleetError, match="cannot be started"):
        run_campaign(made, "local", {"python": "/no/such/python"})


def test_a_campaign_stays_with_its_backend(tmp_path: Path) -> None:
    made = campaign_of(tmp_path, cell())
    current, plan = run_campaign(made, "local", {}, generate_only=True)
    assert len(plan.cells) == 1
    script = (made.scheduler_folder / "run.sh").read_text()
    assert f"cell_job.py {made.cell_folder(cell())}" in script
    assert Campaign.read(made.folder).backend == "local"
    with pytest.raises(FleetError, match="was run by 'local'"):
        run_campaign(current, "slurm", {})


REAL = """
frameworks:
  numpy: {versions: newest 2, adapter: reference}
  onnxruntime: newest 2
recipe: [null, digits_mlp]
deep500: SOURCES
rules:
  - {framework: numpy, version: "<VERSION", recipe: digits_mlp, reason: one environment with Deep500 is enough}
timeout_s: 300
"""


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_real_versions_with_a_recipe(tmp_path: Path, fleet_cache: Path) -> None:  # noqa: F811
    if PackageIndex().offer("numpy", HERE).fault is not None:
        pytest.skip("there is no package index here")
    project = Path(__file__).parents[5]
    sources = tmp_path / "sources"  # a copy: what builds a wheel writes beside its sources
    for name in ("deep500", "native_ops", "recipes"):
        shutil.copytree(project / name, sources / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(project / name, sources)
    newest = PackageIndex().offer("numpy", HERE).versions[0]
    made = planned(tmp_path, REAL.replace("SOURCES", str(sources)).replace("VERSION", newest), offline=False)
    assert len(made.cells) == 5
    current, _ = run_campaign(made, "local", {"cache": str(fleet_cache), "jobs": "1"})
    collected = collect_campaign(current)
    assert {outcome.status for outcome in collected.outcomes} == {"passed"}
    assert all(collected.stages[c.cell_id]["kernel"] == "ok" for c in current.cells)
    (trained,) = (c.cell_id for c in current.cells if c.recipe is not None)
    assert collected.stages[trained]["recipe"] == "ok"
