"""Readers of traces of clusters: PAI, Philly, Helios and Acme."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from tests.conformance.outcome_readers.samples import HELIOS, KALOS, PAI_TASKS, SAMPLES, read, told


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    return SAMPLES["pai"][1](tmp_path)


def test_pai_tasks_with_their_jobs_and_instances(trace: Path) -> None:
    frame, report = read(trace)

    names = ("key", "group", "status", "cause", "submitted", "started", "ended", "gpus")
    assert frame.select(names).rows() == [
        ("j1/worker", "u1", "passed", None, 100.0, 110.0, 1010.0, 1.0),
        ("j1/ps", "u1", "passed", None, 100.0, 110.0, 1010.0, None),
        ("j2/worker", "u2", "failed", None, 150.0, 160.0, 400.0, 1.0),
        ("j3/worker", "u1", "missing", "running", 200.0, 210.0, None, 1.0),
    ]
    assert frame.select("instances", "instances_started", "instances_ended", "machines").rows() == [
        (2.0, 115.0, 1005.0, 1.0),
        (1.0, 120.0, 1000.0, 1.0),
        (1.0, 170.0, 400.0, 1.0),
        (1.0, 220.0, None, 1.0),
    ]
    assert frame["cost"].to_list() == [0.25, 0.25, pytest.approx(240 / 3600), None]
    assert frame["gpu_type"].to_list() == ["V100", None, "T4", "T4"]
    assert told(report) == {"incomplete": 1}, "j4 has no task"


def test_pai_faults_are_counted(trace: Path) -> None:
    tasks = PAI_TASKS + "j5,worker,1.0,Odd,1,2,3,4,5,T4\nj6,worker,one,Failed,1,2,3,4,5,T4\n"
    tasks += "j7,worker\n,worker,1,Failed,1,2,3,4,5,T4\n"
    (trace / "pai_task_table.csv").write_bytes(tasks.encode() + b"j8,w\xff,1,Failed,9,2,3,4,5,T4\n")
    with (trace / "pai_job_table.csv").open("a") as file:
        file.write("j1,i1,u9,Terminated,100.0,1000.0\nj5,i5,,Failed,1,2\n")
    with (trace / "pai_instance_table.csv").open("a") as file:
        file.write("j9,worker,e,w5,i3,Running,220.0,,m3\nj9,worker,e,w6,i3,Running,220.0,,m3\n")
    (trace / "README.md").write_text("about it")
    frame, report = read(trace)

    assert frame["key"].to_list()[4:] == ["j5/worker", "j6/worker", "j8/w\N{REPLACEMENT CHARACTER}"]
    assert frame["group"].to_list() == ["u1", "u1", "u2", "u1"] + ["unknown"] * 3, "the first line of a job counts"
    assert frame["inst_num"].to_list()[4:] == [1.0, None, 1.0]
    assert frame["cause"].to_list()[4] == "unknown status: Odd"
    assert told(report) == {
        "malformed": 2,
        "incomplete": 1 + 1 + 1 + 2,  # a task without a job, a job without a user, j4 without a task, two instances
        "unknown status": 1,
        "encoding": 1,
        "duplicate": 1,
        "clock skew": 1,
        "unrecognised": 1,
    }


def test_pai_table_of_tasks_alone(trace: Path) -> None:
    (trace / "pai_job_table.csv").unlink()
    (trace / "pai_instance_table.csv").unlink()
    frame, report = read(trace)

    assert frame.height == 4
    assert set(frame["group"]) == {"unknown"}
    assert "instances" not in frame.columns
    assert told(report) == {"incomplete": 1}


def test_pai_column_names_from_a_file_or_the_first_line(trace: Path) -> None:
    frame, _ = read(trace)
    names = "job_name,task_name,inst_num,status,start_time,end_time,plan_cpu,plan_mem,plan_gpu,gpu_type"
    order = names.split(",")[::-1]
    turned = "".join(",".join(line.split(",")[::-1]) + "\n" for line in PAI_TASKS.splitlines())

    (trace / "pai_task_table.csv").write_text(turned)
    (trace / "pai_task_table.header").write_text(",".join(order) + "\n")
    assert read(trace)[0].equals(frame)
    (trace / "pai_task_table.header").unlink()
    (trace / "pai_task_table.csv").write_text(",".join(order) + "\n" + turned)
    assert read(trace)[0].equals(frame)


def test_pai_sums_equal_those_of_a_loop(trace: Path) -> None:
    random = np.random.default_rng(3)
    tasks, instances = [], []
    expected = {}
    for job in range(300):
        count = int(random.integers(1, 6))
        machines = random.integers(0, 3, count)
        starts, ends = random.integers(0, 50, count), random.integers(50, 99, count)
        tasks.append(f"j{job},worker,{count},Terminated,0,100,1,1,50,T4")
        instances += [
            f"j{job},worker,x,y,z,Terminated,{s},{e},m{m}" for s, e, m in zip(starts, ends, machines, strict=True)
        ]
        expected[f"j{job}/worker"] = (count, min(starts), max(ends), len(set(machines)))
    (trace / "pai_task_table.csv").write_text("\n".join(tasks))
    (trace / "pai_instance_table.csv").write_text("\n".join(random.permutation(instances)))
    frame, _ = read(trace)

    rows = frame.select("key", "instances", "instances_started", "instances_ended", "machines").rows()
    assert {row[0]: row[1:] for row in rows} == expected


def test_philly(tmp_path: Path) -> None:
    frame, report = read(SAMPLES["philly"][1](tmp_path))

    first, killed, endless = frame.iter_rows(named=True)
    assert (first["key"], first["group"], first["status"], first["gpus"]) == ("j1", "u", "passed", 2.0)
    assert first["ended"] - first["started"] == 4 * 3600
    assert (first["attempts"], first["machines"], first["run_s"]) == (2.0, 2.0, 3 * 3600.0)
    assert first["cost"] == 1 * 2 + 2 * 2
    assert (killed["status"], killed["started"], killed["attempts"]) == ("cancelled", None, 0.0)
    assert (endless["status"], endless["cause"], endless["ended"]) == ("failed", None, None)
    assert endless["started"] is not None
    (problem,) = report.problems
    assert (problem.kind.value, problem.count, problem.effect) == ("incomplete", 1, "its end is unknown")
    assert "job 3" in problem.examples[0]


def test_helios(tmp_path: Path) -> None:
    more = "7,uC,v,x,1,1,CANCELLED by 1000,2020-06-09 18:41:27,soon,,,\n8,,v,1,1,1,FAILED,,,,,\n"
    more += "9,uC,v,1,1,1,DONE,,,,,\n1,2\n"
    (tmp_path / "cluster_log.csv").write_text(HELIOS + more)
    frame, report = read(tmp_path / "cluster_log.csv")

    assert frame.select("key", "status", "cause", "gpus").rows() == [
        ("1425511", "passed", None, 1.0),
        ("1425512", "failed", None, 4.0),
        ("1425513", "unreachable", "node fail", 8.0),
        ("1425514", "missing", "running", 8.0),
        ("7", "cancelled", None, None),
        ("9", "missing", "done", 1.0),
    ]
    assert (frame["ended"] - frame["started"]).to_list()[:4] == [36848.0, 239.0, 239.0, None]
    assert (frame["started"] - frame["submitted"]).to_list()[:2] == [0.0, 10.0]
    assert frame["submitted"][0] == 1591728061.0
    assert told(report) == {"malformed": 2, "incomplete": 1, "unknown status": 1}


def test_acme_times_have_zones(tmp_path: Path) -> None:
    (tmp_path / "trace_kalos.csv").write_text(KALOS)
    row = read(tmp_path / "trace_kalos.csv")[0].row(0, named=True)

    assert (row["started"] - row["submitted"], row["ended"] - row["started"]) == (10.0, 8.0)
    assert row["fail_time"] == row["ended"] == 1684321276.0
    assert (row["type"], row["mem_per_pod_GB"], row["stop_time"]) == ("Other", 1000.0, None)
    assert row["cost"] == pytest.approx(64 * 8 / 3600)


def test_quoted_fields_of_other_programs(tmp_path: Path) -> None:
    quoted = "\n".join(",".join(f'"{field}"' for field in line.split(",")) for line in HELIOS.splitlines())
    (tmp_path / "a.csv").write_text(HELIOS)
    (tmp_path / "b.csv").write_text(quoted)

    assert read(tmp_path / "a.csv")[0].equals(read(tmp_path / "b.csv")[0])
    assert read(tmp_path / "a.csv")[0]["status"].dtype == pl.Enum
