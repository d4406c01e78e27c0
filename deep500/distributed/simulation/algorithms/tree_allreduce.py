"""Allreduce up and down a binomial tree."""

from __future__ import annotations

from itertools import chain

from deep500.distributed.simulation.algorithms.binomial_tree_broadcast import binomial_tree_broadcast
from deep500.distributed.simulation.algorithms.binomial_tree_reduce import binomial_tree_reduce
from deep500.distributed.simulation.schedule import Schedule

__all__ = ["tree_allreduce"]


def tree_allreduce(size: int, count: int, item_bytes: int = 4) -> Schedule:
    """Reduce to rank 0, then broadcast from it: ``2 ceil(log2 p)`` steps of ``n`` elements.

    Source: R. Thakur, R. Rabenseifner, W. Gropp 2005, section 4.5 (MPICH's first allreduce).
    """
    up, down = binomial_tree_reduce(size, count, item_bytes), binomial_tree_broadcast(size, count, item_bytes)
    return Schedule("tree_allreduce", size, count, item_bytes, lambda: chain(up.phases(), down.phases()))
