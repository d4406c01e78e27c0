"""Closed forms against the clocks, over rank counts and sizes, powers of two and others."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deep500.core.errors import CommunicationError, UnknownNameError
from deep500.distributed.simulation.catalogue import ALGORITHMS
from deep500.distributed.simulation.clocks import Clocks
from deep500.distributed.simulation.closed_forms import closed_form
from deep500.distributed.simulation.cost_model import LogGP

MODEL = LogGP(25e-6, 1e-6, 2e-6, 1 / 1.1e9, 1e-10)
RESNET18 = 11_689_512  # parameters
ONE_BLOCK_A_RANK = {"pairwise_allgather", "pairwise_reduce_scatter", "ring_allgather", "ring_reduce_scatter"}

models = st.builds(
    LogGP,
    latency_s=st.floats(1e-6, 1e-4),
    overhead_s=st.floats(0, 1e-5),
    gap_s=st.floats(0, 1e-6),
    gap_s_per_byte=st.floats(1e-11, 1e-9),
    reduction_s_per_byte=st.sampled_from([0.0, 1e-10]),
)


def simulated(name: str, model: LogGP, size: int, count: int, item_bytes: int) -> float:
    return Clocks(model, size).run(ALGORITHMS.get(name)(size, count, item_bytes))


@pytest.mark.parametrize("name", ALGORITHMS.names())
@given(model=models, size=st.integers(1, 70), count=st.integers(0, 5000), item_bytes=st.sampled_from([1, 2, 4, 8]))
@settings(max_examples=150, deadline=None)
def test_closed_form_is_the_simulated_time(name: str, model: LogGP, size: int, count: int, item_bytes: int) -> None:
    count *= size if name in ONE_BLOCK_A_RANK else 1

    expected = closed_form(name)(model, size, count, item_bytes)

    assert simulated(name, model, size, count, item_bytes) == pytest.approx(expected, rel=1e-9, abs=1e-15)


@pytest.mark.parametrize("size", [1000, 1024])
@pytest.mark.parametrize("name", ALGORITHMS.names())
def test_a_thousand_ranks(name: str, size: int) -> None:
    count = RESNET18 // size * size

    expected = closed_form(name)(MODEL, size, count, 4)

    assert simulated(name, MODEL, size, count, 4) == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize("name", ALGORITHMS.names())
@pytest.mark.parametrize("change", ["latency_s", "overhead_s", "gap_s_per_byte"])
def test_a_wrong_parameter_is_seen(name: str, change: str) -> None:
    wrong = LogGP(**{**MODEL.__dict__, change: 1.2 * getattr(MODEL, change)})
    count = 16 if change != "gap_s_per_byte" else 1 << 20

    assert abs(simulated(name, wrong, 16, count, 4) / closed_form(name)(MODEL, 16, count, 4) - 1) > 1e-3


@given(degree=st.integers(1, 6), count=st.integers(1, 4000), model=models)
@settings(max_examples=150, deadline=None)
def test_neighbours_on_an_exponential_graph(degree: int, count: int, model: LogGP) -> None:
    offsets = [2**power for power in range(degree)]
    schedule = ALGORITHMS.get("neighbour_exchange")(64, count, 4, offsets)

    expected = closed_form("neighbour_exchange")(model, 64, count, 4, offsets)

    assert Clocks(model, 64).run(schedule) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("root", [0, 1, 6])
@pytest.mark.parametrize("name", ["binomial_tree_broadcast", "binomial_tree_reduce", "central_parameter_server"])
def test_any_root_takes_the_same_time(name: str, root: int) -> None:
    schedule = ALGORITHMS.get(name)(7, 1000, 4, root)

    assert Clocks(MODEL, 7).run(schedule) == pytest.approx(closed_form(name)(MODEL, 7, 1000, 4), rel=1e-12)


def test_figures_of_the_published_form() -> None:
    """Thakur et al. 2005: ring and recursive doubling as 2(p-1)(alpha + n/p beta) and lg p (alpha + n beta)."""
    model = LogGP(latency_s=1e-5, gap_s_per_byte=1e-9)

    assert closed_form("ring_allreduce")(model, 4, 1 << 20, 4) == pytest.approx(6 * (1e-5 + (1 << 20) * 1e-9), rel=1e-6)
    assert closed_form("recursive_doubling_allreduce")(model, 8, 1000, 4) == pytest.approx(
        3 * (1e-5 + 3999e-9), rel=1e-12
    )


def test_unknown_closed_form() -> None:
    with pytest.raises(UnknownNameError, match="ring_allreduce"):
        closed_form("closed_form")


def test_every_algorithm_has_a_closed_form() -> None:
    assert all(callable(closed_form(name)) for name in ALGORITHMS)


def test_gap_longer_than_a_message() -> None:
    with pytest.raises(CommunicationError, match="Clocks"):
        closed_form("ring_allreduce")(LogGP(1e-6, gap_s=1e-3), 4, 100, 4)
