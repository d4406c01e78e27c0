r"""How many bytes an operation moves: each algorithm's messages, counted exactly by peer, and closed formulas.

With :math:`p` ranks and a message of :math:`n` bytes, one rank sends (and receives as much, over all ranks)

=================  ====================  ==================================================================
operation          algorithm             bytes
=================  ====================  ==================================================================
allreduce          ring                  :math:`2 (p - 1) n / p` (exact where the ranks' parts are equal)
allreduce          recursive_doubling    :math:`n \log_2 p` for powers of two; :func:`traffic` for any p
broadcast          binomial_tree         all ranks together :math:`(p - 1) n`
reduce             binomial_tree         all ranks together :math:`(p - 1) n`
allgather          ring                  :math:`(p - 1) n`, n the part of one rank
reduce_scatter     ring                  :math:`(p - 1) n / p`
barrier            dissemination         0: its messages are empty
=================  ====================  ==================================================================

The ring cuts a message into p parts; part i holds elements :math:`\lfloor i m / p \rfloor` to
:math:`\lfloor (i + 1) m / p \rfloor` of m. MPI does not say which algorithm it takes; the ledger states the volume of
the algorithm that the communicator names in ``algorithms``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType

from deep500.core.errors import CommunicationError, near_miss

__all__ = ["DEFAULT_ALGORITHMS", "Traffic", "known_algorithms", "part_sizes", "total_bytes", "traffic"]

#: The algorithm that each collective operation is counted with unless a communicator names another.
DEFAULT_ALGORITHMS: Mapping[str, str] = MappingProxyType(
    {
        "allreduce": "ring",
        "broadcast": "binomial_tree",
        "reduce": "binomial_tree",
        "allgather": "ring",
        "reduce_scatter": "ring",
        "barrier": "dissemination",
    }
)


@dataclass(frozen=True)
class Traffic:
    """Bytes of one call on one rank.

    Attributes:
        sent: To each peer.
        received: From each peer.
    """

    sent: Mapping[int, int]
    received: Mapping[int, int]


def part_sizes(elements: int, size: int) -> list[int]:
    """Return how many elements each of ``size`` parts of a message holds: equal, but for one.

    Example:
        >>> part_sizes(10, 4)
        [2, 3, 2, 3]
    """
    return [(part + 1) * elements // size - part * elements // size for part in range(size)]


def known_algorithms(operation: str) -> list[str]:
    """Return the algorithms whose volume is known for an operation."""
    return sorted(algorithm for name, algorithm in _TRAFFIC if name == operation)


@lru_cache(maxsize=4096)
def traffic(
    operation: str, algorithm: str, rank: int, size: int, elements: int, item_bytes: int, root: int = 0
) -> Traffic:
    """Return the bytes that one rank sends and receives in one call, by peer.

    Args:
        operation: ``"allreduce"``, ``"broadcast"``, ``"reduce"``, ``"allgather"``, ``"reduce_scatter"`` or
            ``"barrier"``.
        algorithm: One of :func:`known_algorithms`.
        rank: The rank that is asked about.
        size: Number of ranks.
        elements: Elements of the message: of one rank's part for ``allgather``, else of the whole buffer.
        item_bytes: Bytes of one element.
        root: The root of ``broadcast`` and ``reduce``.

    Raises:
        CommunicationError: The volume of this algorithm is not known.

    Example:
        >>> traffic("allreduce", "ring", 0, 4, 1000, 4).sent
        mappingproxy({1: 6000})
    """
    count = _TRAFFIC.get((operation, algorithm))
    if count is None:
        known = known_algorithms(operation)
        raise CommunicationError(
            f"The volume of {operation} by the algorithm {algorithm!r} is not known.{near_miss(algorithm, known)} "
            f"Accepted: {', '.join(known) or 'none for this operation'}."
        )
    sent, received = count(rank, size, elements, root)
    return Traffic(_in_bytes(sent, item_bytes), _in_bytes(received, item_bytes))


def total_bytes(operation: str, algorithm: str, size: int, elements: int, item_bytes: int) -> int:
    """Return the bytes that all ranks together send in one call, by the closed formula.

    Raises:
        CommunicationError: There is no formula for this algorithm.
    """
    whole = elements * item_bytes
    folded = size - _power_below(size)  # ranks that hand their data to a neighbour before and get the sum after
    formulas = {
        ("allreduce", "ring"): 2 * (size - 1) * whole,
        ("allreduce", "recursive_doubling"): (_power_below(size) * (_power_below(size).bit_length() - 1) + 2 * folded)
        * whole,
        ("broadcast", "binomial_tree"): (size - 1) * whole,
        ("reduce", "binomial_tree"): (size - 1) * whole,
        ("allgather", "ring"): size * (size - 1) * whole,
        ("reduce_scatter", "ring"): (size - 1) * whole,
        ("barrier", "dissemination"): 0,
    }
    if (operation, algorithm) not in formulas:
        traffic(operation, algorithm, 0, size, elements, item_bytes)  # says what is accepted
    return formulas[operation, algorithm]


_Counts = tuple[dict[int, int], dict[int, int]]


def _ring_allreduce(rank: int, size: int, elements: int, root: int) -> _Counts:
    """In the first round a rank passes on every part but its successor's, in the second all but the one after that."""
    if size == 1:
        return {}, {}
    parts = part_sizes(elements, size)
    after, before = (rank + 1) % size, (rank - 1) % size
    sent = 2 * elements - parts[after] - parts[(rank + 2) % size]
    received = 2 * elements - parts[rank] - parts[after]
    return {after: sent}, {before: received}


def _ring_reduce_scatter(rank: int, size: int, elements: int, root: int) -> _Counts:
    """Every part but the own one is passed on; the sum of the own part arrives last."""
    if size == 1:
        return {}, {}
    parts = part_sizes(elements, size)
    after, before = (rank + 1) % size, (rank - 1) % size
    return {after: elements - parts[rank]}, {before: elements - parts[before]}


def _ring_allgather(rank: int, size: int, elements: int, root: int) -> _Counts:
    if size == 1:
        return {}, {}
    passed = (size - 1) * elements
    return {(rank + 1) % size: passed}, {(rank - 1) % size: passed}


def _recursive_doubling(rank: int, size: int, elements: int, root: int) -> _Counts:
    """Exchange all with the rank that differs in one bit, bit by bit.

    Where p is no power of two, the even ones of the first 2 (p - 2^k) ranks hand their data to their right neighbour
    before and get the sum from it after.
    """
    power = _power_below(size)
    folded = size - power
    if rank < 2 * folded and rank % 2 == 0:
        return {rank + 1: elements}, {rank + 1: elements}
    counts: dict[int, int] = {}
    own = rank // 2 if rank < 2 * folded else rank - folded
    if rank < 2 * folded:
        counts[rank - 1] = elements
    for bit in range(power.bit_length() - 1):
        partner = own ^ (1 << bit)
        peer = 2 * partner + 1 if partner < folded else partner + folded
        counts[peer] = counts.get(peer, 0) + elements
    return counts, dict(counts)


def _binomial_broadcast(rank: int, size: int, elements: int, root: int) -> _Counts:
    """Every rank gets the message from the rank without its lowest bit, counted from the root, and passes it on."""
    relative = (rank - root) % size
    lowest = relative & -relative if relative else 1 << max(size - 1, 1).bit_length()
    received = {(relative - lowest + root) % size: elements} if relative else {}
    children = [relative + (1 << bit) for bit in range(lowest.bit_length() - 1) if relative + (1 << bit) < size]
    return {(child + root) % size: elements for child in children}, received


def _binomial_reduce(rank: int, size: int, elements: int, root: int) -> _Counts:
    """The messages of the broadcast, the other way."""
    sent, received = _binomial_broadcast(rank, size, elements, root)
    return received, sent


def _dissemination_barrier(rank: int, size: int, elements: int, root: int) -> _Counts:
    return {}, {}


_TRAFFIC: dict[tuple[str, str], Callable[[int, int, int, int], _Counts]] = {
    ("allreduce", "ring"): _ring_allreduce,
    ("allreduce", "recursive_doubling"): _recursive_doubling,
    ("broadcast", "binomial_tree"): _binomial_broadcast,
    ("reduce", "binomial_tree"): _binomial_reduce,
    ("allgather", "ring"): _ring_allgather,
    ("reduce_scatter", "ring"): _ring_reduce_scatter,
    ("barrier", "dissemination"): _dissemination_barrier,
}


def _power_below(size: int) -> int:
    """Return the largest power of two that is not above ``size``."""
    return 1 << (size.bit_length() - 1)


def _in_bytes(counts: dict[int, int], item_bytes: int) -> Mapping[int, int]:
    return MappingProxyType({peer: count * item_bytes for peer, count in sorted(counts.items()) if count})
