"""Bytes of every scheme: the ledger's are those of the formulas, under MPI and on a thousand simulated ranks."""

from __future__ import annotations

import dataclasses
import functools
import importlib.util
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx.helper as oh
import pytest

from deep500.distributed.catalogue import SCHEMES
from deep500.distributed.communicators.local import run_threads
from deep500.distributed.communicators.simulated import SimulatedCommunicator
from deep500.distributed.distributed_optimizer import DistributedOptimizer
from deep500.distributed.scheme import Scheme, StepContext
from deep500.distributed.schemes.allreduce import AllReduce
from deep500.distributed.schemes.dpsgd import DPSGD
from deep500.distributed.schemes.parameter_server import ParameterServer
from deep500.distributed.schemes.top_k import TopK
from deep500.distributed.simulation.closed_forms import closed_form
from deep500.distributed.simulation.cost_model import LogGP
from deep500.distributed.volume import total_bytes, traffic
from deep500.frameworks.reference import from_model
from deep500.networks.network import Network
from deep500.training.optimizers.gradient_descent import GradientDescent
from tests.conformance import byte_formulas as formulas
from tests.conformance.byte_formulas import Moved
from tests.conformance.optimizer_networks import network_of_all_ranks
from tests.conformance.scheme_launcher import LAUNCHER, build_counter, run_cases
from tests.mpi.scheme_bytes import COUNTER, SIZES, VOLUMES, Volume, check_bytes

needs_mpi = pytest.mark.skipif(
    importlib.util.find_spec("mpi4py") is None or not Path(LAUNCHER).exists(), reason="mpi4py or mpiexec is missing"
)

#: A network between machines: 25 us, 1.1 GB/s.
MODEL = LogGP(latency_s=25e-6, overhead_s=1e-6, gap_s=2e-6, gap_s_per_byte=1 / 1.1e9)

THOUSAND = 1024


@needs_mpi
@pytest.mark.parametrize("ranks", [3, *(pytest.param(ranks, marks=pytest.mark.slow) for ranks in (1, 2, 4))])
def test_bytes_under_mpi_are_those_of_the_formulas(ranks: int, tmp_path: Path) -> None:
    """Counted by the ledger, and by a library that sees every call of MPI where there is a compiler."""
    names = [name for name in VOLUMES if ranks == 4 or not name.startswith("dpsgd_on")]
    counter = build_counter(tmp_path)
    environment = {} if counter is None else {"LD_PRELOAD": str(counter), COUNTER: str(counter)}
    outcomes = run_cases(ranks, names, tmp_path, module="tests.mpi.scheme_bytes", environment=environment)
    assert list(outcomes) == names
    assert not [f"{name}: {outcome.why}" for name, outcome in outcomes.items() if outcome.why]


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
@pytest.mark.parametrize("name", VOLUMES)
def test_bytes_of_thread_ranks_are_those_of_the_formulas(name: str, ranks: int) -> None:
    if name.startswith("dpsgd_on") and ranks != 4:
        pytest.skip("a ring where there are fewer than four ranks")
    run_threads(ranks, functools.partial(check_bytes, volume=VOLUMES[name]))


def test_the_network_is_the_one_of_the_formulas() -> None:
    network = network_of_all_ranks("float32")
    assert [(name, network.parameters[name].element_count) for name in network.get_params()] == list(SIZES.items())


def test_every_scheme_has_a_formula() -> None:
    without = {name for name in SCHEMES.names() if not any(volume.startswith(name) for volume in VOLUMES)}
    assert without <= {"native"}  # whose bytes the framework moves


class OneBucketTwice(AllReduce):
    """Exchanges the first bucket once more."""

    def on_bucket(self, bucket: Any, context: StepContext) -> None:
        super().on_bucket(bucket, context)
        if bucket.start:
            context.communicator.broadcast(np.zeros(1, np.float32))


class Silent(Scheme):
    """Leaves the exchange out."""

    def after_update(self, context: StepContext) -> None:
        context.wait()


class Float64Places(TopK):
    """Sends places in 8 bytes."""

    def is_sparse(self, values: np.ndarray, count: int, size: int) -> bool:
        return False


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("allreduce", {"make": OneBucketTwice}),
        ("allreduce", {"algorithm": "recursive_doubling"}),
        ("parameter_server", {"make": functools.partial(ParameterServer, 1)}),
        ("dpsgd", {"make": Silent}),
        ("top_k_sparse", {"make": functools.partial(Float64Places, 0.02)}),
        ("top_k_sparse", {"make": functools.partial(TopK, 0.03)}),
    ],
)
def test_bytes_that_are_not_those_of_the_formula_are_found(name: str, change: dict[str, Any]) -> None:
    volume = dataclasses.replace(VOLUMES[name], **change)
    with pytest.raises(AssertionError):
        run_threads(4, functools.partial(check_bytes, volume=volume))


@pytest.mark.parametrize("count", [1, 5, 171, 1024, 100_003])
@pytest.mark.parametrize("p", [1, 2, 3, 4, 5, 8, 13, 1000, THOUSAND])
def test_formulas_of_all_ranks_add_up_to_the_closed_ones(p: int, count: int) -> None:
    power = 2 ** int(math.log2(p))
    closed: list[tuple[str, str, Callable[[int], Moved], int]] = [
        ("allreduce", "ring", lambda r: formulas.ring_allreduce(r, p, count), 2 * (p - 1) * count),
        (
            "allreduce",
            "recursive_doubling",
            lambda r: formulas.recursive_doubling(r, p, count),
            (power * int(math.log2(power)) + 2 * (p - power)) * count,
        ),
        ("broadcast", "binomial_tree", lambda r: formulas.broadcast(r, p, count), (p - 1) * count),
        ("reduce", "binomial_tree", lambda r: formulas.reduce(r, p, count), (p - 1) * count),
        ("allgather", "ring", lambda r: formulas.allgather(p, count), p * (p - 1) * count),
    ]
    ranks = range(p) if p < 100 else (0, 1, 2, 3, p // 2, p - 2, p - 1)  # a ring of 1,024 has 2 million messages
    for operation, algorithm, formula, elements in closed:
        here = [formula(rank) for rank in ranks]
        if p < 100:
            assert formulas.total(here) == (elements, elements)
        assert total_bytes(operation, algorithm, p, count, 4) == 4 * elements
        for rank, moved in zip(ranks, here, strict=True):
            library = traffic(operation, algorithm, rank, p, count, 4)
            assert (sum(library.sent.values()), sum(library.received.values())) == moved * 4


def wide_executor() -> Any:
    """Return an executor of a network with one matrix of 65,536 parameters."""
    weight = np.random.default_rng(0).normal(size=(64, 1024)).astype(np.float32)
    graph = oh.make_graph(
        [oh.make_node("MatMul", ["x", "weight"], ["y"])],
        "wide",
        [oh.make_tensor_value_info("x", 1, ["n", 64])],
        [oh.make_tensor_value_info("y", 1, ["n", 1024])],
        [oh.make_tensor("weight", 1, weight.shape, weight.tobytes(), raw=True)],
    )
    network = Network.load(oh.make_model(graph, opset_imports=[oh.make_opsetid("", 23)], ir_version=11))
    network.append_loss("SoftmaxCrossEntropyLoss")
    executor = from_model(network)
    executor.network.train()
    return executor


COUNT = 64 * 1024


def time_of(name: str, count: int = COUNT, item_bytes: int = 4, **arguments: Any) -> float:
    return float(closed_form(name)(MODEL, THOUSAND, count, item_bytes, **arguments))


#: What a step of 1,024 ranks takes, by the closed form, and the bytes of one rank, by the formula.
THOUSANDS: dict[str, tuple[Volume, Callable[[], float]]] = {
    "allreduce": (
        Volume(AllReduce, lambda r, p: formulas.ring_allreduce(r, p, COUNT) * 4),
        lambda: time_of("ring_allreduce"),
    ),
    "allreduce_by_recursive_doubling": (
        Volume(AllReduce, lambda r, p: formulas.recursive_doubling(r, p, COUNT) * 4, "recursive_doubling"),
        lambda: time_of("recursive_doubling_allreduce"),
    ),
    "parameter_server": (
        Volume(ParameterServer, lambda r, p: (formulas.reduce(r, p, COUNT) + formulas.broadcast(r, p, COUNT)) * 4),
        lambda: time_of("tree_allreduce"),
    ),
    "dpsgd": (
        Volume(DPSGD, lambda r, p: formulas.exchange(2, COUNT) * 4),
        lambda: time_of("neighbour_exchange"),
    ),
    "top_k_sparse": (
        Volume(functools.partial(TopK, 0.0001), lambda r, p: formulas.top_k(r, p, COUNT, 4, 0.0001)),
        lambda: time_of("ring_allgather", 7 * 8 * THOUSAND, 1),
    ),
    "top_k_dense": (
        Volume(functools.partial(TopK, 0.01), lambda r, p: formulas.top_k(r, p, COUNT, 4, 0.01)),
        lambda: time_of("ring_allreduce"),
    ),
}


@pytest.mark.parametrize("rank", [0, 513])
@pytest.mark.parametrize("name", THOUSANDS)
def test_a_thousand_ranks_take_the_closed_form(name: str, rank: int) -> None:
    """Exactly its bytes, and its time to 0.1 %."""
    volume, seconds = THOUSANDS[name]
    communicator = SimulatedCommunicator(THOUSAND, MODEL, rank=rank)
    communicator.algorithms["allreduce"] = volume.algorithm
    base = GradientDescent(wide_executor(), learning_rate=0.1)
    optimizer = DistributedOptimizer(base, communicator, volume.make(), broadcasts_start=False)
    before, start = communicator.ledger.snapshot(), communicator.network.computed_s.copy()
    assert np.ptp(start) == 0  # the closed forms have all ranks begin together
    random = np.random.default_rng(1)
    optimizer.step({"x": random.normal(size=(4, 64)).astype(np.float32), "label": random.integers(0, 1024, 4)})
    moved = communicator.ledger.snapshot() - before
    assert (moved.sent_bytes, moved.received_bytes) == volume.formula(rank, THOUSAND)
    took = float(communicator.network.computed_s.max() - start[0])
    assert took == pytest.approx(seconds(), rel=1e-3)
