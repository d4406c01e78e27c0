from __future__ import annotations

import numpy as np
import pytest

from deep500.core.errors import FleetError
from deep500.fleet.ci.job_costs import job_costs
from tests.unit.fleet.ci.support import history_from

N = np.nan


def test_a_job_that_runs_seldom_costs_less_a_commit() -> None:
    costs = job_costs(history_from([[1, 1], [0, N], [1, N], [1, N]], costs=[[2.0, 8.0]]))
    np.testing.assert_allclose(costs.run, [2, 8])
    np.testing.assert_allclose(costs.commit, [2, 2])
    assert (costs.unit, costs.note) == ("hours", None)


def test_costs_are_means_of_the_runs() -> None:
    costs = job_costs(history_from([[1], [0], [1]], costs=[[1.0], [3.0], [N]]))
    assert costs.run == pytest.approx([2.0])
    assert costs.commit == pytest.approx([2.0])


def test_unknown_costs() -> None:
    some = job_costs(history_from([[1, 1, 1]] * 2, costs=[[1.0, 3.0, N]]))
    np.testing.assert_allclose(some.run, [1, 3, 2])
    assert some.note == "Jobs whose cost is unknown: 1; each counts as the mean of the others."
    for costs in ([[N, N]], [[0.0, 0.0]]):
        none = job_costs(history_from([[1, N], [1, 0]], costs=costs))
        np.testing.assert_allclose(none.run, [1, 1])
        np.testing.assert_allclose(none.commit, [1, 0.5])
        assert none.unit == "runs"
        assert none.note is not None


def test_costs_without_a_finite_sum_are_refused() -> None:
    with pytest.raises(FleetError, match="too large to be summed up"):
        job_costs(history_from([[1, 1], [0, 1]], costs=[[1e308, 1e308]]))
