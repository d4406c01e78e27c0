from __future__ import annotations

from dataclasses import replace

import numpy as np

from deep500.fleet.ci.generating import generate_history
from deep500.fleet.ci.history import history_of
from deep500.fleet.ci.recall_picture import recall_picture
from deep500.fleet.ci.reducing import reduce_jobs
from deep500.fleet.ci.reduction import METHODS, ReductionPlan
from deep500.measure.rendering import rendered
from tests.unit.fleet.ci.support import history_from

QUICK = ReductionPlan(draws=100, resamples=200, budget=0.4)


def test_every_method_is_a_point_with_its_verdict() -> None:
    found = reduce_jobs(history_of(generate_history(commits=200, seed=1)[0]), QUICK)
    axes = recall_picture(found).axes[0]
    legend = axes.get_legend()
    assert legend is not None
    labels = [text.get_text() for text in legend.get_texts()]

    for name, result in found.results.items():
        assert f"{name}: {int(result.choice.chosen.sum())} jobs, {result.evaluation.verdict}" in labels
    methods = [label.partition(":")[0] for label in labels if ":" in label]
    assert methods == [name for name in METHODS if name in found.results]  # in the order of the plan
    assert sum("random choices" in label for label in labels) == 1
    assert rendered(lambda: recall_picture(found), ".png").startswith(b"\x89PNG")


def test_without_anything_held_out_it_says_so() -> None:
    results = np.ones((20, 3))
    results[:5, 0] = 0
    found = reduce_jobs(history_from(results), QUICK)
    axes = recall_picture(found).axes[0]
    assert any("no commit that is held out newly fails" in text.get_text() for text in axes.texts)
    rendered(lambda: recall_picture(found), ".svg")


def test_few_commits_have_no_intervals() -> None:
    results = np.ones((20, 2))
    results[[3, 16], 0] = 0
    found = reduce_jobs(history_from(results), replace(QUICK, budget=0.5))
    assert found.proposed.evaluation.recall_interval is None
    rendered(lambda: recall_picture(found), ".svg")
