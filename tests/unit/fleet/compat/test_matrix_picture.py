from __future__ import annotations

from deep500.fleet.compat.matrix_picture import matrix_figure
from deep500.fleet.outcome import STATUSES
from deep500.measure.rendering import rendered
from tests.unit.fleet.compat.support import cell


def test_every_status_is_drawn_and_columns_say_what_differs() -> None:
    statuses = {cell(version=f"{n}.0"): status for n, status in enumerate((*STATUSES, "dropped", "planned"))}
    statuses[cell(version="0.0", ranks=2)] = "passed"
    assert rendered(lambda: matrix_figure(statuses), ".svg").startswith(b"<?xml")
    figure = matrix_figure(statuses)
    labels = [label.get_text() for label in figure.axes[0].get_xticklabels()]
    assert labels == ["1 rank", "2 ranks"]
    assert len(figure.axes[0].patches) == 11
    assert matrix_figure({}).axes
