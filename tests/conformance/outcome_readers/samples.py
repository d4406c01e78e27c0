"""A small sample of each format of outcomes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl

from deep500.fleet.input_report import InputReport
from deep500.fleet.outcome import Outcome
from deep500.fleet.outcome_table import OutcomeTable
from deep500.fleet.reading import read_outcomes
from deep500.measure.results.files import write_measurement
from deep500.recipe.result import write_result
from tests.unit.measure.results import support as measured
from tests.unit.recipe.support import result

#: Data that is not part of the project.
SHARED = Path(__file__).resolve().parents[3].parent / "shared" / "data"

JUNIT = """<?xml version="1.0" encoding="utf-8"?>
<testsuites><testsuite name="pytest" errors="1" failures="1" skipped="3" tests="7" time="3.5"
 timestamp="2026-01-02T03:04:05+00:00">
<testcase classname="tests.a" name="test_one" time="1.5"><properties>
 <property name="gpus_declared" value="4"/><property name="gpus_used" value="2"/></properties></testcase>
<testcase classname="tests.a" name="test_two" time="0.5"><failure message="assert 1 == 2">long</failure></testcase>
<testcase classname="tests.a" name="test_three" time="0.1"><error message="no fixture"/></testcase>
<testcase classname="tests.a" name="test_four" time="0">
 <skipped message="needs 4 GPUs, 1 are given (--max-gpus)"/></testcase>
<testcase classname="tests.a" name="test_five"><skipped type="pytest.skip" message="slow"/></testcase>
<testcase classname="tests.a" name="test_six" time="0.2"><skipped type="pytest.xfail" message="known"/></testcase>
<testcase classname="tests.a" name="test_flaky" time="1"><flakyFailure message="once"/>
 <flakyFailure message="once"/></testcase>
</testsuite></testsuites>
"""

GITHUB: dict[str, Any] = {
    "total_count": 3,
    "jobs": [
        {
            "id": 1, "run_id": 7, "run_attempt": 1, "head_sha": "abc", "name": "build", "status": "completed",
            "conclusion": "success", "created_at": "2026-01-01T00:00:00Z", "started_at": "2026-01-01T00:01:00Z",
            "completed_at": "2026-01-01T01:01:00Z", "runner_name": "r1", "workflow_name": "ci", "labels": ["linux"],
        },
        {
            "id": 2, "run_id": 7, "run_attempt": 1, "head_sha": "abc", "name": "test", "status": "in_progress",
            "conclusion": None, "created_at": "2026-01-01T00:00:00Z", "started_at": "2026-01-01T00:02:00Z",
            "completed_at": None, "runner_name": "", "workflow_name": "ci", "labels": [],
        },
        {
            "id": 3, "run_id": 7, "run_attempt": 2, "head_sha": "abc", "name": "test", "status": "completed",
            "conclusion": "exploded", "created_at": None, "started_at": None, "completed_at": None,
        },
    ],
}  # fmt: skip

PHILLY: list[dict[str, Any]] = [
    {
        "status": "Pass", "vc": "v", "jobid": "j1", "user": "u", "submitted_time": "2017-10-07 01:00:00",
        "attempts": [
            {
                "start_time": "2017-10-07 02:00:00", "end_time": "2017-10-07 03:00:00",
                "detail": [{"ip": "m1", "gpus": ["gpu0", "gpu1"]}],
            },
            {
                "start_time": "2017-10-07 04:00:00", "end_time": "2017-10-07 06:00:00",
                "detail": [{"ip": "m2", "gpus": ["gpu0"]}, {"ip": "m3", "gpus": ["gpu0"]}],
            },
        ],
    },
    {"status": "Killed", "jobid": "j2", "user": "u", "submitted_time": "2017-10-07 01:00:00", "attempts": []},
    {
        "status": "Failed", "vc": "v", "jobid": "j3", "user": "w", "submitted_time": "2017-10-07 01:00:00",
        "attempts": [{"start_time": "2017-10-07 02:00:00", "end_time": None, "detail": []}],
    },
]  # fmt: skip

PAI_JOBS = """j1,i1,u1,Terminated,100.0,1000.0
j2,i2,u2,Failed,150.0,400.0
j3,i3,u1,Running,200.0,
j4,i4,u3,Waiting,300.0,
"""
PAI_TASKS = """j1,worker,2.0,Terminated,110.0,1010.0,600.0,29.296875,50.0,V100
j1,ps,1.0,Terminated,110.0,1010.0,600.0,29.296875,,
j2,worker,1.0,Failed,160.0,400.0,600.0,29.296875,100.0,T4
j3,worker,1.0,Running,210.0,,600.0,29.296875,100.0,T4
"""
PAI_INSTANCES = """j1,worker,a,w1,i1,Terminated,120.0,900.0,m1
j1,worker,b,w2,i1,Terminated,115.0,1005.0,m1
j1,ps,c,w3,i1,Terminated,120.0,1000.0,m2
j2,worker,d,w4,i2,Failed,170.0,400.0,m1
j3,worker,e,w5,i3,Running,220.0,,m3
"""

RETECS = """Id;Name;Duration;CalcPrio;LastRun;LastResults;Verdict;Cycle
1;78082;57262;0;2015-02-13 16:13:00;[];1;1
2;78083;3600000;0;2015-02-13 16:13:00;[1, 0];0;1
3;78082;57262;0;2015-02-13 16:13;[1];0;2
"""

HISTORY = "commit\ttime\tbuild, x\ttest\nc1\t2026-01-01\tpass\tFAILURE\nc2\t2026-01-02\t1\t\nc3\t\tcancelled\tskipped\n"

HELIOS = """job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue
1425511,uA,vcJ,1,1,1,COMPLETED,2020-06-09 18:41:01,2020-06-09 18:41:01,2020-06-10 04:55:09,36848,0
1425512,uB,vcJ,4,16,1,FAILED,2020-06-09 18:41:27,2020-06-09 18:41:37,2020-06-09 18:45:36,239,10
1425513,uB,vcJ,8,16,1,NODE_FAIL,2020-06-09 18:41:27,2020-06-09 18:41:37,2020-06-09 18:45:36,239,10
1425514,uB,vcJ,8,16,1,RUNNING,2020-06-09 18:41:27,2020-06-09 18:41:37,,,10
"""

KALOS = (
    "job_id,user,node_num,gpu_num,cpu_num,mem_per_pod_GB,shared_mem_per_pod,type,state,submit_time,start_time,end_time,"
    "fail_time,stop_time,duration,queue,gpu_time\n"
    "dlctk,uf794,8,64,960,1000,100.0,Other,FAILED,2023-05-17 11:00:58+00:00,2023-05-17 19:01:08+08:00,"
    "2023-05-17 11:01:16+00:00,2023-05-17 11:01:16+00:00,,18,10.0,1152.0\n"
)

OUTCOMES = [
    Outcome("a", "g", "passed", started=0.0, ended=3600.0, gpus=2.0, labels={"os": "linux", "speed": 1.5}),
    Outcome("b", "g", "failed", cause="broke"),
]


def _text(name: str, content: str) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        (folder / name).write_text(content, encoding="utf-8")
        return folder / name

    return make


def _pai(folder: Path) -> Path:
    trace = folder / "trace"
    trace.mkdir()
    for name, content in (("job", PAI_JOBS), ("task", PAI_TASKS), ("instance", PAI_INSTANCES)):
        (trace / f"pai_{name}_table.csv").write_text(content)
    return trace


def _ossci(folder: Path) -> Path:
    for name, status in (("pr", "success"), ("master", "failure")):
        (folder / "status" / name).mkdir(parents=True)
        content = {"linux_build": {"status": status}, "linux_test": {"status": "pending"}}
        (folder / "status" / name / f"commit-{name}.json").write_text(json.dumps(content))
    return folder / "status"


def _table(name: str) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        OutcomeTable.from_outcomes(OUTCOMES).write(folder / name)
        return folder / name

    return make


def _recipe(folder: Path) -> Path:
    write_result(result(), folder / "recipe.json")
    return folder / "recipe.json"


def _measurement(folder: Path) -> Path:
    write_measurement(measured.measurement(), folder / "measurement.json")
    return folder / "measurement.json"


#: The format and what makes a sample of it in a folder, by a name.
SAMPLES: dict[str, tuple[str, Callable[[Path], Path]]] = {
    "outcomes.jsonl": ("outcomes", _table("o.jsonl")),
    "outcomes.parquet": ("outcomes", _table("o.parquet")),
    "recipe": ("results", _recipe),
    "measurement": ("results", _measurement),
    "junit": ("junit", _text("junit.xml", JUNIT)),
    "github_jobs": ("github_jobs", _text("jobs.json", json.dumps(GITHUB))),
    "ossci_status": ("ossci_status", _ossci),
    "ossci_status file": ("ossci_status", _text("c1.json", '{"linux_build": {"status": "success"}}')),
    "history": ("history", _text("history.tsv", HISTORY)),
    "history of 0 and 1": ("history", _text("combined.csv", "linux,mac\n1,0\n0,\n")),
    "retecs": ("retecs", _text("iofrol.csv", RETECS)),
    "pai": ("pai", _pai),
    "pai file": ("pai", lambda folder: _pai(folder) / "pai_task_table.csv"),
    "philly": ("philly", _text("cluster_job_log", json.dumps(PHILLY))),
    "helios": ("helios", _text("cluster_log.csv", HELIOS)),
    "acme": ("helios", _text("trace_kalos.csv", KALOS)),
}


def read(path: Path, format: str | None = None) -> tuple[pl.DataFrame, InputReport]:
    """Return the data frame of a path, and the report."""
    table, report = read_outcomes([path], format)
    return table.frame, report


def told(report: InputReport) -> dict[str, int]:
    """Return how many faults there are of each kind."""
    counts: dict[str, int] = {}
    for problem in report.problems:
        counts[problem.kind.value] = counts.get(problem.kind.value, 0) + problem.count
    return counts
