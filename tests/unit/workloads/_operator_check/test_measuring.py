from __future__ import annotations

import json
from pathlib import Path

import pytest

from deep500.core.tensor_descriptor import tensordesc
from deep500.workloads._operator_check.measuring import measure_calls
from tests.unit.workloads._operator_check.support import measure_here, write_operators


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write_operators(tmp_path, "Good", "NeedsPower")


def test_time_of_a_call(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    launched = measure_here(monkeypatch)
    found = measure_calls(path, "NeedsPower", {"power": 3}, "reference", "small", launches=6)

    assert found.failure == ""
    assert found.time is not None
    assert found.time.interval is not None
    assert 0 < found.time.interval.low <= found.time.estimate <= found.time.interval.high < 1
    assert found.inputs == "float32[2, 3, 4]"
    assert str(found).startswith("float32[2, 3, 4]: ")
    assert " .. " in str(found)
    assert "in one process" not in str(found)
    assert len(launched) == 6
    assert "@reference" in launched[0][0]
    content = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert content["time_s"]["estimate"] == found.time.estimate
    assert "ratio" not in content


def test_beside_a_function(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    launched = measure_here(monkeypatch)
    found = measure_calls(
        path, "Good", {}, "reference", "large", function="numpy:sin", against="numpy:sin", launches=6, seed=3
    )

    assert found.failure == ""
    assert found.comparison is not None
    assert found.function_time is not None
    assert found.inputs == "float32[64, 96, 128]"
    assert len(launched) == 6
    assert ["call.against" in text for text in launched[0]] == [True, False]
    assert all("call.seed=3" in text for text in launched[0])
    assert "; numpy:sin: " in str(found)
    assert "ratio" in str(found)
    assert json.loads(json.dumps(found.to_dict(), allow_nan=False))["verdict"] == found.comparison.verdict.value


def test_one_launch_has_no_interval_over_launches(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    measure_here(monkeypatch)
    found = measure_calls(path, "Good", {}, "reference", "small", launches=1, inputs=[tensordesc("float64", 5)])

    assert found.inputs == "float64[5]"
    assert found.to_dict()["time_s"]["launches"] == 1
    assert " in one process)" in str(found)


def test_what_cannot_be_measured_says_why(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    measure_here(monkeypatch)
    found = measure_calls(path, "NeedsPower", {}, "reference", "small", launches=1)

    assert found.time is None
    assert "needs a value for power" in str(found)
    assert found.to_dict()["failure"] == found.failure
