"""How many bytes all ranks together send in an exchange, in closed form, by the name of the algorithm."""

from __future__ import annotations

from collections.abc import Sequence

from deep500.core.errors import UnknownNameError
from deep500.distributed import volume
from deep500.distributed.simulation._parts import levels_above, levels_below
from deep500.distributed.simulation.schedule import check_exchange

__all__ = ["sparse_allgather_bytes", "total_sent_bytes"]

#: The algorithms whose formula the ledger has: their operation, and the algorithm's name there.
_OF_THE_LEDGER = {
    "binomial_tree_broadcast": ("broadcast", "binomial_tree"),
    "binomial_tree_reduce": ("reduce", "binomial_tree"),
    "recursive_doubling_allreduce": ("allreduce", "recursive_doubling"),
    "ring_allreduce": ("allreduce", "ring"),
    "ring_reduce_scatter": ("reduce_scatter", "ring"),
}


def total_sent_bytes(
    algorithm: str, size: int, count: int, item_bytes: int = 4, offsets: Sequence[int] = (1, -1)
) -> int:
    r"""Return the bytes that all ranks together send, and receive.

    With :math:`p` ranks, :math:`N = nb` bytes of the whole vector and :math:`k = \lfloor \log_2 p \rfloor`:

    - tree allreduce, central parameter server: :math:`2 (p - 1) N`
    - Rabenseifner: :math:`2 (2^k - 1) N + 2 (p - 2^k) N`, which is :math:`2 (p - 1) N` again; with fewer
      than :math:`2^k` elements it is recursive doubling
    - allgather and reduce-scatter: :math:`(p - 1) N`
    - exchange with :math:`d` neighbours: :math:`p d N`
    - barrier: :math:`p \lceil \log_2 p \rceil N`, of one byte each
    - the others: :func:`deep500.distributed.volume.total_bytes`

    Args:
        algorithm: Its name.
        size: Number of ranks.
        count: Elements of the whole vector, as the algorithm takes them.
        item_bytes: Bytes of an element.
        offsets: Where the neighbours are, for the neighbour exchange.

    Raises:
        UnknownNameError: There is no formula for the algorithm.
    """
    check_exchange(size, count, item_bytes)
    if algorithm in _OF_THE_LEDGER:
        return volume.total_bytes(*_OF_THE_LEDGER[algorithm], size, count, item_bytes)
    whole, core = count * item_bytes, 1 << levels_below(size)
    if algorithm == "rabenseifner_allreduce" and count < core:
        return total_sent_bytes("recursive_doubling_allreduce", size, count, item_bytes)
    formulas = {
        "central_parameter_server": 2 * (size - 1) * whole,
        "dissemination_barrier": size * levels_above(size) * whole,
        "neighbour_exchange": size * len({offset % size for offset in offsets} - {0}) * whole,
        "pairwise_allgather": (size - 1) * whole,
        "pairwise_reduce_scatter": (size - 1) * whole,
        "rabenseifner_allreduce": 2 * (core - 1) * whole + 2 * (size - core) * whole,
        "ring_allgather": (size - 1) * whole,
        "tree_allreduce": 2 * (size - 1) * whole,
    }
    if algorithm not in formulas:
        known = ", ".join(sorted([*formulas, *_OF_THE_LEDGER]))
        raise UnknownNameError(f"There is no formula for the volume of {algorithm!r}. Known: {known}.")
    return formulas[algorithm]


def sparse_allgather_bytes(size: int, kept: int, item_bytes: int = 4, index_bytes: int = 4) -> int:
    """Return what all ranks send when each gathers the values and places of the elements that the others kept.

    ``p (p - 1) k (b + i)``; beyond ``2 n b / (p (b + i))`` kept elements the dense allreduce sends less.

    Source: C. Renggli et al., "SparCML: high-performance sparse communication for machine learning", SC19.
    """
    return size * (size - 1) * kept * (item_bytes + index_bytes)
