r"""Closed forms of what exchanges take, each named as its algorithm and exact for it, with its source.

The time is that of the last rank, all starting at 0. In them :math:`p` is the number of ranks, :math:`n` that of
elements, :math:`b` the bytes of one, :math:`H(k)` the time of one message of :math:`k` bytes, ``2 o + L + streaming``,
:math:`s(k)` the spacing of two sends, :math:`\gamma` the time to reduce a byte. With :math:`\alpha = L + 2 o` and
:math:`\beta = G` they are the forms of Thakur et al. 2005 but for two things: messages have whole elements, and
a message takes :math:`(k - 1) G`.

They hold where no rank is held up by the gap of its own last message, ``g <= L + 2 o``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from deep500.core.errors import CommunicationError, UnknownNameError
from deep500.distributed.simulation._parts import equal_block, levels_above, levels_below
from deep500.distributed.simulation.cost_model import CostModel
from deep500.distributed.simulation.schedule import check_exchange

__all__ = [
    "binomial_tree_broadcast",
    "binomial_tree_reduce",
    "central_parameter_server",
    "closed_form",
    "dissemination_barrier",
    "neighbour_exchange",
    "pairwise_allgather",
    "pairwise_reduce_scatter",
    "rabenseifner_allreduce",
    "recursive_doubling_allreduce",
    "ring_allgather",
    "ring_allreduce",
    "ring_reduce_scatter",
    "tree_allreduce",
]


def closed_form(algorithm: str) -> Callable[..., float]:
    """Return the closed form of an algorithm.

    Raises:
        UnknownNameError: There is none.
    """
    known = [name for name in __all__ if name != "closed_form"]
    if algorithm not in known:
        raise UnknownNameError(f"There is no closed form of {algorithm!r}. Known: {', '.join(known)}.")
    form: Callable[..., float] = globals()[algorithm]
    return form


def ring_allreduce(model: CostModel, size: int, count: int, item_bytes: int = 4) -> float:
    r"""Return :math:`2 (p - 1) H(\lceil n / p \rceil b) + (p - 1) \lceil n / p \rceil b \gamma`.

    Source: P. Patarasuk, X. Yuan 2009; R. Thakur, R. Rabenseifner, W. Gropp 2005, section 4.1 (ring), in LogGP.
    """
    if _is_empty(model, size, count, item_bytes):
        return 0.0
    chunk = math.ceil(count / size) * item_bytes
    return (size - 1) * (2 * model.message_s(chunk) + chunk * model.reduction_s_per_byte)


def recursive_doubling_allreduce(model: CostModel, size: int, count: int, item_bytes: int = 4) -> float:
    r"""Return :math:`\lfloor \log_2 p \rfloor R` with :math:`R = H(nb) + nb \gamma`, for powers of two.

    Else folding takes one more R, and the last of the folded ranks' partners may send its result back later: the
    partners wait for each other on the first :math:`m = \lceil \log_2 (p - 2^k) \rceil` levels, and on the others for
    ranks that are ahead, which is a recursion over levels.

    Source: R. Thakur, R. Rabenseifner, W. Gropp 2005, section 4.5, in LogGP.
    """
    if _is_empty(model, size, count, item_bytes):
        return 0.0
    size_bytes, levels = count * item_bytes, levels_below(size)
    step = _reduced_message(model, size_bytes)
    folded = size - (1 << levels)
    if not folded:
        return levels * step
    return max((levels + 1) * step, _last_partner(model, size_bytes, levels, levels_above(folded)))


def _last_partner(model: CostModel, size_bytes: int, levels: int, shared: int) -> float:
    """Return when the last rank that was folded has its result; its partner shared ``shared`` levels with others."""
    streaming, overhead = float(model.streaming_s(size_bytes)), model.overhead_s
    step, flight = _reduced_message(model, size_bytes), overhead + model.latency_s
    busy = model.gap_s + streaming
    now = (shared + 1) * step
    in_free = shared * step + flight + busy
    out_free = shared * step + busy if shared else 0.0
    for level in range(shared, levels):
        begin = max(now, out_free)
        out_free = begin + busy
        arrival = max(level * step + flight, in_free)
        in_free = arrival + busy
        now = max(begin + overhead, arrival + streaming) + overhead + size_bytes * model.reduction_s_per_byte
    return max(now, out_free) + model.message_s(size_bytes)


def rabenseifner_allreduce(model: CostModel, size: int, count: int, item_bytes: int = 4) -> float:
    r"""Return :math:`\sum_{j=1}^{k} 2 H(c_j b) + c_j b \gamma` with :math:`k = \lfloor\log_2 p\rfloor`.

    Here :math:`c_j = \lceil n/2^j \rceil` are the elements of the longest part that is exchanged in a step.

    Where p is no power of two there comes :math:`2 H(nb) + nb \gamma` to it. With fewer elements than the power of two
    it is :func:`recursive_doubling_allreduce`, as the schedule is.

    Source: R. Rabenseifner 2004; R. Thakur, R. Rabenseifner, W. Gropp 2005, section 4.5, in LogGP.
    """
    if _is_empty(model, size, count, item_bytes):
        return 0.0
    if count < 1 << levels_below(size):
        return recursive_doubling_allreduce(model, size, count, item_bytes)
    halves = [math.ceil(count / 2**level) * item_bytes for level in range(1, levels_below(size) + 1)]
    steps: float = sum(2 * model.message_s(half) + half * model.reduction_s_per_byte for half in halves)
    return steps + _folding(model, size, count * item_bytes)


def binomial_tree_broadcast(model: CostModel, size: int, count: int, item_bytes: int = 4) -> float:
    r"""Return :math:`T(p) = \max(H + T(p - 2^{k-1}), s + (k - 1) H)` with :math:`k = \lceil \log_2 p \rceil`.

    For powers of two it is :math:`k H(nb)`.

    Source: R. Thakur, R. Rabenseifner, W. Gropp 2005, section 4.2, in LogGP.
    """
    if _is_empty(model, size, count, item_bytes):
        return 0.0
    message, spacing = model.message_s(count * item_bytes), model.spacing_s(count * item_bytes)

    def time_of(ranks: int) -> float:
        levels = levels_above(ranks)
        if ranks == 1 << levels:
            return levels * message
        return max(message + time_of(ranks - (1 << (levels - 1))), spacing + (levels - 1) * message)

    return time_of(size)


def binomial_tree_reduce(model: CostModel, size: int, count: int, item_bytes: int = 4) -> float:
    r"""Return :math:`k (H(nb) + nb \gamma)` for :math:`p = 2^k`, and a recursion over p's bits else.

    The subtree of the last :math:`q = p - 2^{k-1}` ranks sends when it is ready, and the root takes that message after
    those before it: :math:`T(p) = \max((k-1) R, \max(T(q) + o + L, f) + \mathrm{streaming}) + e` with
    :math:`R = H + nb\gamma`, :math:`e = o + nb\gamma`, and :math:`f` when the root's link is free again.

    Source: R. Thakur, R. Rabenseifner, W. Gropp 2005, section 4.4, in LogGP.
    """
    if _is_empty(model, size, count, item_bytes):
        return 0.0
    size_bytes = count * item_bytes
    step, streaming = _reduced_message(model, size_bytes), float(model.streaming_s(size_bytes))
    handling = model.overhead_s + size_bytes * model.reduction_s_per_byte
    flight = model.overhead_s + model.latency_s

    def time_of(ranks: int) -> float:
        levels = levels_above(ranks)
        if ranks == 1 << levels:
            return levels * step
        link_free = (levels - 2) * step + flight + model.gap_s + streaming
        arrived = max(time_of(ranks - (1 << (levels - 1))) + flight, link_free) + streaming
        return max((levels - 1) * step, arrived) + handling

    return time_of(size)


def tree_allreduce(model: CostModel, size: int, count: int, item_bytes: int = 4) -> float:
    """Return the sum of :func:`binomial_tree_reduce` and :func:`binomial_tree_broadcast`, which the root starts."""
    return binomial_tree_reduce(model, size, count, item_bytes) + binomial_tree_broadcast(
        model, size, count, item_bytes
    )


def pairwise_allgather(model: CostModel, size: int, count: int, item_bytes: int = 4) -> float:
    r"""Return :math:`(p - 1) H(nb / p)`; ``count`` is that of the gathered vector.

    Source: R. Thakur, R. Rabenseifner, W. Gropp 2005, section 4.1, in LogGP.
    """
    block = equal_block(size, count) * item_bytes
    if _is_empty(model, size, count, item_bytes):
        return 0.0
    return (size - 1) * model.message_s(block)


def pairwise_reduce_scatter(model: CostModel, size: int, count: int, item_bytes: int = 4) -> float:
    r"""Return :math:`(p - 1) (H(nb / p) + \gamma n b / p)`; ``count`` is that of the whole vector.

    Source: R. Thakur, R. Rabenseifner, W. Gropp 2005, section 4.3, in LogGP.
    """
    block = equal_block(size, count) * item_bytes
    if _is_empty(model, size, count, item_bytes):
        return 0.0
    return (size - 1) * _reduced_message(model, block)


def ring_allgather(model: CostModel, size: int, count: int, item_bytes: int = 4) -> float:
    """Return the same as :func:`pairwise_allgather`: each step is one message of a block."""
    return pairwise_allgather(model, size, count, item_bytes)


def ring_reduce_scatter(model: CostModel, size: int, count: int, item_bytes: int = 4) -> float:
    """Return the same as :func:`pairwise_reduce_scatter`: each step is one message of a block."""
    return pairwise_reduce_scatter(model, size, count, item_bytes)


def central_parameter_server(model: CostModel, size: int, count: int, item_bytes: int = 4) -> float:
    r"""Return :math:`2 H + nb\gamma + (p - 2) (\max(g + \mathrm{streaming}, o + nb\gamma) + s)`, at :math:`nb` bytes.

    The root's incoming link, or its processor, takes one vector after the other, then its outgoing link does.

    Source: A. Alexandrov et al. 1995 (LogGP, a single-port root).
    """
    if _is_empty(model, size, count, item_bytes):
        return 0.0
    size_bytes = count * item_bytes
    handling = model.overhead_s + size_bytes * model.reduction_s_per_byte
    inward = max(model.gap_s + float(model.streaming_s(size_bytes)), handling)
    both_ways = _reduced_message(model, size_bytes) + model.message_s(size_bytes)
    return both_ways + (size - 2) * (inward + model.spacing_s(size_bytes))


def neighbour_exchange(
    model: CostModel, size: int, count: int, item_bytes: int = 4, offsets: Sequence[int] = (1, -1)
) -> float:
    r"""Return :math:`\max(F + d\,o,\ (d - 1) s + F + o,\ (d - 1) s + o + d\,o)` with :math:`F = H(nb) - o`.

    The processor has all ``d`` messages to handle after the first came, or the last after it came, or all after the
    last was sent.

    Source: A. Alexandrov et al. 1995 (LogGP), for the ``d`` messages that each rank sends and receives.
    """
    degree = len({offset % size for offset in offsets} - {0})
    if _is_empty(model, size, count, item_bytes) or not degree:
        return 0.0
    overhead, last_send = model.overhead_s, (degree - 1) * model.spacing_s(count * item_bytes)
    message = model.message_s(count * item_bytes)
    return max(message + (degree - 1) * overhead, last_send + message, last_send + (degree + 1) * overhead)


def dissemination_barrier(model: CostModel, size: int, count: int = 1, item_bytes: int = 1) -> float:
    r"""Return :math:`\lceil \log_2 p \rceil H(1)`.

    Source: D. Hensgen, R. Finkel, U. Manber 1988, in LogGP.
    """
    if _is_empty(model, size, count, item_bytes):
        return 0.0
    return levels_above(size) * model.message_s(count * item_bytes)


def _reduced_message(model: CostModel, size_bytes: int) -> float:
    return model.message_s(size_bytes) + size_bytes * model.reduction_s_per_byte


def _folding(model: CostModel, size: int, size_bytes: int) -> float:
    """Return what the way to a power of two and back takes: 0 where p is one."""
    if size == 1 << levels_below(size):
        return 0.0
    return _reduced_message(model, size_bytes) + model.message_s(size_bytes)


def _is_empty(model: CostModel, size: int, count: int, item_bytes: int) -> bool:
    """Check the numbers, and say whether nothing is sent at all."""
    check_exchange(size, count, item_bytes)
    if model.gap_s > model.latency_s + 2 * model.overhead_s:
        raise CommunicationError(
            f"A closed form was asked for a gap of {model.gap_s} s and a latency with overheads of "
            f"{model.latency_s + 2 * model.overhead_s} s. Accepted is a gap that is not longer; simulate others with "
            "Clocks."
        )
    return size == 1 or count == 0
