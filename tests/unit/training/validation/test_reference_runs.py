from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from deep500.core.errors import MeasurementError
from deep500.training.validation.reference_runs import ReferenceRuns, read_reference_runs, write_reference_runs

RUNS = ReferenceRuns("digits", "TestAccuracy", 97.0, "samples", (900.0, math.inf), (0, 1), source="here")


def test_file_holds_what_was_written(tmp_path: Path) -> None:
    write_reference_runs(RUNS, tmp_path / "runs.json")

    assert read_reference_runs(tmp_path / "runs.json") == RUNS
    assert json.loads((tmp_path / "runs.json").read_text())["values"] == [900.0, "inf"]


def test_changed_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "runs.json"
    write_reference_runs(RUNS, path)
    content = json.loads(path.read_text())

    for changes, why in (
        ({"target": 98.0}, "were changed"),
        ({"schema_version": 9}, "of version 9"),
        ({"kind": "measurement"}, "holds no reference runs"),
    ):
        path.write_text(json.dumps(content | changes))
        with pytest.raises(MeasurementError, match=why):
            read_reference_runs(path)
    path.write_text("{")
    with pytest.raises(MeasurementError, match="cannot be read"):
        read_reference_runs(path)
    with pytest.raises(MeasurementError, match="cannot be read"):
        read_reference_runs(tmp_path / "none.json")


@pytest.mark.parametrize(
    "changes",
    [
        {"values": ()},
        {"values": (0.0,)},
        {"unit": "hours"},
        {"direction": "up"},
        {"target": math.nan},
        {"seeds": (1, 2, 3)},
    ],
)
def test_values_are_checked(changes: dict[str, object]) -> None:
    with pytest.raises(MeasurementError):
        ReferenceRuns(**{"name": "a", "metric": "m", "target": 1.0, "unit": "steps", "values": (1.0,), **changes})  # type: ignore[arg-type]


def test_target_is_a_phrase() -> None:
    assert RUNS.target_text == "TestAccuracy >= 97"
    assert ReferenceRuns("a", "loss", 0.5, "steps", (1,), direction="lower").target_text == "loss <= 0.5"
