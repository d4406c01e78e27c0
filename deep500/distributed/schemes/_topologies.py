"""Who is whose neighbour, and how much neighbours weigh."""

from __future__ import annotations

import math
from collections.abc import Callable

from deep500.core.errors import TrainingError, near_miss
from deep500.core.texts import shown

__all__ = ["TOPOLOGIES", "checked_topology", "metropolis_weights", "neighbours"]


def neighbours(topology: str, rank: int, size: int) -> set[int]:
    """Return the other ranks that a rank exchanges with; the relation is symmetric.

    Args:
        topology: ``"ring"``: the rank before and the one after. ``"torus"``: those above, below, left and right in the
            squarest grid of all ranks; a ring where their number is prime. ``"exponential"``: those at the distances
            1, 2, 4, ... on the ring, both ways.
        rank: The rank.
        size: Number of ranks.
    """
    return TOPOLOGIES[topology](rank, size) - {rank}


def metropolis_weights(topology: str, rank: int, size: int) -> dict[int, float]:
    r"""Return the row of a rank in the doubly stochastic, symmetric mixing matrix of a topology.

    .. math::
        W_{ij} = \frac{1}{1 + \max(d_i, d_j)} \quad (j \text{ a neighbour of } i), \qquad W_{ii} = 1 - \sum_j W_{ij}

    with the numbers :math:`d` of neighbours.

    Source: L. Xiao, S. Boyd, S.-J. Kim, "Distributed average consensus with least-mean-square deviation", Journal of
    Parallel and Distributed Computing 67, 2007.
    """
    own = neighbours(topology, rank, size)
    weights = {j: 1.0 / (1 + max(len(own), len(neighbours(topology, j, size)))) for j in sorted(own)}
    return {rank: 1.0 - math.fsum(weights.values()), **weights}


def checked_topology(topology: str) -> str:
    """Return the name of a topology.

    Raises:
        TrainingError: There is none of this name.
    """
    if not isinstance(topology, str) or topology not in TOPOLOGIES:
        raise TrainingError(
            f"topology was given as {shown(topology)}.{near_miss(topology, TOPOLOGIES)} Accepted are: "
            f"{', '.join(TOPOLOGIES)}."
        )
    return topology


def _ring(rank: int, size: int) -> set[int]:
    return {(rank - 1) % size, (rank + 1) % size}


def _torus(rank: int, size: int) -> set[int]:
    columns = next(size // rows for rows in range(math.isqrt(size), 0, -1) if size % rows == 0)
    row, column = divmod(rank, columns)
    rows = size // columns
    vertical = {(row + step) % rows * columns + column for step in (-1, 1)}
    return vertical | {row * columns + (column + step) % columns for step in (-1, 1)}


def _exponential(rank: int, size: int) -> set[int]:
    distances = [2**power for power in range((size - 1).bit_length())]
    return {(rank + sign * distance) % size for distance in distances for sign in (-1, 1)}


#: Ranks at hand by the name of the topology: ``function(rank, size)``.
TOPOLOGIES: dict[str, Callable[[int, int], set[int]]] = {"exponential": _exponential, "ring": _ring, "torus": _torus}
