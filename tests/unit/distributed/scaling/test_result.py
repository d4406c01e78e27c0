"""The document has everything, names the base case, and draws measured beside predicted."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest

from deep500.distributed.scaling import design as design_module
from deep500.distributed.scaling.compute_model import ComputeModel, ComputeTimes
from deep500.distributed.scaling.design import ScalingDesign
from deep500.distributed.scaling.prediction import calibration_to_dict, fit_messages, predict_scaling
from deep500.distributed.scaling.result import Prediction, ScalingResult, with_interval
from deep500.distributed.scaling.summary import Estimate, summarise_scaling
from tests.unit.distributed.scaling.test_summary import launch

DESIGN = ScalingDesign((1, 2, 64), "weak")


@pytest.fixture
def result(monkeypatch: pytest.MonkeyPatch) -> ScalingResult:
    monkeypatch.setattr(design_module, "available_processors", lambda: 4)
    launches = {ranks: [launch(ranks, 0.1 + ranks / 100)] * 6 for ranks in DESIGN.ranks}
    compute = ComputeModel.of([ComputeTimes(8, 0.02, 0.06, 0.08), ComputeTimes(32, 0.025, 0.08, 0.1)])
    sizes = np.array([2.0**power for power in range(20)])
    times = 5e-6 + sizes / 1e9
    calibration = fit_messages(sizes, times, 0.0)
    step = compute.training_step(32, 4_000_000, 1 << 22, overlaps=True)
    points = predict_scaling(["ring_allreduce"], step, DESIGN, calibration.model, [1, 2, 64, 1024])
    prediction = Prediction(points, compute, calibration, calibration_to_dict(calibration, times, sizes))
    measured = summarise_scaling(launches, DESIGN, 32)
    about = {"recipe": {"name": "digits"}}
    return ScalingResult("digits", "allreduce", "some 1.0", 32, DESIGN, measured, launches, prediction, ["x"], about)


def test_document(result: ScalingResult, tmp_path: Path) -> None:
    result.write(tmp_path / "r.json")
    document = json.loads((tmp_path / "r.json").read_text())

    assert document["kind"] == "scaling"
    assert document["base_case"]["ranks"] == 1
    assert "single rank: 110 ms (110 .. 110) a step of 32 samples" in document["base_case"]["text"]
    assert [point["ranks"] for point in document["points"]] == [1, 2, 64]
    assert [point["oversubscribed"] for point in document["points"]] == [False, False, True]
    assert len(document["launches"]["64"]) == 6
    assert len(document["launches"]["2"][0]["step_s"]) == 2
    assert len(document["design"]["order"]) == 18
    assert document["prediction"]["points"]["ring_allreduce"][-1]["ranks"] == 1024
    errors = document["prediction"]["relative_error_of_step"]["ring_allreduce"]
    assert set(errors) == {"1", "2", "64"}
    assert errors["1"] == pytest.approx(0.1 / 0.11 - 1, rel=1e-6)
    assert document["prediction"]["messages"]["held_out_bytes"]


def test_picture_marks_oversubscribed_ranks(result: ScalingResult, tmp_path: Path) -> None:
    result.draw(tmp_path / "r.svg")
    text = (tmp_path / "r.svg").read_text()

    assert "allreduce, measured, oversubscribed" in text
    assert "ring allreduce, predicted" in text
    assert "Base case" in text


def test_words_for_intervals() -> None:
    assert with_interval("s", Estimate(0.002)) == "2 ms (no interval)"
    assert with_interval("s", Estimate(0.002, 0.001, 0.003)) == "2 ms (1 .. 3)"


def test_run_that_broke_off_says_how_far_it_came(result: ScalingResult, tmp_path: Path) -> None:
    assert result.how_far == ""
    assert result.to_dict()["complete"] is True
    without = dataclasses.replace(result, complete=False, prediction=None)
    assert without.how_far == "Incomplete: all launches were measured, but nothing was predicted."

    taken = {2: result.launches[2][:1]}
    points = summarise_scaling(taken, DESIGN, 32)
    first = dataclasses.replace(without, launches=taken, points=points)
    assert first.how_far == "Incomplete: 1 of 18 launches were measured; nothing on 1, 64 ranks."
    first.write(tmp_path / "r.json")
    document = json.loads((tmp_path / "r.json").read_text())
    assert (document["complete"], document["base_case"]["ranks"]) == (False, 2)
    assert document["design"]["ranks"] == [1, 2, 64]
    assert document["base_case"]["text"].startswith("the same parallel program on 2 ranks")
    first.draw(tmp_path / "r.svg")
    assert "Incomplete: 1 of 18" in (tmp_path / "r.svg").read_text()
