"""Pictures of a trace show something for all traces, also where all tasks ended at once."""

from __future__ import annotations

import pytest

from deep500.fleet import Outcome, OutcomeTable
from deep500.fleet.trace.drawing import curves_figure
from deep500.fleet.trace.report import TraceReport, report_trace


def trace(*durations: float, types: int = 2) -> TraceReport:
    return report_trace(
        OutcomeTable.from_outcomes(
            [
                Outcome(
                    f"t{n}",
                    f"u{n % 7}",
                    "failed" if n % 3 else "passed",
                    started=0.0,
                    ended=time,
                    labels={"gpu_type": f"T{n % types}"},
                )
                for n, time in enumerate(durations)
            ]
        ),
        top=100,
        resamples=100,
    )


@pytest.mark.parametrize("time", [0.0, 1e-7, 0.5, 3600.0, 1e12, 1e300])
def test_all_ended_at_once(time: float) -> None:
    figure = curves_figure(trace(*[time] * 40).factors[0].groups, "at once")
    running, failed, passed = figure.axes
    for axis, begins in ((running, 1.0), (failed, 0.0), (passed, 0.0)):
        low, high = axis.get_xlim()
        assert low < high
        for line in axis.get_lines():
            x, y = line.get_xdata(), line.get_ydata()
            assert len(x) == 2
            assert y[0] == begins != y[1]
            assert low <= x[0] <= x[1] <= high


def test_the_smallest_of_many_groups_are_not_drawn() -> None:
    report = trace(*(float(n) for n in range(1, 200)), types=40)
    figure = curves_figure(report.factors[0].groups, "By GPU type")
    assert len(figure.axes[0].get_lines()) == 20
    assert "20 smaller groups are not drawn" in figure.get_suptitle()


def test_bars_of_groups_stand_side_by_side_and_are_explained() -> None:
    report = trace(*(3000.0 + n for n in range(1, 1200)))
    figure = curves_figure(report.factors[0].groups, "By GPU type")
    bars = [part.get_segments()[0][0][0] for part in figure.axes[1].collections]
    assert len(bars) == len(set(bars)) == 2
    assert "intervals over users" in figure.get_suptitle()
