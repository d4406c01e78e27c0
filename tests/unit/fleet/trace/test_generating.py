"""Generated traces: their layout, their truth, and that they are read as they were made."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from deep500.core.errors import Deep500Error, FleetError
from deep500.fleet import read_outcomes
from deep500.fleet.trace import generating
from deep500.fleet.trace.generating import Hazards, generate_outcomes, generate_trace
from deep500.fleet.trace.hazards import TYPE_SHARES, CauseHazard, positive_stable

JOB = ("job_name", "inst_id", "user", "status", "start_time", "end_time")
TASK = ("job_name", "task_name", "inst_num", "status", "start_time", "end_time", "plan_cpu", "plan_mem", "plan_gpu",
        "gpu_type")  # fmt: skip
INSTANCE = ("job_name", "task_name", "inst_name", "worker_name", "inst_id", "status", "start_time", "end_time",
            "machine")  # fmt: skip


def tables(folder: Path) -> list[pl.DataFrame]:
    return [
        pl.read_csv(folder / f"pai_{name}_table.csv", has_header=False, new_columns=list(columns))
        for name, columns in (("job", JOB), ("task", TASK), ("instance", INSTANCE))
    ]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made") / "trace"
    generate_trace(folder, 1200, seed=3, hazards=Hazards(days=5.0))
    return folder


def test_layout(made: Path) -> None:
    job, task, instance = tables(made)
    truth = json.loads((made / "truth.json").read_text(encoding="utf-8"))
    assert (truth["jobs"], truth["tasks"], truth["instances"]) == (job.height, task.height, instance.height)
    assert job.height == job["job_name"].n_unique() == 1200
    assert task.select("job_name", "task_name").is_unique().all()
    assert instance["worker_name"].n_unique() == instance.height
    sizes = instance.group_by("job_name").len()["len"]
    assert sizes.min() == 2
    assert sizes.max() <= 6330
    assert set(task["status"]) == {"Terminated", "Failed", "Running"}
    assert set(task["gpu_type"]) == set(TYPE_SHARES)
    assert (task["end_time"].is_null() == (task["status"] == "Running")).all()


def test_instances_span_their_task(made: Path) -> None:
    _, task, instance = tables(made)
    spans = instance.group_by("job_name", "task_name").agg(
        pl.col("start_time").min().alias("first"), pl.col("end_time").max().alias("last"), pl.len().alias("count")
    )
    both = task.join(spans, on=["job_name", "task_name"])
    assert both.height == task.height
    assert (both["first"] == both["start_time"]).all()
    assert both["last"].equals(both["end_time"], null_equal=True)
    assert (both["count"] == both["inst_num"]).all()
    assert ((instance["end_time"] - instance["start_time"]).drop_nulls() >= 0).all()


def test_a_job_is_what_its_tasks_are(made: Path) -> None:
    job, task, _ = tables(made)
    failed = set(task.filter(pl.col("status") == "Failed")["job_name"])
    assert set(job.filter(pl.col("status") == "Failed")["job_name"]) == failed
    ends = task.group_by("job_name").agg(pl.col("end_time").max(), pl.col("end_time").null_count().alias("open"))
    both = job.join(ends, on="job_name", suffix="_task").filter(pl.col("open") == 0)
    assert (both["end_time"] == both["end_time_task"]).all()


def test_it_is_read_as_it_was_made(made: Path) -> None:
    table, report = read_outcomes([made], "pai")
    expected = generate_outcomes(1200, 3, Hazards(days=5.0)).frame
    columns = ["key", "group", "status", "cause", "started", "ended", "gpus", "gpu_type", "plan_cpu", "plan_mem",
               "plan_gpu"]  # fmt: skip
    left, right = (frame.select(columns).sort("key") for frame in (table.frame, expected))
    assert left.equals(right, null_equal=True)
    assert (table.frame["instances"] == table.frame["inst_num"]).all()
    assert not report.problems  # truth.json is no fault


def test_the_seed_decides_and_pieces_are_streamed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generating, "_PIECE", 100)
    told: list[str] = []
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        generate_trace(tmp_path / name, 250, seed, tell=told.append)
    files = {name: [(tmp_path / name / file).read_bytes() for file in generating.FILES] for name in "abc"}
    assert files["a"] == files["b"] != files["c"]
    assert told[:3] == ["100 of 250 jobs", "200 of 250 jobs", "250 of 250 jobs"]
    assert tables(tmp_path / "a")[0]["job_name"].n_unique() == 250


def test_a_trace_is_not_written_over(made: Path) -> None:
    with pytest.raises(FleetError, match=r"pai_job_table\.csv already"):
        generate_trace(made, 10)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [({"jobs": 0}, "jobs"), ({"jobs": 10, "users": 0}, "users"), ({"jobs": 10, "seed": -1}, "seed")],
)
def test_numbers_that_are_none(arguments: dict[str, int], message: str, tmp_path: Path) -> None:
    with pytest.raises(FleetError, match=message):
        generate_trace(tmp_path / "x", **arguments)
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize("there", [False, True])
def test_a_trace_is_whole_or_not_there(there: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generating, "_PIECE", 100)
    if there:
        (tmp_path / "a" / "b").mkdir(parents=True)
        (tmp_path / "a" / "b" / "other").write_text("")

    def interrupt(text: str) -> None:
        assert not (tmp_path / "a" / "b" / "pai_job_table.csv").exists()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        generate_trace(tmp_path / "a" / "b", 250, tell=interrupt)
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == (["other"] if there else [])
    assert (tmp_path / "a").exists() == there
    generate_trace(tmp_path / "a" / "b", 250)
    assert {*generating.FILES, "truth.json"} <= {path.name for path in (tmp_path / "a" / "b").iterdir()}
    assert not list((tmp_path / "a" / "b").glob(".*"))


def test_a_cancelled_task_is_read_as_that(tmp_path: Path) -> None:
    generate_trace(tmp_path / "made", 300, hazards=Hazards(cancelled_per_h=1.0))
    table, report = read_outcomes([tmp_path / "made"])
    assert not report.problems
    assert set(table.frame["status"]) == {"passed", "failed", "cancelled"}


def test_a_folder_that_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(Deep500Error, match="cannot be written"):
        generate_trace(tmp_path / "file", 10)


def test_hazards_that_cannot_be() -> None:
    same = dict.fromkeys(TYPE_SHARES, 1.0)
    for wrong, message in (
        ({"scale_h": {"T4": 1.0}, "shape": same}, "scale"),
        ({"scale_h": same, "shape": {**same, "T4": 0.0}}, "shape"),
        ({"scale_h": same, "shape": same, "effects": {"colour": 1.0}}, "'colour'"),
        ({"scale_h": same, "shape": same, "stability": 1.5}, "stability"),
    ):
        with pytest.raises(FleetError, match=message):
            CauseHazard(**wrong)  # type: ignore[arg-type]
    for wrong in ({"days": 0}, {"days": math.inf}, {"days": 1e-9}, {"cancelled_per_h": math.inf}, {"missing": 1.0}):
        with pytest.raises(FleetError, match="accepted are days"):
            Hazards(**wrong)  # type: ignore[arg-type]
    for wrong in (math.nan, math.inf, -1.0):
        with pytest.raises(FleetError, match="scale"):
            Hazards.constant(wrong, 1.0)
    with pytest.raises(FleetError, match="effect"):
        CauseHazard(same, same, {"size": math.nan})


def test_positive_stable_numbers() -> None:
    """E exp(-s W) = exp(-s ** index)."""
    drawn = positive_stable(np.random.default_rng(0), 0.7, 200_000)
    for s in (0.5, 1.0, 3.0):
        assert np.exp(-s * drawn).mean() == pytest.approx(math.exp(-(s**0.7)), abs=0.005)
    assert (positive_stable(np.random.default_rng(0), 1.0, 5) == 1).all()


def test_constant_rates() -> None:
    frame = generate_outcomes(20_000, 5, Hazards.constant(6.0, 3.0, days=365.0, missing=0.0)).frame
    ended = frame.filter(pl.col("status").is_in(["passed", "failed"]))
    assert (ended["status"] == "failed").mean() == pytest.approx(1 / 3, abs=0.02)
    assert (ended["ended"] - ended["started"]).mean() == pytest.approx(2 * 3600, rel=0.03)
    assert frame["plan_cpu"].null_count() == 0
    cancelled = generate_outcomes(2000, 5, Hazards.constant(6.0, 3.0, cancelled_per_h=0.5)).frame
    assert (cancelled["status"] == "cancelled").mean() == pytest.approx(0.5, abs=0.05)
