"""Campaigns on a real SLURM of one node, which tests/slurm/start.sh starts; skipped where none answers."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from deep500.core.errors import FleetError
from deep500.fleet.compat.backend import SchedulerState
from deep500.fleet.compat.campaign import Campaign
from deep500.fleet.compat.collecting import OUTCOMES_FILE, collect_campaign
from deep500.fleet.compat.matrix import Matrix
from deep500.fleet.compat.planning import plan_campaign
from deep500.fleet.compat.running import outcomes_now, plan_run, run_campaign
from tests.unit.fleet.compat.support import HERE, fleet_cache, until  # noqa: F401 - a fixture
from tests.unit.fleet.compat.tiny_wheels import make_frameworks, make_wheel

PIP = "pip: {no_index: true, find_links: [wheels]}\n"
MATRIX = f"""
frameworks:
  fleetalpha: ["1.0", "2.0"]
  fleetbeta: {{versions: ["1.0", "2.0"], timeout_s: 4}}
  fleetgamma: ["1.0", "2.0"]
ranks: [1, 2]
{PIP}timeout_s: 60
"""
SLEEPS = f"frameworks: {{fleetbeta: ['1.0']}}\ntimeout_s: 90\n{PIP}"
WORKS = f"frameworks: {{fleetalpha: ['1.0', '2.0']}}\n{PIP}"

#: Submits, and kills who asked for it before the answer comes.
KILLS = '#!/bin/sh\n{sbatch} "$@" >/dev/null\nkill -9 $PPID\nsleep 0.5\n'


def answers() -> bool:
    """Whether the SLURM of tests/slurm answers here: nothing is submitted to a cluster on which others work."""
    if shutil.which("scontrol") is None:
        return False
    try:
        asked = subprocess.run(["scontrol", "show", "config"], capture_output=True, text=True, timeout=30, check=False)
    except subprocess.TimeoutExpired:
        return False
    return any(line.split() == ["ClusterName", "=", "deep500test"] for line in asked.stdout.splitlines())


pytestmark = [
    pytest.mark.slurm,
    pytest.mark.skipif(
        not answers(), reason="the SLURM of tests/slurm/start.sh does not run, or SLURM_CONF is not set"
    ),
]


def slurm(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout


@pytest.fixture
def options(fleet_cache: Path) -> dict[str, str]:  # noqa: F811
    return {"python": sys.executable, "cache": str(fleet_cache), "collect": "no"}


@pytest.fixture
def blocked() -> Iterator[Callable[[], None]]:
    """Take the whole node; what is returned gives it back."""
    job = slurm("sbatch", "--parsable", "--exclusive", "--output=/dev/null", "--wrap=sleep 120").strip()
    until(lambda: slurm("squeue", "--noheader", f"--jobs={job}", "--format=%T").strip() == "RUNNING")

    def give_back() -> None:
        subprocess.run(["scancel", job], check=False)

    yield give_back
    give_back()


def planned(folder: Path, matrix: str) -> Campaign:
    folder.mkdir(parents=True, exist_ok=True)
    make_frameworks(folder / "wheels")
    (folder / "matrix.yaml").write_text(matrix)
    made = plan_campaign(Matrix.read(folder / "matrix.yaml"), folder / "campaign")
    made.write()
    return made


def states(made: Campaign) -> dict[str, SchedulerState]:
    return outcomes_now(Campaign.read(made.folder))[1]


def ended(made: Campaign) -> bool:
    time.sleep(0.2)
    known = states(made)
    return len(known) == len(made.cells) and not any(state.active for state in known.values())


def memory(made: Campaign) -> dict[str, list[dict[str, object]]]:
    content: dict[str, list[dict[str, object]]] = json.loads((made.scheduler_folder / "slurm.json").read_text())
    return content


def run_by_command(made: Campaign, options: dict[str, str], **variables: str) -> int:
    given = [part for name, value in options.items() for part in ("--option", f"{name}={value}")]
    command = [sys.executable, "-m", "deep500", "fleet", "compat", "run", str(made.folder), "--on", "slurm", "--quiet"]
    return subprocess.run([*command, *given], env={**os.environ, **variables}, timeout=100, check=False).returncode


def test_a_campaign_whose_driver_is_killed_while_it_submits(tmp_path: Path, options: dict[str, str]) -> None:
    made = planned(tmp_path, MATRIX)
    assert len(made.cells) == 12
    wrapper = tmp_path / "bin" / "sbatch"
    wrapper.parent.mkdir()
    wrapper.write_text(KILLS.format(sbatch=shutil.which("sbatch")))
    wrapper.chmod(0o755)
    options = {**options, "collect": "yes"}
    assert run_by_command(made, options, PATH=f"{wrapper.parent}:{os.environ['PATH']}") == -9
    array = memory(made)["arrays"][0]
    assert (array["phase"], array["job_id"]) == ("submitting", None)  # its number was lost

    plan = plan_run(Campaign.read(made.folder))
    first = set(array["cells"])
    assert {cell.cell_id for cell in plan.active} | {cell.cell_id for cell in plan.done} == first
    run_campaign(Campaign.read(made.folder), "slurm", options)
    arrays = memory(made)["arrays"]
    assert [each["phase"] for each in arrays] == ["submitted"] * 4  # one for each shape: ranks, and the time limit
    assert sorted(cell for each in arrays for cell in each["cells"]) == sorted(c.cell_id for c in made.cells)

    until((made.folder / OUTCOMES_FILE).exists, 100)  # the last job collects, nobody else
    found: dict[str, list[tuple[str, str | None]]] = {}
    for outcome in collect_campaign(Campaign.read(made.folder)).outcomes:
        name = f"{outcome.labels['framework']} {outcome.labels['version']}"
        found.setdefault(name, []).append((outcome.status, outcome.cause))
    assert [status for status, _ in found["fleetalpha 1.0"] + found["fleetalpha 2.0"]] == ["passed"] * 4
    assert [status for status, _ in found["fleetbeta 1.0"]] == ["timeout"] * 2
    assert all("libfleet.so.2" in str(cause) for _, cause in found["fleetbeta 2.0"])
    assert found["fleetgamma 1.0"] == [("failed", "died in import (signal 9)")] * 2
    assert [status for status, _ in found["fleetgamma 2.0"]] == ["environment"] * 2

    jobs = Counter(line for line in slurm("squeue", "--states=all", "--noheader", "--format=%j").split())
    assert all(jobs[str(each["name"])] for each in arrays)
    again, plan = run_campaign(Campaign.read(made.folder), "slurm", options)
    assert (plan.cells, len(plan.done), len(memory(again)["arrays"])) == ((), 12, 4)
    assert not list(made.folder.glob("cells/*/attempts"))  # nothing ran twice


def test_what_no_node_meets_is_no_match(tmp_path: Path, options: dict[str, str]) -> None:
    made = planned(tmp_path, f"frameworks: {{fleetalpha: ['1.0']}}\nmemory_mb: 900000\nranks: [1, 2]\n{PIP}")
    made, _ = run_campaign(made, "slurm", options)
    for outcome in outcomes_now(made)[0].values():
        assert outcome.status == "no_match"
        assert outcome.cause is not None
        assert outcome.cause.startswith("refused: Memory specification can not be satisfied")
    assert plan_run(made).cells == ()  # that does not change by asking again
    assert slurm("squeue", "--noheader").strip() == ""


def test_a_gpu_is_asked_for_and_seen(tmp_path: Path, options: dict[str, str]) -> None:
    source = "import os\ndef device_count():\n    return len(os.environ['CUDA_VISIBLE_DEVICES'].split(','))\n"
    make_wheel(tmp_path / "wheels", "fleetgpu", "1.0", source)
    (tmp_path / "probe.py").write_text("from fleetgpu import device_count\n")
    matrix = f"frameworks: {{fleetgpu: {{versions: ['1.0'], probe: '{tmp_path}/probe.py'}}}}\n{PIP}"
    made = planned(tmp_path, matrix + "compute_capability: ['8.0', '9.0']\nranks: [2, 3]\n")
    wanted = {**options, "features": "8.0=sm80,9.0=h100"}
    with pytest.raises(FleetError, match=r"no request for the compute capability 9\.0"):
        run_campaign(made, "slurm", {**options, "features": "8.0=sm80"})
    made, _ = run_campaign(made, "slurm", wanted)
    until(lambda: ended(made))
    found = {(o.labels["compute_capability"], o.labels["ranks"]): o for o in outcomes_now(made)[0].values()}
    assert found["8.0", 2].labels["stage"] in ("kernel", "collective", "recipe"), found["8.0", 2].cause
    assert found["8.0", 3].cause == "refused: Requested node configuration is not available"
    assert found["9.0", 2].cause == "refused: Invalid feature specification"
    record = json.loads((made.cell_folder(found["8.0", 2].key) / "record.json").read_text())
    assert record["stages"]["device_count"]["ok"] is True
    assert "2" in record["stages"]["device_count"]["detail"]


def test_pending_past_the_deadline_is_no_match(
    tmp_path: Path, options: dict[str, str], blocked: Callable[[], None]
) -> None:
    made, _ = run_campaign(planned(tmp_path, WORKS), "slurm", {**options, "pending-s": "1"})
    until(lambda: ended(made))
    for outcome in outcomes_now(made)[0].values():
        assert outcome.status == "no_match"
        assert outcome.started is None
        assert outcome.cause is not None
        assert outcome.cause.startswith("pending until the deadline")
    blocked()


def test_who_is_cancelled_is_cancelled(tmp_path: Path, options: dict[str, str]) -> None:
    made, _ = run_campaign(planned(tmp_path, SLEEPS + "ranks: [1, 2, 3]\n"), "slurm", {**options, "concurrent": "1"})

    def importing() -> list[str]:
        time.sleep(0.1)
        outcomes = outcomes_now(made)[0].values()
        return [o.key for o in outcomes if o.labels.get("stage") == "import"]

    until(lambda: len(importing()) >= 1)
    for array in memory(made)["arrays"]:
        slurm("scancel", str(array["job_id"]))
    until(lambda: ended(made))
    outcomes = outcomes_now(made)[0]
    assert {outcome.status for outcome in outcomes.values()} == {"cancelled"}
    ran = [outcome for outcome in outcomes.values() if outcome.labels.get("stage") == "import"]
    assert ran  # the job was asked to end, and said so in its record
    errors = [json.loads((made.cell_folder(each.key) / "record.json").read_text())["error"] for each in ran]
    assert all(error["message"] == "ended by SIGTERM" for error in errors)
    assert len(plan_run(made).cells) == 3  # what was cancelled is run again


@pytest.mark.slow
def test_a_job_that_runs_outlives_its_deadline(tmp_path: Path) -> None:
    """The deadline bounds the time spent pending, which the backend relies on; SLURM looks each half minute."""
    mark = tmp_path / "mark"
    wrap = f"--wrap=sleep 70; touch {mark}"
    job = slurm("sbatch", "--parsable", "--output=/dev/null", "--time=2", "--deadline=now+122", wrap).strip()
    until(lambda: slurm("squeue", "--noheader", f"--jobs={job}", "--format=%T").strip() == "RUNNING")
    slurm("scontrol", "update", f"jobid={job}", "deadline=now+1", "timelimit=5")
    until(mark.exists, 100)
    assert mark.exists()
