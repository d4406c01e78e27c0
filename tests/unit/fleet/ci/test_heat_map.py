from __future__ import annotations

import numpy as np
from matplotlib.patches import Rectangle

from deep500.fleet.ci.correlating import correlate
from deep500.fleet.ci.generating import generate_history
from deep500.fleet.ci.heat_map import heat_map
from deep500.fleet.ci.history import history_of
from deep500.measure.rendering import rendered


def test_rows_have_the_names_and_clusters_a_frame() -> None:
    found = correlate(history_of(generate_history(commits=200, groups=3, jobs_per_group=3, singletons=1, seed=1)[0]))
    axes = heat_map(found).axes[0]
    frames = [patch for patch in axes.patches if isinstance(patch, Rectangle)]

    assert [text.get_text() for text in axes.get_yticklabels()] == [
        f"{n}. {job}" for n, job in enumerate(found.history.jobs)
    ]
    np.testing.assert_array_equal(axes.images[0].get_array(), found.matrix)
    assert [frame.get_width() for frame in frames] == [3, 3, 3]
    assert len(axes.texts) == 100
    starts = [frame.get_x() + 0.5 for frame in frames]
    assert all(len(set(found.labels[int(start) : int(start) + 3].tolist())) == 1 for start in starts)
    assert rendered(lambda: heat_map(found), ".svg") == rendered(lambda: heat_map(found), ".svg")


def test_many_jobs_have_no_names_and_undefined_pairs_are_grey() -> None:
    table, _ = generate_history(commits=60, groups=30, jobs_per_group=3, missing_rate=0.3, seed=1)
    found = correlate(history_of(table), least_support=28)
    assert found.undefined > 0
    axes = heat_map(found).axes[0]
    assert not any(text.get_text().startswith("0. ") for text in axes.get_yticklabels())
    assert not axes.texts
    assert rendered(lambda: heat_map(found), ".png").startswith(b"\x89PNG")


def test_a_name_with_dollars_is_no_formula() -> None:
    table, _ = generate_history(commits=200, groups=2, jobs_per_group=2, seed=1)
    table.frame = table.frame.with_columns(table.frame["key"] + "$_$")
    assert rendered(lambda: heat_map(correlate(history_of(table))), ".svg")
