from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from deep500.core.errors import InvalidInputError, MeasurementError
from deep500.measure.metric import Direction, MetricKind
from deep500.measure.metric_test import measure_metrics
from deep500.measure.metrics import _heatmaps
from deep500.measure.metrics.diff_heatmap import DiffHeatmap
from deep500.measure.metrics.max_error import MaxError
from tests.unit.measure.metrics.arrays import COMPLEX, EXTENDED, FLOATS, INTEGERS, pairs


@given(pairs([*INTEGERS, *FLOATS, *COMPLEX, *EXTENDED]))
def test_value_is_the_largest_difference(pair: Any) -> None:
    expected = MaxError().measure(None, [pair[0], 1.0], [pair[1], 1.0])

    assert DiffHeatmap().measure(None, [pair[0], 1.0], [pair[1], 1.0]) == pytest.approx(expected, rel=0, nan_ok=True)


def test_picture_shows_the_differences(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[Any] = []
    figure = _heatmaps.heatmap_figure

    def keep(values: Any, colours: str, log_scale: bool) -> Any:
        drawn.append((values, colours, log_scale))
        return figure(values, colours, log_scale)

    monkeypatch.setattr(_heatmaps, "heatmap_figure", keep)
    path = tmp_path / "difference.png"
    outputs = {"y": np.array([[1.0, -2.0]]), "z": np.array([3])}
    [found] = measure_metrics(
        [DiffHeatmap(path, log_scale=True)],
        lambda: outputs,
        reference_outputs={"y": np.array([[1.5, 2.0]]), "z": np.array([3])},
    )

    values, colours, log_scale = drawn[0]
    assert {name: array.tolist() for name, array in values.items()} == {"output 'y'": [[0.5, 4.0]], "output 'z'": [0.0]}
    assert (colours, log_scale) == ("|output − reference|", True)
    assert (found.value, found.summary) == (4.0, f"4 (picture: {path})")
    assert path.stat().st_size > 1000


def test_what_it_is_and_what_it_needs() -> None:
    metric = DiffHeatmap()

    assert (metric.unit, metric.direction, metric.kind) == ("", Direction.LOWER, MetricKind.SCORE)
    assert (metric.reruns, metric.requires_inputs, metric.requires_outputs) == (0, False, True)
    with pytest.raises(MeasurementError, match="DiffHeatmap needs reference outputs"):
        metric.measure(None, [1.0])
    with pytest.raises(InvalidInputError, match="DiffHeatmap compares"):
        metric.measure(None, [1.0], [1.0, 2.0])
