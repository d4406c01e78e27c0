"""The picture of scaling has its points, and the same bytes each time."""

from __future__ import annotations

from pathlib import Path

import pytest

from deep500.core.errors import CommunicationError, MeasurementError
from deep500.distributed.simulation.cost_model import LogGP
from deep500.distributed.simulation.picture import MeasuredEfficiency, _figure, draw_scaling
from deep500.distributed.simulation.training_step import TrainingStep, predict

RANKS = [2**power for power in range(11)]
STEP = TrainingStep(0.4, 0.8, 4 * 11_689_512, bucket_bytes=4 << 20)
CLUSTER = LogGP(latency_s=25e-6, gap_s_per_byte=1 / 1.1e9)
PREDICTED = {
    label: predict(STEP, name, RANKS, CLUSTER)
    for label, name in [("ring", "ring_allreduce"), ("Rabenseifner", "rabenseifner_allreduce")]
}
MEASURED = {"ring": [MeasuredEfficiency(1, 1.0, 0.98, 1.02), MeasuredEfficiency(2, 0.95, 0.92, 0.97)]}


def test_file_is_svg_and_repeats(tmp_path: Path) -> None:
    for name in ("a.svg", "b.svg"):
        draw_scaling(tmp_path / name, PREDICTED, MEASURED, title="ResNet-18, weak", note="base case: 1 rank")

    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
    assert b"<svg" in (tmp_path / "a.svg").read_bytes()


def test_axes_hold_all_points() -> None:
    (axes,) = _figure(PREDICTED, MEASURED, "", "").axes
    lines = {line.get_label(): line for line in axes.get_lines()}

    assert list(lines["ring, predicted"].get_xdata()) == RANKS
    assert list(lines["ring, predicted"].get_ydata()) == [100 * point.efficiency for point in PREDICTED["ring"]]
    assert [100.0, 95.0] in [list(line.get_ydata()) for line in axes.get_lines()]
    assert axes.get_ylim() == (0, 105)
    assert axes.get_xscale() == "log"


def test_measured_alone(tmp_path: Path) -> None:
    draw_scaling(tmp_path / "a.png", {}, MEASURED)

    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")


def test_nothing_to_draw(tmp_path: Path) -> None:
    with pytest.raises(CommunicationError, match="no point"):
        draw_scaling(tmp_path / "a.svg", {"ring": []})
    with pytest.raises(MeasurementError, match="svg"):
        draw_scaling(tmp_path / "a.bmp", PREDICTED)


def test_oversubscribed_ranks_are_marked() -> None:
    taken = {"ring": [*MEASURED["ring"], MeasuredEfficiency(4, 0.4, 0.3, 0.5, oversubscribed=True)]}
    figure = _figure({}, taken, "", "")
    labels = [text.get_text() for text in figure.legends[0].get_texts()]

    assert labels == ["ring, measured", "ring, measured, oversubscribed"]
