from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from deep500.fleet.compat.cost import estimate_cost
from deep500.fleet.outcome import Outcome
from deep500.fleet.outcome_table import OutcomeTable
from tests.unit.fleet.compat.support import cell, matrix_of

PLAIN = "frameworks: {fleetalpha: ['1.0']}"


def older(framework: str, *seconds: float, status: str = "passed") -> list[Outcome]:
    return [
        Outcome(f"{framework}{n}", "c", status, started=0.0, ended=each, labels={"framework": framework})
        for n, each in enumerate(seconds)
    ]


def test_at_most_is_all_the_time_there_is(tmp_path: Path) -> None:
    cells = [cell(), cell(ranks=2), cell(ranks=4, compute_capability="9.0")]
    estimate = estimate_cost(cells, matrix_of(tmp_path, PLAIN))
    assert estimate["environments"] == 1
    assert estimate["at_most"]["job_hours"] == pytest.approx(3 * 65 / 3600)
    assert estimate["at_most"]["gpu_hours"] == pytest.approx(4 * 65 / 3600)
    assert estimate["expected"] is None
    assert "unknown" in estimate["basis"]


def test_hints_of_the_matrix(tmp_path: Path) -> None:
    matrix = matrix_of(tmp_path, f"{PLAIN}\ncost: {{environment_s: 100, cell_s: 10}}")
    estimate = estimate_cost([cell(), cell(ranks=2)], matrix)
    assert estimate["expected"]["job_hours"] == pytest.approx((100 + 20) / 3600)
    assert estimate_cost([], matrix)["expected"] is None


def test_expected_by_older_cells_of_the_same_framework(tmp_path: Path) -> None:
    table = OutcomeTable.from_outcomes(
        [*older("fleetalpha", 10.0, 20.0), *older("other", 100.0), *older("fleetalpha", 9999.0, status="cancelled")]
    )
    matrix = matrix_of(tmp_path, PLAIN)
    cells = [cell(), cell(ranks=2), cell(framework="unseen")]
    estimate = estimate_cost(cells, matrix, table)
    expected = estimate["expected"]
    assert expected["job_hours"] == pytest.approx((2 * 15 + 130 / 3) / 3600)
    low, high = expected["job_hours_interval"]
    assert low < expected["job_hours"] < high
    assert estimate == estimate_cost(cells, matrix, table)
    assert expected["gpu_hours"] == 0.0


def test_the_interval_covers_the_mean(tmp_path: Path) -> None:
    stream = np.random.default_rng(0)
    matrix, covered = matrix_of(tmp_path, PLAIN), 0
    for trial in range(60):
        table = OutcomeTable.from_outcomes(older("fleetalpha", *stream.exponential(100.0, 60)))
        low, high = estimate_cost([cell()], matrix, table, trial)["expected"]["job_hours_interval"]
        covered += low <= 100.0 / 3600 <= high
    assert covered >= 50  # 57 are expected of a 95 % interval; percentiles of a bootstrap fall a little short
