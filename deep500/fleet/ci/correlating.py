"""Which jobs pass and fail together: Pearson's correlation of all pairs, and clusters of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deep500.core.counts import check_count
from deep500.core.errors import FleetError
from deep500.core.random import check_seed, random_stream
from deep500.fleet.ci.clustering import Clustering, check_cut, check_linkage, cluster_rows
from deep500.fleet.ci.history import History

__all__ = ["Correlation", "Pair", "correlate", "phi_matrix"]

#: Up to so many commits, counts are whole numbers that single precision holds.
_EXACT_IN_SINGLE = 1 << 24

#: Draws behind the interval of a pair, and its confidence.
_DRAWS, _CONFIDENCE = 4000, 0.95


@dataclass(frozen=True)
class Pair:
    """Two jobs and how they go together.

    Attributes:
        first: One job.
        second: The other.
        phi: Their correlation.
        low: Lower end of its 95 % interval.
        high: Upper end.
        support: At how many commits both have a result.
        both_failed: At how many of them both failed.
        one_failed: At how many just one did.
    """

    first: str
    second: str
    phi: float
    low: float
    high: float
    support: int
    both_failed: int
    one_failed: int


@dataclass(frozen=True)
class Correlation:
    """The correlation of the n jobs that have one, in clusters.

    Attributes:
        history: The history of these jobs, in the order of the clusters.
        matrix: Correlations in that order, [n, n]; NaN where they are undefined.
        support: At how many commits both jobs of a pair have a result, [n, n].
        left_out: Why each other job has no correlation.
        clustering: The clusters; rows are counted in the order of the names of the jobs.
        labels: The cluster of each job, from 1, in the order of :attr:`history`, [n].
        pairs: The pairs that go together most, from the strongest; of equal ones first what failed together more.
        options: What it was made with.
    """

    history: History
    matrix: NDArray[np.float64]
    support: NDArray[np.int64]
    left_out: dict[str, str]
    clustering: Clustering
    labels: NDArray[np.intp]
    pairs: tuple[Pair, ...]
    options: dict[str, Any]

    @property
    def undefined(self) -> int:
        """How many pairs have no correlation."""
        return int(np.isnan(self.matrix).sum()) // 2

    def groups(self) -> list[list[str]]:
        """Return the jobs of each cluster."""
        jobs = self.history.jobs
        return [[jobs[n] for n in np.flatnonzero(self.labels == label)] for label in dict.fromkeys(self.labels)]

    def rows(self) -> list[dict[str, Any]]:
        """Return what is known of each job, in the order of the clusters; numbers start at 0 as in the study."""
        history, rates = self.history, self.history.flaky_rates()
        judged, failed = history.judged.sum(0), (history.results == 0).sum(0)
        return [
            {
                "number": place,
                "job": job,
                "cluster": int(self.labels[place]),
                "results": int(judged[place]),
                "failed": int(failed[place]),
                "rerun": int(history.reruns[:, place].sum()),
                "flaky": int(history.flaky[:, place].sum()),
                "flaky_rate": float(rates[place]),
            }
            for place, job in enumerate(history.jobs)
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return all of it as what JSON can hold."""
        return {
            "parameters": self.options,
            "jobs": self.rows(),
            "clusters": self.groups(),
            "left_out": self.left_out,
            "undefined_pairs": self.undefined,
            "largest_distance": self.clustering.largest,
            "cut_height": self.clustering.height,
            "tree": self.clustering.tree.tolist(),
            "confidence": _CONFIDENCE,
            "pairs": [vars(pair) for pair in self.pairs],
            "matrix": self.matrix.tolist(),
            "support": self.support.tolist(),
        }


def correlate(
    history: History,
    *,
    linkage: str = "complete",
    cut: float = 0.1,
    least_support: int = 10,
    pairs: int = 10,
    seed: int = 0,
) -> Correlation:
    """Correlate the results of all pairs of jobs, and cluster jobs with rows of the matrix that are alike.

    A pair with fewer commits in common than ``least_support``, or in which a job has one and the same result at all
    of them, has no correlation. Where rows are compared, it counts as 0: nothing speaks for the two telling the same.

    Args:
        history: The results.
        linkage: How far two clusters are from each other; see :data:`deep500.fleet.ci.clustering.LINKAGES`.
        cut: Where the tree is cut, as a share of the largest distance of two rows.
        least_support: Commits that a pair needs in common; 2 takes all pairs, as the study of 2019 does.
        pairs: How many of the strongest pairs are looked at closely.
        seed: Seed of the draws behind their intervals.

    Raises:
        FleetError: An option is none, or fewer than two jobs have a correlation.
    """
    check_linkage(linkage)
    check_cut(cut)
    check_count("least_support", least_support, least=2, error=FleetError)
    check_count("pairs", pairs, least=0, error=FleetError)
    check_seed(seed)
    places, left_out = _with_variance(history, least_support)
    if len(places) < 2:
        raise FleetError(
            f"{len(places)} of {len(history.jobs)} jobs both passed and failed in at least {least_support} results; "
            "a correlation needs two. Read more commits, or ask for less support."
        )
    part = history.columns(places)
    matrix, support = phi_matrix(part.results, least_support)
    clustering = cluster_rows(np.nan_to_num(matrix, nan=0.0), linkage, cut)
    order = clustering.order
    ordered = part.columns(order.tolist())
    matrix = matrix[np.ix_(order, order)]
    return Correlation(
        history=ordered,
        matrix=matrix,
        support=support[np.ix_(order, order)],
        left_out=left_out,
        clustering=clustering,
        labels=clustering.labels[order],
        pairs=_strongest(ordered, matrix, pairs, seed),
        options={"linkage": linkage, "cut": cut, "least_support": least_support, "pairs": pairs, "seed": seed},
    )


def phi_matrix(
    results: NDArray[np.floating[Any]], least_support: int = 2
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    r"""Return Pearson's correlation of all pairs of columns over the rows that both have, and how many these are.

    With :math:`n` rows in common, :math:`s_{ab}` of them 1 in both and :math:`s_a`, :math:`s_b` in one,
    :math:`\phi = (n s_{ab} - s_a s_b) / \sqrt{(n s_a - s_a^2)(n s_b - s_b^2)}`. All sums are products of matrices.

    Args:
        results: 0, 1 and NaN, [C, J].
        least_support: Pairs with fewer rows in common have NaN.

    Returns:
        The correlations and the numbers of rows, [J, J] each.
    """
    dtype = np.float32 if len(results) < _EXACT_IN_SINGLE else np.float64
    known = ~np.isnan(results)
    mask, ones = known.astype(dtype), (known & (results == 1)).astype(dtype)
    count = (mask.T @ mask).astype(np.float64)
    one = (ones.T @ mask).astype(np.float64)
    both = (ones.T @ ones).astype(np.float64)
    variance = count * one - one**2
    scale = np.sqrt(variance) * np.sqrt(variance.T)
    defined = (scale > 0) & (count >= least_support)
    matrix = np.divide(count * both - one * one.T, scale, out=np.full_like(count, np.nan), where=defined)
    matrix = np.clip(matrix, -1.0, 1.0)
    diagonal = np.einsum("ii->i", matrix)
    diagonal[~np.isnan(diagonal)] = 1.0
    return matrix, count.astype(np.int64)


def _with_variance(history: History, least: int) -> tuple[list[int], dict[str, str]]:
    """Return the places of jobs that passed and failed, and why each other has no correlation."""
    judged, failed = history.judged.sum(0), (history.results == 0).sum(0)
    left_out: dict[str, str] = {}
    for place, job in enumerate(history.jobs):
        if judged[place] < least:
            left_out[job] = "no result" if judged[place] == 0 else f"fewer than {least} results"
        elif failed[place] == 0:
            left_out[job] = "never failed"
        elif failed[place] == judged[place]:
            left_out[job] = "never passed"
    return [place for place, job in enumerate(history.jobs) if job not in left_out], left_out


def _strongest(history: History, matrix: NDArray[np.float64], count: int, seed: int) -> tuple[Pair, ...]:
    if not count:
        return ()
    rows, columns = np.triu_indices(len(matrix), k=1)
    values = matrix[rows, columns]
    failed = (history.results == 0).astype(np.float32)
    both_failed = (failed.T @ failed)[rows, columns]
    order = np.lexsort((-both_failed, -np.nan_to_num(values, nan=-2.0)))[:count]
    return tuple(
        _pair(history, int(rows[n]), int(columns[n]), float(values[n]), seed) for n in order if not np.isnan(values[n])
    )


def _pair(history: History, first: int, second: int, phi: float, seed: int) -> Pair:
    a, b = history.results[:, first], history.results[:, second]
    table = np.array([int(((a == i) & (b == j)).sum()) for i in (0, 1) for j in (0, 1)])
    low, high = phi_interval(table, random_stream(seed, "pair", history.jobs[first], history.jobs[second]))
    return Pair(
        history.jobs[first], history.jobs[second], phi, min(low, phi), max(high, phi), int(table.sum()),
        int(table[0]), int(table[1] + table[2]),
    )  # fmt: skip


def phi_interval(table: NDArray[np.int64], generator: np.random.Generator) -> tuple[float, float]:
    """Return the 95 % interval of the correlation of a 2 x 2 table: equal tails of its posterior.

    The four probabilities have a Dirichlet posterior with Jeffreys' prior (1/2 each). A bootstrap over commits would
    draw from the counts alone, and give no width at all to two jobs that never differed. Commits count as independent.

    Args:
        table: Counts of (0, 0), (0, 1), (1, 0) and (1, 1).
        generator: Where the draws come from.
    """
    _, p01, p10, p11 = generator.dirichlet(table + 0.5, size=_DRAWS).T
    a, b = p10 + p11, p01 + p11
    phi = (p11 - a * b) / np.sqrt(a * (1 - a) * b * (1 - b))
    low, high = np.quantile(phi, [(1 - _CONFIDENCE) / 2, (1 + _CONFIDENCE) / 2])
    return float(low), float(high)
