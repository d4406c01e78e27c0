from __future__ import annotations

import numpy as np
import pytest

from deep500.measure.pictures.ecdf import ecdf
from deep500.measure.results.document import Statistic
from deep500.measure.results.summary import summarise
from tests.unit.measure.pictures.support import axes_of, draws, legend_of, lines, measurement


def value_at(line, place):
    """Return the height of a step curve right of a place."""
    index = np.searchsorted(line.get_xdata(), place, side="right") - 1
    return 0.0 if index < 0 else line.get_ydata()[index]


def test_curves_are_the_shares_of_samples():
    result = measurement(draws(6, 30))
    figure = ecdf(result)
    rows = [1e3 * np.asarray(row) for row in result.systems[0].metric().rows]
    (pooled,) = lines(figure, "pooled")
    singles = lines(figure, "launch")

    assert len(singles) == 6
    for place in np.linspace(1.5, 2.8, 17):
        for row, line in zip(rows, singles):
            assert value_at(line, place) == pytest.approx(np.mean(row <= place))
        assert value_at(pooled, place) == pytest.approx(np.mean(np.concatenate(rows) <= place))
    for line in [pooled, *singles]:
        assert (line.get_ydata()[0], line.get_ydata()[-1]) == (0.0, 1.0)
        assert line.get_drawstyle() == "steps-post"


def test_launches_count_the_same():
    (pooled,) = lines(ecdf(measurement([[1.0] * 90, [2.0] * 10])), "pooled")

    assert value_at(pooled, 1.5) == pytest.approx(0.5)


@pytest.mark.parametrize("quantile", [0.5, 0.9])
def test_medians_and_intervals_are_those_of_the_summary(quantile):
    statistic = Statistic("median" if quantile == 0.5 else "quantile", quantile)
    result = measurement(draws(7, 40), draws(6, 40, seed=2), statistic=statistic)
    figure = ecdf(result)
    bands = [patch for patch in axes_of(figure).patches if patch.get_label() == "band"]

    for number, system in enumerate(result.systems):
        summary = summarise(system.metric(), statistic)
        ends = pytest.approx([1e3 * summary.interval.low, 1e3 * summary.interval.high])
        estimate = lines(figure, "estimate")[number]
        assert (estimate.get_xdata()[0], estimate.get_ydata()[0]) == (pytest.approx(1e3 * summary.estimate), quantile)
        assert list(lines(figure, "interval")[number].get_xdata()) == ends
        box = bands[number].get_extents().transformed(axes_of(figure).transData.inverted())
        assert [box.x0, box.x1] == ends


def test_long_curves_are_thinned_and_stay_right():
    row = list(2.0 * np.random.default_rng(0).lognormal(0, 1, 50_000))
    (pooled,) = lines(ecdf(measurement([row])), "pooled")

    assert len(pooled.get_xdata()) <= 2001
    for place in (0.2, 0.5, 1.0, 3.0):
        assert value_at(pooled, place) == pytest.approx(np.mean(np.asarray(row) <= place), abs=1e-3)
    assert pooled.get_xdata()[-1] == max(row)


@pytest.mark.parametrize("rows", [[[3.0]], [[3.0, 3.0, 3.0]], [[3.0] * 12] * 6, [[0.0]], [[1.0, 2.0]] * 3])
def test_any_number_of_samples_gives_a_picture(rows):
    figure = ecdf(measurement(rows))
    figure.canvas.draw()
    (pooled,) = lines(figure, "pooled")

    assert pooled.get_ydata()[-1] == 1.0
    assert len(lines(figure, "launch")) == (len(rows) if len(rows) > 1 else 0)
    assert ("single launches" in legend_of(figure)) is (len(rows) > 1)


def test_the_legend_names_every_system_and_no_two_look_alike():
    figure = ecdf(measurement(*(draws(6, 10, seed=number) for number in range(9))))
    looks = {(line.get_color(), line.get_linestyle()) for line in lines(figure, "pooled")}

    assert len(looks) == 9
    for number in range(9):
        assert f"system {number}: 6 launches × 10 samples, median " in legend_of(figure)
