"""A recipe's minibatches, divided or dealt out among ranks, and what each launch does."""

from __future__ import annotations

import itertools
import json
import os
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from deep500.core.errors import CommunicationError, MeasurementError, RecipeError, UnknownNameError
from deep500.distributed.communicators.local import LocalCommunicator
from deep500.distributed.scaling.design import ScalingDesign
from deep500.distributed.scaling.result import ScalingResult
from deep500.recipe import scaling
from deep500.recipe.scaling import _batches_of_rank, _full_batches, main, scale_recipe
from deep500.training.samplers.ordered import OrderedSampler
from tests.unit.training.support import clusters

DESIGN = ScalingDesign((1, 2), launches=2, steps=2, warm_up=1)
RECIPE = """
FIXED = {"model": "mlp", "dataset": "digits", "epochs": 1}
MUTABLE = {"batch_size": 32, "executor": "reference", "optimizer": "momentum"}
METRICS = [("test_accuracy", None)]
"""


def rank(number: int, size: int) -> SimpleNamespace:
    return SimpleNamespace(rank=number, size=size)


@pytest.fixture
def recipe(tmp_path: Path) -> str:
    (tmp_path / "small.py").write_text(RECIPE)
    return str(tmp_path / "small.py")


def test_strong_scaling_divides_the_recipes_minibatches() -> None:
    whole = list(itertools.islice(_full_batches(OrderedSampler(clusters(20), 6), 6), 4))
    parts = [list(_batches_of_rank(OrderedSampler(clusters(20), 6), 6, rank(r, 3), "strong")) for r in range(3)]

    for number, batch in enumerate(whole):
        for name, array in batch.items():
            assert np.array_equal(np.concatenate([part[number][name] for part in parts]), array)


def test_weak_scaling_deals_them_out() -> None:
    whole = list(itertools.islice(_full_batches(OrderedSampler(clusters(20), 6), 6), 8))
    parts = [list(_batches_of_rank(OrderedSampler(clusters(20), 6), 6, rank(r, 2), "weak")) for r in range(2)]

    assert [len(part) for part in parts] == [4, 4]
    for number, batch in enumerate(whole):
        assert all(np.array_equal(parts[number % 2][number // 2][name], array) for name, array in batch.items())


def test_minibatch_larger_than_the_training_set() -> None:
    with pytest.raises(RecipeError, match="no minibatch of 50 samples"):
        next(_full_batches(OrderedSampler(clusters(20), 50), 50))


def launches_here(module: str, job: dict, ranks: int, *, threads: int, timeout_s: float) -> dict:
    """Do a launch's part in this process, as the only rank."""
    assert module == "deep500.recipe.scaling"
    assert (threads, timeout_s) == (1, 600)
    job = json.loads(json.dumps(job))
    if job["kind"] == "messages":
        times = [5e-6 + size / 1e9 for size in job["sizes"]]
        return {"size_bytes": job["sizes"], "times_s": times, "reduction_s_per_byte": 1e-10}
    return json.loads(json.dumps(scaling._KINDS[job["kind"]](job, LocalCommunicator())))


def test_run_of_a_recipe(recipe: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scaling, "run_job", launches_here)
    told: list[str] = []
    design = ScalingDesign((1,), launches=1, steps=2, warm_up=1)
    result = scale_recipe(recipe, design, predict_to=8, changes=["batch_size=16"], tell=told.append)

    assert told[0] == "launch 1 of 1: round 1, 1 rank"
    assert result.framework.startswith("reference")
    assert (result.scheme, result.batch_size) == ("allreduce", 16)
    assert [point.ranks for point in result.points] == [1]
    assert len(result.launches[1]) == 1
    assert result.prediction is not None
    assert [time.samples for time in result.prediction.compute.times] == [4, 16]
    assert [point.ranks for point in result.prediction.points["ring_allreduce"]] == [1, 2, 4, 8]
    assert any("need 6" in note for note in result.notes)
    json.dumps(result.to_dict(), allow_nan=False)


def test_no_prediction_where_none_is_asked_for(recipe: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scaling, "run_job", launches_here)
    design = ScalingDesign((1,), launches=1, steps=2, warm_up=0)

    assert scale_recipe(recipe, design, predict_to=0).prediction is None
    monkeypatch.setattr(scaling, "predicted_algorithms", lambda scheme: ())
    result = scale_recipe(recipe, design)
    assert result.prediction is None
    assert any("no closed form" in note for note in result.notes)


def test_mistakes_are_found_before_anything_is_launched(recipe: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scaling, "run_job", None)
    with pytest.raises(MeasurementError, match="nearest for 3"):
        scale_recipe(recipe, ScalingDesign((1, 3)))
    with pytest.raises(UnknownNameError, match="allreduse"):
        scale_recipe(recipe, DESIGN, changes=["distributed=allreduse"])
    with pytest.raises(RecipeError, match="no recipe file"):
        scale_recipe("no_such_recipe", DESIGN)


def test_run_is_no_rank_itself(recipe: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PMI_RANK", "1")
    monkeypatch.setenv("PMI_SIZE", "2")
    with pytest.raises(CommunicationError, match="start it once, without a launcher"):
        scale_recipe(recipe, DESIGN)


def test_rank_reports_what_it_measured_or_why_not(recipe: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith(("PMI_", "OMPI_", "SLURM_"))]:
        monkeypatch.delenv(name)
    source = {"recipe": recipe, "changes": [], "framework": None}
    job = {"kind": "steps", "source": source, "design": DESIGN.to_dict(), "communicator": "local"}
    (tmp_path / "job.json").write_text(json.dumps(job))
    main([str(tmp_path)])
    report = json.loads((tmp_path / "result.json").read_text())
    assert len(report["measurement"]["step_s"]) == 1
    assert report["facts"]["gradient_bytes"] > 0
    assert report["facts"]["communicator"] == "LocalCommunicator"

    source["changes"] = ["optimizer=no_such"]
    (tmp_path / "job.json").write_text(json.dumps(job))
    with pytest.raises(UnknownNameError):
        main([str(tmp_path)])
    assert "no_such" in json.loads((tmp_path / "failure.000000.json").read_text())["message"]


def test_run_that_breaks_off_loses_no_launch(recipe: str, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[int] = []

    def until_interrupted(module: str, job: dict, ranks: int, *, threads: int, timeout_s: float) -> dict:
        if len(done) == 3:
            raise KeyboardInterrupt
        done.append(ranks)
        return launches_here(module, job, 1, threads=threads, timeout_s=timeout_s)

    monkeypatch.setattr(scaling, "run_job", until_interrupted)
    kept: list[ScalingResult] = []
    with pytest.raises(KeyboardInterrupt):
        scale_recipe(recipe, DESIGN, on_launch=kept.append)

    assert [sum(map(len, result.launches.values())) for result in kept] == [1, 2, 3]
    assert [result.complete for result in kept] == [False] * 3
    assert kept[-1].how_far == "Incomplete: 3 of 4 launches were measured."
    assert [point.ranks for point in kept[-1].points] == [1, 2]
    json.dumps(kept[-1].to_dict(), allow_nan=False)


def test_launches_are_kept_where_the_prediction_breaks_off(recipe: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def without_messages(module: str, job: dict, ranks: int, *, threads: int, timeout_s: float) -> dict:
        if job["kind"] == "messages":
            raise MeasurementError("a launch failed")
        return launches_here(module, job, ranks, threads=threads, timeout_s=timeout_s)

    monkeypatch.setattr(scaling, "run_job", without_messages)
    kept: list[ScalingResult] = []
    with pytest.raises(MeasurementError, match="a launch failed"):
        scale_recipe(recipe, ScalingDesign((1,), launches=1, steps=2, warm_up=0), on_launch=kept.append)
    assert kept[-1].how_far == "Incomplete: all launches were measured, but nothing was predicted."


def test_what_cannot_be_launched_is_found_before(recipe: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scaling, "run_job", None)
    with pytest.raises(UnknownNameError, match="communicator named 'mpj'"):
        scale_recipe(recipe, DESIGN, communicator="mpj")
    monkeypatch.setattr("deep500.distributed._launch_limits.free_memory_bytes", lambda: 1 << 30)
    for name in ("SLURM_JOB_ID", "SLURM_JOBID", "PBS_NODEFILE"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(CommunicationError, match="60000 ranks were asked for"):
        scale_recipe(recipe, ScalingDesign((1, 60000)))
