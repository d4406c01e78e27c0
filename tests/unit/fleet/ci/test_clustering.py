from __future__ import annotations

import numpy as np
import pytest
from scipy.cluster import hierarchy
from scipy.spatial.distance import pdist

from deep500.core.errors import FleetError
from deep500.fleet.ci.clustering import LINKAGES, cluster_rows


@pytest.mark.parametrize("linkage", LINKAGES)
@pytest.mark.parametrize("cut", [0.0, 0.1, 0.5, 1.0])
def test_clusters_are_scipys(linkage: str, cut: float) -> None:
    matrix = np.random.default_rng(0).normal(size=(30, 5)).round(1)
    made = cluster_rows(matrix, linkage, cut)
    distances = pdist(matrix)

    expected = hierarchy.fcluster(hierarchy.linkage(distances, linkage), cut * distances.max(), "distance")
    np.testing.assert_array_equal(made.labels, expected)
    np.testing.assert_array_equal(made.order, np.argsort(expected, kind="stable"))
    assert sorted(row for group in made.groups() for row in group) == list(range(30))
    assert len(made.groups()) == len(set(expected.tolist()))
    assert made.largest == distances.max()


def test_few_rows() -> None:
    assert cluster_rows(np.zeros((0, 0))).groups() == []
    assert cluster_rows(np.ones((1, 1))).groups() == [[0]]
    same = cluster_rows(np.ones((3, 3)))
    assert same.groups() == [[0, 1, 2]]
    assert same.largest == 0


def test_mistakes() -> None:
    with pytest.raises(FleetError, match="Did you mean 'complete'"):
        cluster_rows(np.eye(2), "complet")
    with pytest.raises(FleetError, match="from 0 to 1"):
        cluster_rows(np.eye(2), cut=1.5)
