"""Exchange of whole arrays."""

from __future__ import annotations

import numpy as np
import pytest

from deep500.core.errors import CommunicationError
from deep500.distributed.communication import CommunicationNetwork, exchange, gather_bytes, mix
from deep500.distributed.communicators.local import LocalCommunicator, run_threads


def own(rank: int) -> np.ndarray:
    return np.arange(6.0).reshape(2, 3).T * (rank + 1)


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_reduce_from_neighbors_adds_three_arrays(size: int) -> None:
    found = run_threads(size, lambda c: CommunicationNetwork(c).reduce_from_neighbors(own(c.rank)))
    for rank, total in enumerate(found):
        expected = own(rank) + own((rank - 1) % size) + own((rank + 1) % size)
        np.testing.assert_array_equal(total, expected)


def test_the_other_methods_do_what_they_say() -> None:
    def run(communicator):
        network = CommunicationNetwork(communicator)
        array = own(communicator.rank)
        results = (network.sync_all(array), network.sync_all_with_root(array), network.gather_at_root(array))
        np.testing.assert_array_equal(array, own(communicator.rank))
        return results

    for rank, (total, root, gathered) in enumerate(run_threads(3, run)):
        np.testing.assert_array_equal(total, own(0) * 6)
        np.testing.assert_array_equal(root, own(0))
        if rank == 0:
            np.testing.assert_array_equal(gathered, np.stack([own(0), own(1), own(2)]))
        else:
            assert gathered is None


def test_scalars_keep_their_shape() -> None:
    totals = run_threads(2, lambda c: CommunicationNetwork(c).sync_all(np.float32(c.rank + 1)))
    assert [(float(total), total.shape, total.dtype.name) for total in totals] == [(3.0, (), "float32")] * 2


def test_exchange_and_mix_take_the_own_rank_for_free() -> None:
    def run(communicator):
        array = np.array([1.0 + communicator.rank])
        received = exchange(communicator, array, {0, 1, 2})
        before = communicator.ledger.snapshot()
        mix(communicator, array, {communicator.rank: 1.0})
        assert communicator.ledger.snapshot().sent_bytes == before.sent_bytes == 16
        mix(communicator, array, {0: 0.5, 1: 0.25, 2: 0.25})
        return {rank: float(value[0]) for rank, value in sorted(received.items())}, array[0]

    for rank, (received, mixed) in enumerate(run_threads(3, run)):
        assert received[(rank + 1) % 3] == (rank + 1) % 3 + 1
        assert mixed == 0.5 + 0.5 + 0.75


def test_gathered_bytes_are_the_arrays_of_every_rank() -> None:
    def run(communicator):
        return gather_bytes(communicator, np.arange(3, dtype=np.int32) + communicator.rank, np.full(2, 0.5, np.float16))

    for found in run_threads(3, run):
        assert [[part.tolist() for part in parts] for parts in found] == [
            [[r, r + 1, r + 2], [0.5, 0.5]] for r in range(3)
        ]
        assert [part.dtype.name for part in found[0]] == ["int32", "float16"]


@pytest.mark.parametrize("what", [None, "text", [[1], [1, 2]], np.zeros(2, bool)])
def test_what_is_no_array_of_numbers_is_refused_on_one_rank_too(what: object) -> None:
    network = CommunicationNetwork(LocalCommunicator())
    for call in (network.sync_all, network.sync_all_with_root, network.gather_at_root, network.reduce_from_neighbors):
        with pytest.raises(CommunicationError, match=r"Received .* Accepted"):
            call(what)  # type: ignore[arg-type]
