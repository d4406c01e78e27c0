"""Predictions are against the base case, and go no further than the minibatch can be divided."""

from __future__ import annotations

import json

import numpy as np
import pytest

from deep500.distributed.scaling.design import ScalingDesign
from deep500.distributed.scaling.prediction import (
    calibration_sizes,
    calibration_to_dict,
    doubts_of_calibration,
    fit_messages,
    predict_scaling,
    predicted_algorithms,
    predicted_ranks,
)
from deep500.distributed.simulation.catalogue import ALGORITHMS
from deep500.distributed.simulation.closed_forms import closed_form
from deep500.distributed.simulation.cost_model import LogGP
from deep500.distributed.simulation.training_step import TrainingStep

MODEL = LogGP(latency_s=25e-6, gap_s_per_byte=1 / 1.1e9)
STEP = TrainingStep(0.1, 0.2, 4_000_000, 0.01, overlaps=False)


def test_efficiencies_are_against_the_base_case() -> None:
    for mode in ("strong", "weak"):
        points = predict_scaling(["ring_allreduce"], STEP, ScalingDesign((2, 4), mode), MODEL, [2, 4, 8])
        first, second, third = points["ring_allreduce"]
        exchange = closed_form("ring_allreduce")(MODEL, 4, 1_000_000, 4)
        compute = 0.01 + (0.3 / 4 if mode == "strong" else 0.3)

        assert first.efficiency == 1.0
        assert second.step_s == pytest.approx(compute + exchange)
        growth = 2 if mode == "strong" else 1
        assert second.efficiency == pytest.approx(first.step_s / (growth * second.step_s))
        assert third.efficiency < second.efficiency < 1


def test_ranks_of_predictions() -> None:
    assert predicted_ranks(ScalingDesign((1, 3), "weak"), 20, 32) == [1, 2, 3, 4, 8, 16, 20]
    assert predicted_ranks(ScalingDesign((2, 4), "strong"), 1024, 24) == [2, 4, 8, 16, 24]
    assert predicted_ranks(ScalingDesign((4, 64), "weak"), 8, 32) == [4, 8, 64]
    assert predicted_ranks(ScalingDesign((1,), "weak"), 1024, 32)[-1] == 1024


def test_algorithms_that_are_named_are_there() -> None:
    for scheme in ("allreduce", "parameter_server", "consistent_neighbors", "dpsgd"):
        assert predicted_algorithms(scheme)
        for name in predicted_algorithms(scheme):
            assert name in ALGORITHMS
            assert closed_form(name)(MODEL, 8, 1000, 4) > 0
    assert predicted_algorithms("qsgd") == ()


def test_sizes_reach_beyond_a_bucket() -> None:
    assert calibration_sizes(10)[-1] == 1 << 16
    assert calibration_sizes(1 << 20)[-1] == 1 << 21
    assert calibration_sizes(1 << 40)[-1] == 1 << 26
    sizes = calibration_sizes(1 << 22)
    assert sizes[0] == 1
    assert sizes == sorted(set(sizes))


def test_calibration_is_fitted_and_checked() -> None:
    sizes = np.tile(calibration_sizes(1 << 20), 5).astype(float)
    times = 5e-6 + sizes / 3e9
    calibration = fit_messages(sizes, times, 1e-10)
    document = calibration_to_dict(calibration, times, sizes)

    assert calibration.largest_relative_error < 1e-6
    assert calibration.model.latency_s == pytest.approx(5e-6)
    assert document["segments"][-1]["up_to_bytes"] is None
    assert document["reduction_s_per_byte"] == 1e-10
    assert len(json.loads(json.dumps(document, allow_nan=False))["times_s"]) == len(sizes)


def test_calibration_that_misses_is_doubted() -> None:
    sizes = np.array([2.0**power for power in range(24)])
    good, bad = 5e-6 + sizes / 3e9, 5e-6 + sizes / 3e9
    bad[2::3] *= 3  # every third size is held out

    assert doubts_of_calibration(fit_messages(sizes, good, 0.0)) == []
    (doubt,) = doubts_of_calibration(fit_messages(sizes, bad, 0.0))
    assert "median error 67%" in doubt
    assert "while nothing else runs" in doubt
