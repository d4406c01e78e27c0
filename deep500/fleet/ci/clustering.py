"""Hierarchical clusters of the rows of a matrix, as the study of 2019 makes them of a correlation matrix."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.cluster import hierarchy
from scipy.spatial.distance import pdist

from deep500.core.errors import FleetError, near_miss
from deep500.core.texts import shown

__all__ = ["LINKAGES", "Clustering", "check_cut", "check_linkage", "cluster_rows"]

#: How far two clusters are from each other: names of :func:`scipy.cluster.hierarchy.linkage`.
LINKAGES = ("complete", "average", "single", "weighted", "ward")


@dataclass(frozen=True)
class Clustering:
    """Clusters of n rows.

    Attributes:
        labels: The number of each row's cluster, from 1, as SciPy numbers them, [n].
        order: The rows by cluster; within one in the order that they were given in, [n].
        tree: SciPy's linkage matrix, [n - 1, 4].
        largest: The largest distance between two rows.
        height: Where the tree was cut.
    """

    labels: NDArray[np.intp]
    order: NDArray[np.intp]
    tree: NDArray[np.float64]
    largest: float
    height: float

    def groups(self) -> list[list[int]]:
        """Return the rows of each cluster, in the order of :attr:`order`."""
        found: dict[int, list[int]] = {}
        for row in self.order:
            found.setdefault(int(self.labels[row]), []).append(int(row))
        return list(found.values())


def cluster_rows(matrix: NDArray[np.float64], linkage: str = "complete", cut: float = 0.1) -> Clustering:
    """Cluster rows by Euclidean distance; clusters end where the tree is cut at ``cut`` x the largest distance.

    Source: "PyTorch CI deduplication" (2019), appendix: ``pdist(corr)``, ``linkage(..., 'complete')``,
    ``fcluster(..., 0.1 * pdist.max(), 'distance')``, ``argsort(idx)`` (here a stable sort, so that the order within
    a cluster is the same on every machine).

    Args:
        matrix: The rows, [n, m], without NaN.
        linkage: One of :data:`LINKAGES`.
        cut: From 0 to 1.

    Raises:
        FleetError: The linkage or the cut is none.
    """
    check_linkage(linkage)
    check_cut(cut)
    count = len(matrix)
    if count < 2:
        return Clustering(np.ones(count, np.intp), np.arange(count), np.zeros((0, 4)), 0.0, 0.0)
    distances = pdist(matrix)
    tree = hierarchy.linkage(distances, method=linkage)
    largest = float(distances.max())
    return cut_tree(tree, cut * largest, largest)


def cut_tree(tree: NDArray[np.float64], height: float, largest: float) -> Clustering:
    """Return the clusters of a tree that is cut at a height."""
    labels = hierarchy.fcluster(tree, height, "distance").astype(np.intp)
    return Clustering(labels, np.argsort(labels, kind="stable"), tree, largest, height)


def check_linkage(linkage: str) -> str:
    """Return the linkage.

    Raises:
        FleetError: It is none.
    """
    if linkage not in LINKAGES:
        raise FleetError(f"linkage is {shown(linkage)}.{near_miss(linkage, LINKAGES)} Accepted: {', '.join(LINKAGES)}.")
    return linkage


def check_cut(cut: float) -> float:
    """Return the cut.

    Raises:
        FleetError: It is not from 0 to 1.
    """
    if not 0 <= cut <= 1:
        raise FleetError(f"cut is {shown(cut)}; accepted are shares of the largest distance, from 0 to 1.")
    return cut
