"""How many bytes a rank sends and receives in a step of each scheme: formulas that are written apart from the library.

In them p is the number of ranks, n that of elements and b the bytes of one. A ring's messages are followed one by one:
part i of p has the elements from floor(i n / p) to floor((i + 1) n / p).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple


class Moved(NamedTuple):
    """Bytes, or elements, that a rank sends and receives."""

    sent: int
    received: int

    def __add__(self, other: tuple[int, ...]) -> Moved:  # type: ignore[override] # of numbers, not of entries
        return Moved(self.sent + other[0], self.received + other[1])

    def __mul__(self, factor: int) -> Moved:  # type: ignore[override] # of numbers, not of entries
        return Moved(self.sent * factor, self.received * factor)


NOTHING = Moved(0, 0)


def total(parts: Sequence[Moved]) -> Moved:
    return sum(parts, NOTHING)


def ring_allreduce(rank: int, p: int, n: int) -> Moved:
    """Rank r sends part r - t in round t of the first p - 1 rounds, and r + 1 - t in round t of the last p - 1."""
    sizes = [(part + 1) * n // p - part * n // p for part in range(p)]

    def sent(of: int) -> int:
        rounds = range(p - 1)
        return sum(sizes[(of - t) % p] for t in rounds) + sum(sizes[(of + 1 - t) % p] for t in rounds)

    return Moved(sent(rank), sent((rank - 1) % p)) if p > 1 else NOTHING


def recursive_doubling(rank: int, p: int, n: int) -> Moved:
    """Every rank exchanges all in each of log2 p rounds; ranks beyond a power of two hand all over, and get it back."""
    rounds = p.bit_length() - 1
    beyond = p - 2**rounds
    if rank < 2 * beyond:
        return Moved(n, n) * (1 if rank % 2 == 0 else rounds + 1)
    return Moved(n, n) * rounds


def children(rank: int, p: int, root: int = 0) -> int:
    """Return how many ranks hang below one in the binomial tree."""
    place = (rank - root) % p
    below = place & -place if place else 2 ** math.ceil(math.log2(p))
    return sum(1 for power in range(p.bit_length() + 1) if 2**power < below and place + 2**power < p)


def broadcast(rank: int, p: int, n: int, root: int = 0) -> Moved:
    return Moved(children(rank, p, root) * n, n * (rank != root))


def reduce(rank: int, p: int, n: int, root: int = 0) -> Moved:
    sent, received = broadcast(rank, p, n, root)
    return Moved(received, sent)


def allgather(p: int, n: int) -> Moved:
    """n is what one rank contributes."""
    return Moved(1, 1) * ((p - 1) * n)


def exchange(neighbours: int, n: int) -> Moved:
    """Everything goes to each neighbour, and as much comes from it."""
    return Moved(1, 1) * (neighbours * n)


def degree(topology: str, p: int) -> int:
    """Return how many neighbours a rank has, for up to four ranks."""
    return {"ring": min(2, p - 1), "torus": min(2, p - 1), "exponential": p - 1}[topology]


def top_k(rank: int, p: int, n: int, b: int, density: float) -> Moved:
    """Sparse: k = ceil(rho n) values and places of 4 bytes, gathered; dense where that is not less than a ring's."""
    k = math.ceil(density * n)
    return allgather(p, k * (b + 4)) if p * k * (b + 4) < 2 * n * b else ring_allreduce(rank, p, n) * b


def server(rank: int, p: int, n: int, b: int, steps: int) -> Moved:
    """Each message has a version of 8 bytes: gradients up, parameters down, a last one up, a broadcast."""
    message = n * b + 8
    if rank:
        return Moved((steps + 1) * message, steps * message) + broadcast(rank, p, message)
    return Moved((p - 1) * steps * message, (p - 1) * (steps + 1) * message) + broadcast(0, p, message)
