from __future__ import annotations

from pathlib import Path

import numpy as np

from deep500.fleet.trace.generating import generate_trace
from deep500.fleet.trace.truth_picture import truth_figure


def test_curves_are_those_that_were_planted(tmp_path: Path) -> None:
    truth = generate_trace(tmp_path / "made", 50, seed=1)
    figure = truth_figure(truth)

    assert [axis.get_title() for axis in figure.axes] == [
        "not yet failed, were it alone",
        "not yet passed, were it alone",
    ]
    for axis, cause in zip(figure.axes, ("failed", "passed"), strict=True):
        planted = truth[cause]
        assert len(axis.lines) == len(planted["scale_h"])
        for line, (name, scale) in zip(axis.lines, planted["scale_h"].items(), strict=True):
            hours, left = line.get_data()
            # At its scale, a share of 1 / e is left, whatever the shape.
            assert abs(np.interp(np.log(scale), np.log(hours), left) - np.exp(-1)) < 1e-3
            assert name in line.get_label()
