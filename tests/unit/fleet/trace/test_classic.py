"""The view of seed 004 against SciPy and sums by hand."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import pearsonr

from deep500.fleet import Outcome, OutcomeTable
from deep500.fleet.trace.classic import classic_view
from deep500.fleet.trace.generating import generate_outcomes
from deep500.measure.statistics import holm

CUTS = {("passed", "plan_cpu"): 20_000, ("passed", "plan_mem"): 100_000, ("failed", "plan_cpu"): 50_000,
        ("failed", "plan_mem"): 20_000}  # fmt: skip


def test_it_is_pearsons_r_of_group_means() -> None:
    table = generate_outcomes(1500, 2)
    rows = list(table.outcomes())
    view = classic_view(table)
    assert len(view.correlations) == 12
    for found in view.correlations:
        column = "inst_num" if found.factor == "size" else found.factor
        times: dict[float, list[float]] = {}
        for row in rows:
            took, value = row.duration_s, row.labels.get(column)
            if took is None or value is None or (row.status == "passed") != (found.outcome == "passed"):
                continue
            if found.cut_s is None or took < found.cut_s:
                times.setdefault(float(value), []).append(took)
        values = sorted(times)
        means = [float(np.mean(times[value])) for value in values]
        expected = pearsonr(values, means)
        assert found.r == pytest.approx(expected.statistic, rel=1e-9)
        assert found.p_value == pytest.approx(expected.pvalue, rel=1e-7)
        assert [group.tasks for group in found.groups] == [len(times[value]) for value in values]
    cuts = {(c.outcome, c.factor): c.cut_s for c in view.correlations if c.cut_s is not None}
    assert cuts == CUTS
    p_values = [found.p_value or 0.0 for found in view.correlations]
    np.testing.assert_allclose([found.adjusted_p for found in view.correlations], holm(p_values).adjusted)


def test_run_time_is_that_of_the_instances_and_the_rest_counts_as_failed() -> None:
    def task(key: str, status: str, runtime: float | None, gpu: str, **labels: float) -> Outcome:
        cause = "running" if status == "missing" else None
        ended = None if runtime is None else runtime
        return Outcome(key, "u", status, cause, started=0.0, ended=ended, labels={"gpu_type": gpu, **labels})

    table = OutcomeTable.from_outcomes(
        [
            task("a", "passed", 10.0, "T4"),
            task("b", "passed", 10.0, "T4", instances_started=2.0, instances_ended=22.0),
            task("c", "failed", 7.0, "T4"),
            task("d", "cancelled", 9.0, "T4"),
            task("e", "missing", None, "T4", instances_started=0.0, instances_ended=5.0),
            task("f", "missing", None, "T4"),
            task("g", "passed", 4.0, ""),
        ]
    )
    view = classic_view(table)
    by_outcome = {part.outcome: part.groups for part in view.tables}

    assert [(g.value, g.mean_s, g.tasks) for g in by_outcome["passed"]] == [("T4", 15.0, 2)]
    assert [(g.value, g.mean_s, g.tasks) for g in by_outcome["failed"]] == [("T4", 7.0, 3)]
    assert view.tasks == {"passed": 3, "failed": 3}
    assert view.without_time == {"passed": 0, "failed": 1}
    assert view.counted_as_failed == {"failed": 1, "cancelled": 1, "missing": 1}
    assert view.absent == ("plan_gpu", "plan_cpu", "plan_mem", "size")
    assert len(view.flaws) == 5


def test_too_few_groups_have_no_correlation() -> None:
    def task(number: int) -> Outcome:
        return Outcome(f"t{number}", "u", "passed", started=0.0, ended=number, labels={"plan_cpu": float(number // 2)})

    one, two = (classic_view(OutcomeTable.from_outcomes(map(task, range(1, count)))) for count in (2, 4))
    assert [found.r for found in one.correlations if found.outcome == "passed"] == [None, None]
    assert [(found.r, found.p_value) for found in two.correlations if found.outcome == "passed"] == [(1.0, None)] * 2
