from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from deep500.core.errors import DatasetError, MeasurementError
from deep500.measure.sampling.description import describe_workload
from deep500.measure.workload import Score, Work, Workload
from tests.unit.measure.sampling.workloads import Described, Unspeakable


def workload(**properties: Any) -> Workload:
    """Return a workload some of whose properties are replaced; of ``scores`` the result."""
    values = {
        name: (lambda self, value=value: value) if name == "scores" else property(lambda self, value=value: value)
        for name, value in properties.items()
    }
    return type("Odd", (Described,), values)()


def test_what_is_said_is_kept() -> None:
    said = describe_workload(Described(), "it")

    assert said["identity"] == {"problem": "described"}
    assert said["work"] == Work(items=3, item="sheep")
    assert said["scores"][0].name == "TestAccuracy"
    assert "synchronised" not in said["factors"]


def test_device_is_said_to_be_waited_for() -> None:
    class OnDevice(Described):
        def synchronize(self) -> None:
            raise AssertionError("not asked for here")

    assert describe_workload(OnDevice(), "it")["factors"]["synchronised"] == "before and after each sample"


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ({"work": None}, "its work is None"),
        ({"work": {"flops": 3}}, "its work is {'flops': 3}"),
        ({"scores": [1.0]}, "scores\\(\\) is 1.0"),
        ({"scores": "abc"}, "scores\\(\\) is 'a'"),
        ({"identity": [1]}, "its identity is \\[1\\]"),
        ({"identity": {"size": np.int64(3)}}, r"identity\['size'\] is np.int64\(3\) \(a numpy.int64\)"),
        ({"identity": {"size": {1, 2}}}, r"identity\['size'\]"),
        ({"identity": {"size": float("nan")}}, r"identity\['size'\] is nan"),
        ({"identity": {3: "x"}}, "its identity is"),
        ({"factors": {"list": [1]}}, r"factors\['list'\] is \[1\]"),
        ({"factors": {"rate": float("inf")}}, r"factors\['rate'\] is inf"),
        ({"data_hash": "abc"}, "its data_hash is 'abc'"),
        ({"data_hash": b"a" * 64}, "its data_hash"),
        ({"initialisation_hash": 3}, "its initialisation_hash is 3"),
    ],
)
def test_what_a_file_could_not_hold_is_refused_by_name(properties: dict[str, Any], message: str) -> None:
    with pytest.raises(MeasurementError, match=message):
        describe_workload(workload(**properties), "it")


def test_failure_is_told_and_own_errors_go_through() -> None:
    class Gone(Described):
        def scores(self) -> list[Score]:
            raise DatasetError("gone")

    with pytest.raises(MeasurementError, match="it was measured but cannot say what it is: KeyError"):
        describe_workload(Unspeakable(), "it")
    with pytest.raises(DatasetError, match=r"^gone$"):
        describe_workload(Gone(), "it")
