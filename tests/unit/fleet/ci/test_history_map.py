from __future__ import annotations

import numpy as np

from deep500.fleet.ci.generating import generate_history
from deep500.fleet.ci.history import history_of
from deep500.fleet.ci.history_map import history_map


def test_each_cell_has_the_colour_of_what_came_of_it() -> None:
    table, _ = generate_history(commits=60, flaky_rate=0.05, missing_rate=0.1, break_rate=0.1, seed=3)
    history = history_of(table)
    figure = history_map(history)

    (axes,) = figure.axes
    cells = np.asarray(axes.images[0].get_array()).T
    assert cells.shape == history.results.shape
    assert np.array_equal(cells == 0, ~history.judged)
    assert np.array_equal(cells == 3, history.failures)
    assert np.array_equal(cells == 2, history.flaky & ~history.failures)
    assert set(np.unique(cells)) == {0, 1, 2, 3}
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["no result", "passed", "flaky", "failed"]
    assert [tick.get_text() for tick in axes.get_yticklabels()] == list(history.jobs)


def test_many_jobs_have_no_names_and_a_dollar_is_no_formula() -> None:
    table, _ = generate_history(commits=10, groups=30, jobs_per_group=3, seed=1)
    (axes,) = history_map(history_of(table)).axes
    assert axes.get_ylabel() == "job"
