"""HTCondor without a daemon: its own parser reads the files, its own language decides, its own reader reads the log."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import datetime
from pathlib import Path

import pytest

from deep500.core.errors import FleetError
from deep500.fleet.compat.backend import SchedulerState
from deep500.fleet.compat.backends._htcondor_files import periodic_remove
from deep500.fleet.compat.backends.htcondor import HTCondorBackend
from deep500.fleet.compat.campaign import Campaign
from deep500.fleet.compat.cell import Cell
from deep500.fleet.compat.running import outcomes_now, plan_run, run_campaign
from tests.unit.fleet.compat.support import campaign_of, cell

htcondor2 = pytest.importorskip("htcondor2", reason="the extra 'htcondor' is not installed")
classad2 = pytest.importorskip("classad2")

CELLS = (cell(), cell(version="2.0"), cell(compute_capability="8.0", cuda="12.6", ranks=2, cpus=4, memory_mb=9000))
NOW = 1_800_000_000


def generated(folder: Path, *cells: Cell, **options: str) -> Path:
    """Return the folder of the DAG."""
    made = campaign_of(folder, *cells)
    made.prepare(cells)
    made.scheduler_folder.mkdir()
    paths = HTCondorBackend({name.replace("_", "-"): value for name, value in options.items()}).generate(made, cells)
    assert all(path.is_file() for path in paths)
    return paths[0].parent


def submit_of(dag: Path, name: str) -> dict[str, str]:
    """Return what HTCondor's own parser reads in a submit description."""
    return {key: str(value) for key, value in htcondor2.Submit((dag / f"{name}.sub").read_text()).items()}


# --- the files


def test_one_description_for_each_shape(tmp_path: Path) -> None:
    dag = generated(tmp_path, *CELLS, require_gpus="GlobalMemoryMb >= 16000", requirements="OpSysMajorVer == 9")
    cpu, gpu = submit_of(dag, "shape1"), submit_of(dag, "shape2")
    assert (cpu["request_cpus"], cpu["request_memory"], cpu.get("request_gpus")) == ("1", "4096", None)
    assert (gpu["request_cpus"], gpu["request_memory"], gpu["request_gpus"]) == ("4", "9000", "2")
    assert gpu["gpus_minimum_capability"] == gpu["gpus_maximum_capability"] == "8.0"
    assert gpu["gpus_minimum_runtime"] == "12.6"
    assert gpu["require_gpus"] == "GlobalMemoryMb >= 16000"
    assert "require_gpus" not in cpu
    assert cpu["requirements"] == "OpSysMajorVer == 9"
    assert (cpu["transfer_output_files"], cpu["when_to_transfer_output"]) == ("left", "ON_EXIT")
    given = htcondor2.Submit((dag / "shape1.sub").read_text())
    given["cell"] = CELLS[0].cell_id  # as VARS does
    assert (dag / given.expand("initialdir")).resolve() == (dag.parent.parent / "cells" / CELLS[0].cell_id).resolve()
    for path in given.expand("transfer_input_files").split(", "):
        assert (dag / given.expand("initialdir") / path).exists(), path
    assert os.access(given.expand("executable"), os.X_OK)


def test_one_node_for_each_cell(tmp_path: Path) -> None:
    dag = generated(tmp_path, *CELLS, concurrent="7")
    lines = (dag / "campaign.dag").read_text().splitlines()
    nodes = json.loads((dag / "nodes.json").read_text())["nodes"]
    assert sorted(nodes.values()) == sorted(each.cell_id for each in CELLS)
    for node, cell_id in nodes.items():
        assert not set(node) & set(".+")  # which DAGMan does not allow
        job = next(line.split() for line in lines if line.startswith(f"JOB {node} "))
        assert Path(job[2]).is_file()
        assert f'VARS {node} cell="{cell_id}"' in lines
        assert f"SCRIPT PRE {node} ./before.py {cell_id}" in lines
        assert f"SCRIPT POST {node} ./after.py {cell_id} $RETURN $JOBID" in lines
        assert f"PRE_SKIP {node} 2" in lines
    assert "FINAL collect collect.sub" in lines
    assert "NODE_STATUS_FILE status.txt 30" in lines
    config = (dag / "dagman.config").read_text().splitlines()
    assert config == ["DAGMAN_MAX_JOB_HOLDS = 1", "DAGMAN_MAX_JOBS_SUBMITTED = 7"]
    collect = submit_of(dag, "collect")
    assert (collect["universe"], collect["executable"]) == ("local", sys.executable)
    assert collect["arguments"] == f"\"-m deep500 fleet compat collect '{tmp_path / 'campaign'}'\""
    assert "FINAL" not in (generated(tmp_path / "b", *CELLS, collect="no") / "campaign.dag").read_text()


@pytest.mark.parametrize(
    ("status", "age", "removed"),
    [(1, 86401, True), (1, 86399, False), (2, 10**6, False), (5, 10**6, False), (3, 10**6, False), (7, 10**6, False)],
)
def test_only_idle_jobs_are_removed(status: int, age: int, removed: bool, tmp_path: Path) -> None:
    """Idle is 1, running 2, removed 3, held 5, suspended 7."""
    written = submit_of(generated(tmp_path, *CELLS), "shape1")["periodic_remove"]
    assert written == periodic_remove(86400.0)
    expression = classad2.ExprTree(written.replace("time()", str(NOW)))
    assert expression.eval(classad2.ClassAd({"JobStatus": status, "EnteredCurrentStatus": NOW - age})) is removed


def test_lines_of_the_pool(tmp_path: Path) -> None:
    (tmp_path / "lines").write_text('+WantGPULab = true\n+GPUJobLength = "short"\n')
    dag = generated(tmp_path, *CELLS, lines=str(tmp_path / "lines"))
    assert 'GPUJobLength = "short"' in (dag / "shape1.sub").read_text()
    (tmp_path / "lines").write_text("Request_CPUs = 7\n")
    with pytest.raises(FleetError, match="sets 'request_cpus', which the campaign sets itself"):
        generated(tmp_path / "b", *CELLS, lines=str(tmp_path / "lines"))
    with pytest.raises(FleetError, match="cannot be read"):
        HTCondorBackend({"lines": str(tmp_path / "none")})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"requirements": "a =="}, "no ClassAd expression"),
        ({"requirements": "a == 1\nqueue 100"}, "no ClassAd expression"),
        ({"require-gpus": "$(a) == 1"}, "no ClassAd expression"),
        ({"python": "a\nqueue 100"}, "would read otherwise"),
        ({"python": "$(x)"}, "would read otherwise"),
        ({"pending-s": "-1"}, "a number above zero"),
        ({"memory-mb": "nan"}, "a number above zero"),
        ({"collect": "1"}, "accepted are yes and no"),
        ({"require_gpus": "x"}, "Did you mean 'require-gpus'"),
    ],
)
def test_options_that_are_refused(options: dict[str, str], message: str) -> None:
    with pytest.raises(FleetError) as caught:
        HTCondorBackend(options)
    assert message in str(caught.value)


@pytest.mark.parametrize("name", ["a b", "a$(b)", "a'b", 'a"b'])
def test_folders_that_a_dag_cannot_hold(name: str, tmp_path: Path) -> None:
    with pytest.raises(FleetError, match="The folder"):
        generated(tmp_path / name, *CELLS)


def test_nasty_names_mean_nothing(tmp_path: Path) -> None:
    nasty = cell(framework='a"; $(queue) b', version="1\nqueue 9", recipe="../$(touch x) y.py")
    dag = generated(tmp_path, nasty)
    assert (dag / "shape1.sub").read_text().count("queue") == 1
    assert sum(line.startswith("JOB ") for line in (dag / "campaign.dag").read_text().splitlines()) == 1


# --- what runs: the job's script, and the scripts before and after it


def test_a_node_from_before_to_after(tmp_path: Path) -> None:
    dag, cell_id = generated(tmp_path, *CELLS, python="./python"), CELLS[0].cell_id
    folder = tmp_path / "campaign" / "cells" / cell_id
    machine = tmp_path / "machine"  # the execute machine's own folder, with what is transferred
    machine.mkdir()
    (machine / "python").write_text(
        "#!/bin/sh\necho '{\"finished\": true}' > record.json\necho $1 $2 > stdout.txt\nexit 3\n"
    )
    (machine / "python").chmod(0o755)

    def script(name: str, *arguments: str) -> int:
        return subprocess.run([sys.executable, f"./{name}.py", *arguments], cwd=dag, check=False).returncode

    assert script("before", cell_id) == 0
    assert subprocess.run([dag / "run_cell.sh"], cwd=machine, check=False).returncode == 3
    assert sorted(path.name for path in (machine / "left").iterdir()) == ["record.json", "stdout.txt"]
    (machine / "left").rename(folder / "left")  # what HTCondor brings back
    assert script("after", cell_id, "3", "42.0") == 0
    assert (folder / "stdout.txt").read_text() == "job/cell_job.py .\n"
    assert json.loads((dag / "ends" / f"{cell_id}.json").read_text()) == {"return": 3, "job": "42.0", "faults": []}
    assert script("before", cell_id) == 2  # there is nothing to do any more
    for arguments in ((cell_id, "x", "1"), ("no cell", "1", "1"), (cell_id,)):
        assert script("after", *arguments) == 0  # whatever happens, the DAG goes on


# --- states


def event(number: int, job: int, what: str, *lines: str, day: int = 28) -> str:
    body = "".join(f"{line}\n" for line in lines)
    return f"{number:03} ({job:03}.000.000) 2026-11-{day} 10:{job:02}:00 {what}\n{body}...\n"


def submitted(job: int, node: str) -> str:
    return event(0, job, "Job submitted from host: <127.0.0.1:9618>", f"    DAG Node: {node}")


USAGE = (
    *(f"\t\tUsr 0 00:00:01, Sys 0 00:00:00  -  {what} Usage" for what in ("Run Remote", "Run Local")),
    *(f"\t\tUsr 0 00:00:01, Sys 0 00:00:00  -  {what} Usage" for what in ("Total Remote", "Total Local")),
    *(f"\t0  -  {what} Bytes {way} By Job" for what in ("Run", "Total") for way in ("Sent", "Received")),
)
EXECUTES = (1, "Job executing on host: <127.0.0.2:9618>")
HELD = (12, "Job was held.")
REMOVES = "\tThe job attribute PeriodicRemove expression '(JobStatus == 1)' evaluated to TRUE"

#: What happens to a job after its submission, and the state that follows.
HISTORIES: dict[str, tuple[list[tuple[object, ...]], tuple[str, int | None, str]]] = {
    "idle": ([], ("pending", None, "")),
    "runs": ([EXECUTES], ("running", None, "")),
    "succeeds": (
        [EXECUTES, (5, "Job terminated.", "\t(1) Normal termination (return value 0)", *USAGE)],
        ("completed", 0, ""),
    ),
    "fails": (
        [EXECUTES, (5, "Job terminated.", "\t(1) Normal termination (return value 3)", *USAGE)],
        ("failed", 3, ""),
    ),
    "dies": (
        [EXECUTES, (5, "Job terminated.", "\t(0) Abnormal termination (signal 9)", "\t(0) No core file", *USAGE)],
        ("failed", -9, ""),
    ),
    "evicted": (
        [EXECUTES, (4, "Job was evicted.", "\t(0) CPU times", *USAGE[:2], *USAGE[4:6])],
        ("pending", None, "evicted"),
    ),
    "held": (
        [(*HELD, "\tTransfer input files failure", "\tCode 13 Subcode 2")],
        ("pending", None, "held: Transfer input files failure (code 13)"),
    ),
    "released": (
        [
            (*HELD, "\tno", "\tCode 1 Subcode 0"),
            (13, "Job was released.", "\tvia condor_release (by user me)"),
            EXECUTES,
        ],
        ("running", None, ""),
    ),
    "expires": ([(9, "Job was aborted.", REMOVES)], ("expired", None, "")),
    "removed": (
        [EXECUTES, (9, "Job was aborted.", "\tvia condor_rm (by user me)")],
        ("cancelled", None, "via condor_rm (by user me)"),
    ),
    "out of memory": (
        [
            EXECUTES,
            (*HELD, "\tmemory usage exceeded request_memory", "\tCode 34 Subcode 0"),
            (9, "Job was aborted.", "\tby DAGMan"),
        ],
        ("out_of_memory", None, "held: memory usage exceeded request_memory (code 34)"),
    ),
    "held and removed": (
        [(*HELD, "\tTransfer input files failure", "\tCode 13 Subcode 2"), (9, "Job was aborted.", "\tby DAGMan")],
        ("failed", None, "held: Transfer input files failure (code 13)"),
    ),
    "held by its user": (
        [(*HELD, "\tvia condor_hold (by user me)", "\tCode 1 Subcode 0"), (9, "Job was aborted.", "\tby DAGMan")],
        ("cancelled", None, "held: via condor_hold (by user me) (code 1)"),
    ),
    "machine lost": (
        [
            EXECUTES,
            (
                24,
                "Job reconnection failed",
                "    Job not found at execution machine",
                "    Can not reconnect to slot1@node, rescheduling job",
            ),
        ],
        ("pending", None, "Job not found at execution machine"),
    ),
}


def handed_over(folder: Path, *cells: Cell) -> tuple[Campaign, Path]:
    dag = generated(folder, *cells)
    (dag / "submitted.json").write_text(json.dumps({"time": 1000.0, "cluster": 1}))
    return Campaign.read(folder / "campaign").run_by("htcondor", {}), dag


def states(made: Campaign) -> list[SchedulerState]:
    found = outcomes_now(made)[1]
    return [found[each.cell_id] for each in made.cells]


def test_states_from_the_log_of_the_nodes(tmp_path: Path) -> None:
    cells = [cell(version=f"{number}") for number in range(len(HISTORIES) + 1)]
    made, dag = handed_over(tmp_path, *cells)
    log = [submitted(job, f"cell{job}:0") for job in range(1, len(HISTORIES) + 1)]
    for job, (history, _) in enumerate(HISTORIES.values(), 1):
        log += [event(number, job, *rest) for number, *rest in history]
    (dag / "campaign.dag.nodes.log").write_text("".join(log) + submitted(99, "of another DAG"))
    found = states(made)
    for (name, (_, expected)), state in zip(HISTORIES.items(), found):
        assert (state.state, state.exit_code, state.reason) == expected, name
    assert found[-1] == SchedulerState("pending", submitted=1000.0)  # DAGMan has not come to it yet
    times = dict(zip(HISTORIES, found))["fails"]
    local = datetime(2026, 11, 28, 10, 4).timestamp()
    assert (times.submitted, times.started, times.ended, times.label) == (local, local, local, "4.0")


def test_states_where_the_log_ends_early(tmp_path: Path) -> None:
    cells = [cell(version=f"{number}") for number in range(6)]
    made, dag = handed_over(tmp_path, *cells)
    torn = event(5, 1, "Job terminated.", "\t(1) Normal termination (return value 0)", *USAGE)[:40]
    (dag / "campaign.dag.nodes.log").write_text(submitted(1, "cell1:0") + torn)
    (dag / "ends").mkdir()
    for each, code in zip(cells, (0, 3, -9, -1001, -1002)):
        (dag / "ends" / f"{each.cell_id}.json").write_text(json.dumps({"return": code, "job": "1.0", "faults": []}))
    found = states(made)
    assert [(state.state, state.exit_code) for state in found] == [
        ("completed", 0),
        ("failed", 3),
        ("failed", -9),
        ("refused", None),
        ("cancelled", None),
        ("pending", None),
    ]
    (dag / "ends" / f"{cells[0].cell_id}.json").write_text("{")
    assert states(made)[0].state == "pending"  # what cannot be read loses nothing but itself
    assert states(made)[1].state == "failed"


STATUS = """[
  Type = "DagStatus";
  DagFiles = {{ "campaign.dag" }};
  DagStatus = {dag}; /* "STATUS" */
]
[
  Type = "NodeStatus"; Node = "cell1:0"; NodeStatus = 6; /* "STATUS_ERROR" */ StatusDetails = "Job submit failed";
]
[
  {type} = "NodeStatus"; Node = "cell2:0"; NodeStatus = 5; StatusDetails = "";
]
[
  Type = "NodeStatus"; Node = "cell3:0"; NodeStatus = 1; StatusDetails = "";
]
"""


def test_states_of_nodes_without_a_job(tmp_path: Path) -> None:
    made, dag = handed_over(tmp_path, *(cell(version=f"{number}") for number in range(3)))
    (dag / "status.txt").write_text(STATUS.format(dag=3, type="MyType"))
    found = states(made)
    assert [(state.state, state.reason) for state in found[:2]] == [("refused", "Job submit failed"), ("completed", "")]
    assert found[2].active
    (dag / "status.txt").write_text(STATUS.format(dag=6, type="Type"))
    assert (states(made)[2].state, states(made)[2].reason) == ("cancelled", "the DAG ended before it")
    (dag / "status.txt").write_text("[ Type = ")
    assert all(state.active for state in states(made))


# --- submitting


def fake(folder: Path, monkeypatch: pytest.MonkeyPatch, **scripts: str) -> None:
    for name, text in scripts.items():
        path = folder / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}/bin:{os.environ['PATH']}")


def test_a_dag_is_submitted_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = tmp_path / "asked"
    answer = f'echo "$PWD $@" >> {asked}; echo "1 job(s) submitted to cluster 42."'
    fake(tmp_path, monkeypatch, condor_submit_dag=answer, condor_q="exit 0")
    made, plan = run_campaign(campaign_of(tmp_path, *CELLS), "htcondor", {})
    assert len(plan.cells) == 3
    dag = made.scheduler_folder / "dag-1"
    where, *arguments = asked.read_text().split()
    assert (where, arguments[-1]) == (str(dag), "campaign.dag")
    made, plan = run_campaign(made, "htcondor", {})
    assert (len(plan.active), len(asked.read_text().splitlines())) == (3, 1)

    submitted_file = dag / "submitted.json"  # the process was killed before it knew the number
    submitted_file.write_text(json.dumps({"time": 1.0, "cluster": None}))
    fake(tmp_path, monkeypatch, condor_q="echo 42")
    assert len(plan_run(made).active) == 3
    fake(tmp_path, monkeypatch, condor_q="echo 'cannot connect' >&2; exit 1")
    assert len(plan_run(made).active) == 3  # nobody knows, so nothing runs twice
    fake(tmp_path, monkeypatch, condor_q="exit 0")
    (dag / "campaign.dag.dagman.out").touch()
    assert len(plan_run(made).active) == 3
    (dag / "campaign.dag.dagman.out").unlink()
    assert len(plan_run(made).cells) == 3  # the queue does not know it, and it left nothing
    run_campaign(made, "htcondor", {})
    assert len(asked.read_text().splitlines()) == 2


def test_what_was_run_again_has_a_dag_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake(tmp_path, monkeypatch, condor_submit_dag='echo "1 job(s) submitted to cluster 42."')
    made, _ = run_campaign(campaign_of(tmp_path, *CELLS), "htcondor", {})
    aborted = event(9, 1, "Job was aborted.", "\tvia condor_rm (by user me)")
    (made.scheduler_folder / "dag-1" / "campaign.dag.nodes.log").write_text(submitted(1, "cell1:0") + aborted)
    first = json.loads((made.scheduler_folder / "dag-1" / "nodes.json").read_text())["nodes"]["cell1:0"]
    assert outcomes_now(made)[0][first].status == "cancelled"
    made, plan = run_campaign(made, "htcondor", {})
    assert [each.cell_id for each in plan.cells] == [first]
    assert sorted(path.name for path in made.scheduler_folder.glob("dag-*")) == ["dag-1", "dag-2"]
    assert outcomes_now(made)[1][first].state == "pending"


def test_a_dag_that_is_not_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake(tmp_path, monkeypatch, condor_submit_dag="echo 'ERROR: no schedd' >&2; exit 1", condor_q="exit 0")
    made = campaign_of(tmp_path, *CELLS)
    with pytest.raises(FleetError, match="did not take the DAG: ERROR: no schedd"):
        run_campaign(made, "htcondor", {})
    assert len(plan_run(Campaign.read(made.folder)).cells) == 3


def test_without_htcondor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(FleetError, match=r"There is no condor_submit_dag here.*condor_submit_dag campaign\.dag"):
        run_campaign(campaign_of(tmp_path, *CELLS), "htcondor", {})
    assert (tmp_path / "campaign" / "scheduler" / "dag-1" / "campaign.dag").exists()
