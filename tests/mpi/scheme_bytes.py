"""One rank of several that count bytes: ``mpiexec -n N python -m tests.mpi.scheme_bytes FOLDER`` (case_loop.py).

Where the environment names a library, which is built from pmpi_bytes.c and loaded before MPI, what MPI itself is given
is counted as well.
"""

from __future__ import annotations

import ctypes
import functools
import math
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deep500.distributed.communicator import Communicator
from deep500.distributed.distributed_optimizer import DistributedOptimizer
from deep500.distributed.launch_environment import create_communicator
from deep500.distributed.ledger import LedgerSnapshot
from deep500.distributed.scheme import Scheme
from deep500.distributed.schemes.allreduce import AllReduce
from deep500.distributed.schemes.asynchronous_parameter_server import AsynchronousParameterServer
from deep500.distributed.schemes.consistent_neighbors import ConsistentNeighbors
from deep500.distributed.schemes.dpsgd import DPSGD
from deep500.distributed.schemes.gossip import Gossip
from deep500.distributed.schemes.hierarchical import Hierarchical
from deep500.distributed.schemes.local_sgd import LocalSGD
from deep500.distributed.schemes.one_bit import OneBit
from deep500.distributed.schemes.parameter_server import ParameterServer
from deep500.distributed.schemes.power_sgd import PowerSGD
from deep500.distributed.schemes.qsgd import QSGD
from deep500.distributed.schemes.stale_synchronous import StaleSynchronous
from deep500.distributed.schemes.top_k import TopK
from deep500.distributed.schemes.zero_1 import Zero1
from tests.conformance import byte_formulas as formulas
from tests.conformance.byte_formulas import Moved
from tests.conformance.optimizer_networks import batches
from tests.conformance.scheme_oracles import BASES, SHARE, part_of
from tests.conformance.test_optimizers import make_executor
from tests.mpi.case_loop import run_cases
from tests.mpi.ledger_against_mpi import OPERATIONS

#: Names the library that counts what MPI is given.
COUNTER = "DEEP500_TEST_PMPI_COUNTER"

STEPS = 4
BUCKET_BYTES = 200

#: The parameters of the network, in its order, as rows and columns of matrices; ``None`` for no matrix.
SHAPES: Mapping[str, tuple[int, int | None]] = {
    "kernel": (5, 18),
    "bias": (5, None),
    "scale": (1, None),
    "row": (4, 15),
    "weight": (4, 3),
    "offset": (3, None),
}
SIZES = {name: rows * (columns or 1) for name, (rows, columns) in SHAPES.items()}
ALL = sum(SIZES.values())
ITEM_BYTES = 4


@dataclass(frozen=True)
class Volume:
    """What a scheme must send and receive.

    Attributes:
        make: Makes the scheme.
        formula: ``(rank, ranks)`` to bytes of all steps on one rank.
        algorithm: By which the ledger counts an allreduce.
    """

    make: Callable[[], Scheme]
    formula: Callable[[int, int], Moved]
    algorithm: str = "ring"


def buckets() -> list[int]:
    """Return the elements of each bucket: tensors from the last to the first, as long as they fit."""
    found = [0]
    for size in reversed(SIZES.values()):
        if found[-1] and (found[-1] + size) * ITEM_BYTES > BUCKET_BYTES:
            found.append(0)
        found[-1] += size
    return found


def of_buckets(formula: Callable[[int, int, int], Moved]) -> Callable[[int, int], Moved]:
    return lambda rank, p: formulas.total([formula(rank, p, size) for size in buckets()]) * (STEPS * ITEM_BYTES)


def of_all(formula: Callable[[int, int, int], Moved], times: int = STEPS) -> Callable[[int, int], Moved]:
    return lambda rank, p: formula(rank, p, ALL) * (times * ITEM_BYTES)


def served(rank: int, p: int, n: int) -> Moved:
    return formulas.reduce(rank, p, n) + formulas.broadcast(rank, p, n)


def neighbours(topology: str) -> Callable[[int, int], Moved]:
    return of_all(lambda rank, p, n: formulas.exchange(formulas.degree(topology, p), n))


def gathered(message_bytes: int) -> Callable[[int, int], Moved]:
    return lambda rank, p: formulas.allgather(p, message_bytes) * STEPS


def in_pairs(rank: int, p: int) -> Moved:
    """Ranks meet by the draw of the scheme."""
    met = sum(Gossip(5).partner(step, rank, p) != rank for step in range(1, STEPS + 1))
    return formulas.exchange(met, ALL * ITEM_BYTES)


def in_groups(rank: int, p: int, n: int) -> Moved:
    """Groups of two send to their first rank and back; the first ranks are a ring."""
    first, leaders = rank - rank % 2, math.ceil(p / 2)
    within = served(rank - first, min(2, p - first), n)
    return within + (formulas.ring_allreduce(rank // 2, leaders, n) if rank == first else formulas.NOTHING)


def sharded(rank: int, p: int, n: int) -> Moved:
    """A part goes to its owner and from there to all; a tensor is in the part in which its middle is."""
    owned, start = [0] * p, 0
    for size in SIZES.values():
        owned[min(int((start + size / 2) * p / n), p - 1)] += size
        start += size
    both = [
        formulas.reduce(rank, p, part, root) + formulas.broadcast(rank, p, part, root)
        for root, part in enumerate(owned)
    ]
    return formulas.total(both)


def of_low_rank(rank: int, p: int, n: int) -> Moved:
    """Of rank 1: a vector of the rows and one of the columns; a tensor that these do not make smaller goes whole."""
    thin = {
        name: (rows, columns) for name, (rows, columns) in SHAPES.items() if columns and rows + columns < rows * columns
    }
    first = sum(thin[name][0] if name in thin else size for name, size in SIZES.items())
    second = sum(columns for _, columns in thin.values() if columns)
    return formulas.ring_allreduce(rank, p, first) + formulas.ring_allreduce(rank, p, second)


def sparse(density: float) -> Callable[[int, int], Moved]:
    return lambda rank, p: formulas.top_k(rank, p, ALL, ITEM_BYTES, density) * STEPS


def by_server(rank: int, p: int) -> Moved:
    return formulas.server(rank, p, ALL, ITEM_BYTES, STEPS)


VOLUMES: dict[str, Volume] = {
    "allreduce": Volume(AllReduce, of_buckets(formulas.ring_allreduce)),
    "allreduce_by_recursive_doubling": Volume(AllReduce, of_buckets(formulas.recursive_doubling), "recursive_doubling"),
    "parameter_server": Volume(ParameterServer, of_buckets(served)),
    "zero_1": Volume(Zero1, of_all(sharded)),
    "hierarchical": Volume(functools.partial(Hierarchical, 2), of_buckets(in_groups)),
    "dpsgd": Volume(DPSGD, neighbours("ring")),
    "dpsgd_on_a_torus": Volume(functools.partial(DPSGD, "torus"), neighbours("torus")),
    "dpsgd_on_an_exponential_graph": Volume(functools.partial(DPSGD, "exponential"), neighbours("exponential")),
    "gossip": Volume(functools.partial(Gossip, 5), in_pairs),
    "local_sgd": Volume(functools.partial(LocalSGD, 2), of_all(formulas.ring_allreduce, STEPS // 2)),
    "consistent_neighbors": Volume(ConsistentNeighbors, neighbours("ring")),
    "top_k_sparse": Volume(functools.partial(TopK, 0.02), sparse(0.02)),
    "top_k_dense": Volume(functools.partial(TopK, 0.7), sparse(0.7)),
    "one_bit": Volume(functools.partial(OneBit, 32), gathered(2 * 4 * math.ceil(ALL / 32) + math.ceil(ALL / 8))),
    "qsgd": Volume(functools.partial(QSGD, 127, 64), gathered(4 * math.ceil(ALL / 64) + ALL)),
    "power_sgd": Volume(functools.partial(PowerSGD, 1), of_all(of_low_rank)),
    "asynchronous_parameter_server": Volume(AsynchronousParameterServer, by_server),
    "stale_synchronous": Volume(functools.partial(StaleSynchronous, 1), by_server),
}


def exchanged(communicator: Communicator, volume: Volume, counter: Callable[[int], int]) -> tuple[Any, list[int]]:
    """Train a few steps; return what the ledger counted meanwhile, and what MPI was given by operation."""
    algorithm, communicator.algorithms["allreduce"] = communicator.algorithms["allreduce"], volume.algorithm
    base = BASES["Momentum"](make_executor("reference", "float32"))
    optimizer = DistributedOptimizer(base, communicator, volume.make(), bucket_size_bytes=BUCKET_BYTES)
    before = communicator.ledger.snapshot()
    given = [counter(operation) for operation in range(len(OPERATIONS))]
    for batch in batches(STEPS, "float32", size=SHARE * communicator.size):
        optimizer.step(part_of(batch, communicator.rank))
    optimizer.finish()
    communicator.algorithms["allreduce"] = algorithm
    taken = [counter(operation) - past for operation, past in enumerate(given)]
    return communicator.ledger.snapshot() - before, taken


def check_bytes(communicator: Communicator, volume: Volume, counter: Callable[[int], int] | None = None) -> None:
    """The ledger's bytes are those of the formula, and MPI was given what the ledger says."""
    moved, taken = exchanged(communicator, volume, counter or (lambda operation: 0))
    expected = volume.formula(communicator.rank, communicator.size)
    assert isinstance(moved, LedgerSnapshot)
    assert (moved.sent_bytes, moved.received_bytes) == expected
    if counter is not None:
        payload = [moved[operation].payload_bytes for operation in OPERATIONS]
        payload[OPERATIONS.index("send")] += moved["isendrecv"].payload_bytes
        assert taken == payload, f"MPI was given {taken} bytes by {OPERATIONS}; the ledger says {payload}"
        assert any(taken) or communicator.size == 1


def main() -> None:
    communicator = create_communicator("mpi")
    counter = None
    if COUNTER in os.environ:
        counter = ctypes.CDLL(os.environ[COUNTER]).pmpi_bytes
        counter.restype = ctypes.c_longlong
    cases = {name: functools.partial(check_bytes, communicator, volume, counter) for name, volume in VOLUMES.items()}
    run_cases(Path(sys.argv[1]), communicator.rank, cases)


if __name__ == "__main__":
    main()
