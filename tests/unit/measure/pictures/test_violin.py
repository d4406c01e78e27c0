from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deep500.measure.pictures._systems import shown_metric
from deep500.measure.pictures.violin import _density, violin
from deep500.measure.results.document import Statistic
from deep500.measure.results.summary import summarise
from tests.unit.measure.pictures.support import axes_of, draws, legend_of, lines, measurement


def densities(figure):
    """Return the outline of each violin: places, lower and upper ends."""
    found = [patch for patch in axes_of(figure).collections if patch.get_label() == "density"]
    outlines = []
    for patch in found:
        (path,) = patch.get_paths()
        outlines.append(path.vertices)
    return outlines


def test_medians_intervals_and_launches_are_those_of_the_summary():
    result = measurement(draws(8, 30), draws(10, 20, median=3e-3, seed=1))
    figure = violin(result)

    for number, system in enumerate(result.systems):
        summary = summarise(system.metric())
        (estimate,) = lines(figure, "estimate")[number].get_xdata()
        assert estimate == pytest.approx(1e3 * summary.estimate)
        ends = lines(figure, "interval")[number].get_xdata()
        assert ends == pytest.approx([1e3 * summary.interval.low, 1e3 * summary.interval.high])
        dots = lines(figure, "launches")[number].get_xdata()
        assert dots == pytest.approx([1e3 * np.median(row) for row in system.metric().rows])


def test_systems_stand_from_top_to_bottom_and_launches_from_bottom_to_top():
    figure = violin(measurement(draws(6, 20), draws(6, 20)))
    heights = [line.get_ydata()[0] for line in lines(figure, "estimate")]
    dots = lines(figure, "launches")[0].get_ydata()

    assert heights == [1.0, 0.0]
    assert list(dots) == sorted(dots)
    assert max(dots) < heights[0] - 0.3  # below the violin


def test_density_lies_between_the_extreme_samples_and_around_its_middle():
    result = measurement(draws(6, 200), draws(6, 15, seed=4))
    for number, (outline, system) in enumerate(zip(densities(violin(result)), result.systems)):
        everything = 1e3 * np.concatenate(system.metric().rows)
        middle = 1 - number
        assert outline[:, 0].min() == pytest.approx(everything.min())
        assert outline[:, 0].max() == pytest.approx(everything.max())
        heights = np.abs(outline[:, 1] - middle)
        assert heights.max() == pytest.approx(0.3)
        upper = outline[outline[:, 1] > middle]
        lower = outline[outline[:, 1] < middle]
        assert len(upper)
        assert len(lower)


def test_density_follows_the_samples():
    stream = np.random.default_rng(0)
    rows = [
        np.where(stream.random(300) < 0.7, stream.normal(1, 0.02, 300), stream.normal(1.5, 0.02, 300)) for _ in range(6)
    ]
    ((outline),) = densities(violin(measurement(rows)))
    upper = outline[outline[:, 1] >= 0]
    peak = upper[np.argmax(upper[:, 1]), 0]
    between = upper[np.abs(upper[:, 0] - 1.25) < 0.1, 1].max()
    second = upper[np.abs(upper[:, 0] - 1.5) < 0.05, 1].max()

    assert peak == pytest.approx(1.0, abs=0.02)
    assert between < 0.01
    assert second / upper[:, 1].max() == pytest.approx(3 / 7, abs=0.1)


@given(st.lists(st.floats(1e-9, 1e9), min_size=1, max_size=60), st.booleans())
def test_density_has_no_negative_width_and_leaves_the_samples_nowhere(samples, logarithmic):
    (system,) = shown_metric(measurement([samples]), None).systems
    places, heights = _density(system, logarithmic)

    assert np.all((heights >= 0) & (heights <= 1))
    assert heights.max() == 1
    assert np.all(np.diff(places) >= 0)
    assert places[0] == pytest.approx(system.samples.min())
    assert places[-1] == pytest.approx(system.samples.max())


def test_launches_count_the_same_in_the_density():
    many, few = list(np.linspace(0.99, 1.01, 400)), list(np.linspace(1.99, 2.01, 20))
    ((outline),) = densities(violin(measurement([many, few])))
    heights = [outline[np.abs(outline[:, 0] - place) < 0.1, 1].max() for place in (1.0, 2.0)]

    assert heights[0] == pytest.approx(heights[1], rel=0.05)


def test_few_samples_and_far_ones_are_drawn_one_by_one():
    figure = violin(measurement([[1.0, 1.1, 1.2]]))
    assert densities(figure) == []
    assert list(lines(figure, "singles")[0].get_xdata()) == [1.0, 1.1, 1.2]
    rows = [[1.0 + 0.001 * number for number in range(20)] for _ in range(6)]
    rows[3][7] = 4.0
    figure = violin(measurement(rows))
    assert list(lines(figure, "singles")[0].get_xdata()) == [4.0]
    assert "single samples" in legend_of(figure)


def test_many_far_samples_at_one_place_are_drawn_once_and_none_is_left_out_at_others():
    rows = [list(np.linspace(1.0, 1.1, 2000)) + list(np.linspace(4.0, 4.0001, 50)) + [6.0] for _ in range(6)]
    (line,) = lines(violin(measurement(rows)), "singles")

    assert list(line.get_xdata()) == [4.0, 6.0]


def test_far_is_told_with_launches_counted_the_same():
    rows = [list(np.linspace(1.0, 1.1, 1000)), list(np.linspace(3.0, 3.1, 20)), list(np.linspace(3.0, 3.1, 20))]
    (line,) = lines(violin(measurement(rows)), "singles")

    assert len(line.get_xdata()) == 0


def test_one_sample_a_launch_is_a_dot_and_nothing_else():
    figure = violin(measurement([[1.0], [1.1], [1.2], [1.3], [1.4], [1.5]]))

    assert densities(figure) == []
    assert len(lines(figure, "singles")[0].get_xdata()) == 0
    assert len(lines(figure, "launches")[0].get_xdata()) == 6
    assert len(lines(figure, "interval")) == 1


@pytest.mark.parametrize(
    "rows",
    [[[3.0]], [[3.0, 3.0, 3.0]], [[3.0] * 12] * 6, [[0.0] * 12] * 6, [[1.0, 2.0]] * 3, [[1.0, 1 + 3e-16] * 6] * 2],
)
def test_any_number_of_samples_gives_a_picture(rows, tmp_path):
    figure = violin(measurement(rows))
    figure.canvas.draw()

    assert len(lines(figure, "estimate")) == 1
    low, high = axes_of(figure).get_xlim()
    assert low <= min(map(min, rows)) <= max(map(max, rows)) < high
    assert bool(lines(figure, "launches")) is (len(rows) > 1)


def test_labels_tell_launches_samples_and_the_interval():
    result = measurement(draws(6, 20), draws(1, 30), draws(3, 20), labels=["many", "one", "three"])
    texts = [label.get_text() for label in axes_of(violin(result)).get_yticklabels()]

    assert "many\n6 launches × 20 samples\nmedian " in texts[0]
    assert "\n95 % CI " in texts[0]
    assert "1 process × 30 samples" in texts[1]
    assert "95 % CI in process" in texts[1]
    assert texts[2].endswith("no interval")


def test_a_quantile_is_drawn_where_it_was_asked_for():
    result = measurement(draws(6, 80), statistic=Statistic("quantile", 0.95))
    figure = violin(result)

    dots = lines(figure, "launches")[0].get_xdata()
    assert dots == pytest.approx([1e3 * np.quantile(row, 0.95) for row in result.systems[0].metric().rows])
    assert "p95 over launches" in legend_of(figure)


def test_only_what_is_drawn_stands_in_the_legend():
    legend = legend_of(violin(measurement(draws(1, 30))))

    assert "of one process, with its 95 % interval; other processes may differ" in legend
    assert "launch" not in legend.replace("every launch counts the same", "")
