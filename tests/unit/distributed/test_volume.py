"""Volumes against the algorithms themselves: their messages, sent one by one, with data that must come out right."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pytest

from deep500.core.errors import CommunicationError
from deep500.distributed.volume import DEFAULT_ALGORITHMS, known_algorithms, part_sizes, total_bytes, traffic

SIZES = [1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 33]
ELEMENTS = [0, 1, 5, 64, 1003]


class Network:
    """Ranks' data, and how many elements went from whom to whom."""

    def __init__(self, size: int, elements: int) -> None:
        random = np.random.default_rng(size)
        self.data = [random.integers(0, 99, elements) for _ in range(size)]
        self.sum = sum(self.data)
        self.moved: Counter[tuple[int, int]] = Counter()
        self.size = size

    def send(self, source: int, destination: int, values: np.ndarray) -> np.ndarray:
        self.moved[source, destination] += values.size
        return values.copy()


def ring_parts(network: Network) -> list[slice]:
    ends = np.cumsum([0, *part_sizes(network.data[0].size, network.size)])
    return [slice(start, end) for start, end in itertools.pairwise(ends)]


def ring_reduce_scatter(network: Network, shift: int) -> None:
    """After it, rank r holds the sum of part r + shift."""
    parts, size = ring_parts(network), network.size
    for step in range(size - 1):
        sent = [(rank + shift - 1 - step) % size for rank in range(size)]
        arriving = [network.send(r, (r + 1) % size, network.data[r][parts[sent[r]]]) for r in range(size)]
        for rank in range(size):
            network.data[rank][parts[sent[(rank - 1) % size]]] += arriving[(rank - 1) % size]


def ring_allreduce(network: Network) -> None:
    ring_reduce_scatter(network, shift=1)
    parts, size = ring_parts(network), network.size
    for step in range(size - 1):
        sent = [(rank + 1 - step) % size for rank in range(size)]
        arriving = [network.send(r, (r + 1) % size, network.data[r][parts[sent[r]]]) for r in range(size)]
        for rank in range(size):
            network.data[rank][parts[sent[(rank - 1) % size]]] = arriving[(rank - 1) % size]


def recursive_doubling(network: Network) -> None:
    size = network.size
    power = 2 ** int(np.log2(size))
    folded = size - power
    for rank in range(0, 2 * folded, 2):
        network.data[rank + 1] += network.send(rank, rank + 1, network.data[rank])
    active = [rank for rank in range(size) if rank >= 2 * folded or rank % 2]
    distance = 1
    while distance < power:
        arriving = [
            network.send(active[place ^ distance], rank, network.data[active[place ^ distance]])
            for place, rank in enumerate(active)
        ]
        for rank, values in zip(active, arriving):
            network.data[rank] += values
        distance *= 2
    for rank in range(0, 2 * folded, 2):
        network.data[rank] = network.send(rank + 1, rank, network.data[rank + 1])


def binomial_broadcast(network: Network, root: int) -> None:
    size, has = network.size, {0}
    distance = 1 << max(size - 1, 1).bit_length()
    while distance >= 1:
        for relative in sorted(has):
            if relative % (2 * distance) == 0 and relative + distance < size:
                source, destination = (relative + root) % size, (relative + distance + root) % size
                network.data[destination] = network.send(source, destination, network.data[source])
                has.add(relative + distance)
        distance //= 2
    assert has == set(range(size))


def assert_traffic(network: Network, operation: str, algorithm: str, elements: int, root: int = 0) -> None:
    size, total = network.size, 0
    for rank in range(size):
        counted = traffic(operation, algorithm, rank, size, elements, 4, root)
        moved = {pair: 4 * count for pair, count in network.moved.items() if count}
        assert counted.sent == {to: count for (source, to), count in moved.items() if source == rank}
        assert counted.received == {source: count for (source, to), count in moved.items() if to == rank}
        total += sum(counted.sent.values())
    assert total == total_bytes(operation, algorithm, size, elements, 4)


@pytest.mark.parametrize("elements", ELEMENTS)
@pytest.mark.parametrize("size", SIZES)
def test_ring_allreduce(size: int, elements: int) -> None:
    network = Network(size, elements)
    ring_allreduce(network)

    assert all((data == network.sum).all() for data in network.data)
    assert_traffic(network, "allreduce", "ring", elements)


@pytest.mark.parametrize("elements", ELEMENTS)
@pytest.mark.parametrize("size", SIZES)
def test_recursive_doubling(size: int, elements: int) -> None:
    network = Network(size, elements)
    recursive_doubling(network)

    assert all((data == network.sum).all() for data in network.data)
    assert_traffic(network, "allreduce", "recursive_doubling", elements)


@pytest.mark.parametrize("elements", ELEMENTS)
@pytest.mark.parametrize("size", SIZES)
def test_ring_reduce_scatter(size: int, elements: int) -> None:
    network = Network(size, elements)
    ring_reduce_scatter(network, shift=0)

    for data, part in zip(network.data, ring_parts(network)):
        assert (data[part] == network.sum[part]).all()
    assert_traffic(network, "reduce_scatter", "ring", elements)


@pytest.mark.parametrize("size", SIZES)
def test_ring_allgather(size: int) -> None:
    network = Network(size, 5)
    held = {rank: [(rank, network.data[rank])] for rank in range(size)}
    for _ in range(size - 1):
        last = {rank: held[rank][-1] for rank in range(size)}
        for rank in range(size):
            origin, values = last[rank]
            held[(rank + 1) % size].append((origin, network.send(rank, (rank + 1) % size, values)))

    assert all({origin for origin, _ in parts} == set(range(size)) for parts in held.values())
    assert_traffic(network, "allgather", "ring", 5)


@pytest.mark.parametrize("size", SIZES)
def test_binomial_tree(size: int) -> None:
    for root in {0, 1 % size, size - 1}:
        network = Network(size, 7)
        expected = network.data[root].copy()
        binomial_broadcast(network, root)
        assert all((data == expected).all() for data in network.data)
        assert_traffic(network, "broadcast", "binomial_tree", 7, root)

        network.moved = Counter({(to, source): count for (source, to), count in network.moved.items()})
        assert_traffic(network, "reduce", "binomial_tree", 7, root)


@pytest.mark.parametrize(("size", "exact"), [(2, 4000), (4, 6000), (8, 7000)])
def test_ring_is_twice_the_message_for_many_ranks(size: int, exact: int) -> None:
    for rank in range(size):
        assert sum(traffic("allreduce", "ring", rank, size, 1000, 4).sent.values()) == exact


@pytest.mark.parametrize(("size", "rounds"), [(1, 0), (2, 1), (4, 2), (64, 6)])
def test_recursive_doubling_is_the_message_once_a_round(size: int, rounds: int) -> None:
    for rank in range(size):
        assert sum(traffic("allreduce", "recursive_doubling", rank, size, 1000, 4).sent.values()) == rounds * 4000


def test_barrier_moves_nothing() -> None:
    assert traffic("barrier", "dissemination", 1, 4, 0, 1).sent == {}
    assert total_bytes("barrier", "dissemination", 4, 0, 1) == 0


def test_every_operation_has_a_default() -> None:
    for operation, algorithm in DEFAULT_ALGORITHMS.items():
        assert algorithm in known_algorithms(operation)


def test_unknown_algorithm_is_refused() -> None:
    with pytest.raises(CommunicationError, match=r"'rings' is not known\. Did you mean 'ring'"):
        traffic("allreduce", "rings", 0, 2, 10, 4)
    with pytest.raises(CommunicationError, match="Accepted: ring"):
        total_bytes("allgather", "tree", 2, 10, 4)
