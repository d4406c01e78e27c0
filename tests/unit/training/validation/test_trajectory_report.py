from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from deep500.core.errors import TrainingError
from deep500.training.validation.trajectory_report import (
    Growth,
    Parting,
    TensorParting,
    Trajectory,
    TrajectoryReport,
)


def report(parting: Parting | None = None) -> TrajectoryReport:
    distances = (1e-8, 2e-8, 4e-8)
    trajectory = Trajectory(
        "pytorch", (2.0, 1.5, 1.0), distances, {"w": distances}, (0.0, math.inf, 0.0), parting, Growth.of([*distances])
    )
    return TrajectoryReport("net", "Adam", "reference", (2.0, 1.5, 1.0), (trajectory,), (1e-7,) * 3, 1e-6)


PARTING = Parting(2, (TensorParting("w", 1e-3, 1e-7), TensorParting("b", 1e-5, 1e-7)), "The update differs.")


def test_growth_is_the_exponential_fit() -> None:
    growth = Growth.of([1e-8 * math.exp(0.3 * step) for step in range(1, 9)])

    assert growth is not None
    assert growth.rate == pytest.approx(0.3)
    assert growth.at_first == pytest.approx(1e-8 * math.exp(0.3))
    assert growth.doubling_steps == pytest.approx(math.log(2) / 0.3)
    assert growth.r_squared == pytest.approx(1.0)
    assert Growth.of([0.0, 0.0, 1e-8, 1e-7]) is None
    flat = Growth.of([1e-8] * 4)
    assert flat is not None
    assert flat.r_squared == 1.0


def test_verdicts() -> None:
    assert report().passed
    assert "pytorch: agrees; in the end it is 4e-08 away" in str(report())
    parted = report(PARTING)
    assert not parted.passed
    assert "pytorch: parts at step 2" in str(parted)
    assert "'w' is 0.001 away; allowed is 1e-07" in str(parted)
    assert PARTING.tensor == "w"
    assert PARTING.tensors[0].excess == pytest.approx(1e4)


def test_report_as_json() -> None:
    content = json.loads(json.dumps(report(PARTING).to_dict(), allow_nan=False))

    assert content["passed"] is False
    assert content["trajectories"][0]["parting"]["step"] == 2
    assert content["trajectories"][0]["loss_distances"][1] == "inf"


def test_framework_is_found_by_name() -> None:
    assert report().of("pytorch").framework == "pytorch"
    with pytest.raises(TrainingError, match="there are those of pytorch"):
        report().of("tensorflow")


def test_picture_is_the_same_at_another_time(tmp_path: Path) -> None:
    for name in ("a.svg", "b.svg", "c.png"):
        report(PARTING).draw(tmp_path / name)

    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
    assert (tmp_path / "c.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(TrainingError, match=r"\.png or \.svg"):
        report().draw(tmp_path / "a.pdf")
