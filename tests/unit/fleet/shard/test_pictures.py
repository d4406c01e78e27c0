from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest

from deep500.fleet.shard.cases import Case
from deep500.fleet.shard.gpu_report import gpu_report
from deep500.fleet.shard.lanes import lanes_of_texts
from deep500.fleet.shard.pictures import draw_change, draw_needs, draw_plan, draw_plans
from deep500.fleet.shard.planning import make_plan
from deep500.fleet.shard.whatif import Load, what_if
from deep500.measure.rendering import rendered
from tests.unit.fleet.shard.test_gpu_report import TABLE

CASES = [Case(f"file_{i}", 60.0 * i, 1 + i % 4) for i in range(8)]
LANES = lanes_of_texts(["2x2", "4x1@3h"])


def test_a_plan() -> None:
    plan = make_plan(CASES, LANES)
    figure = draw_plan(plan)
    (axes,) = figure.axes
    assert len(axes.get_yticks()) == 5  # three shards, and the two of round robin
    widths = sum(bar.get_width() for bar in axes.patches)
    assert widths == pytest.approx(
        (sum(c.seconds or 0 for c in CASES) + sum(c.seconds or 0 for c in CASES if c.gpus < 3)) / 60
    )
    ET.fromstring(rendered(lambda: draw_plan(plan), ".svg"))
    many = draw_plans([("one", plan), ("two", plan)])
    assert [label.get_text() for label in many.axes[0].get_yticklabels()] == ["one", "two"]


def test_a_change_and_needs() -> None:
    result = what_if(CASES, LANES, LANES, Load(per_hour=1.0, commits=50, replications=6))
    assert len(draw_change(result).axes[0].get_yticks()) == 4
    figure = draw_needs(gpu_report(TABLE))
    assert [label.get_text() for label in figure.axes[0].get_xticklabels()] == ["1", "2", "4", "8", "unknown"]


def test_pictures_say_what_they_show() -> None:
    plan = make_plan(CASES, LANES)
    result = what_if(CASES, LANES, LANES, Load(per_hour=1.0, commits=50, replications=6))
    needs = draw_needs(gpu_report(TABLE))
    for figure in (draw_plan(plan), draw_plans([("one", plan)]), draw_change(result), needs):
        assert figure.axes[0].get_title(loc="left")
    assert "skipped in some run, since GPUs lacked" in needs.axes[0].get_legend_handles_labels()[1]
