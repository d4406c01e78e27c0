"""Predictions of steps: against hand-made numbers, against the simulation, and under disturbances."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deep500.core.errors import CommunicationError, UnknownNameError
from deep500.distributed.simulation.cost_model import LogGP
from deep500.distributed.simulation.delays import Disturbance
from deep500.distributed.simulation.training_step import TrainingStep, exposed_exchange_s, predict, simulate

CLUSTER = LogGP(latency_s=25e-6, gap_s_per_byte=1 / 1.1e9)
RESNET18 = 4 * 11_689_512
ALLREDUCES = ["ring_allreduce", "rabenseifner_allreduce", "recursive_doubling_allreduce", "central_parameter_server"]


def test_one_rank_is_the_base_case() -> None:
    (point,) = predict(TrainingStep(1.0, 2.0, 400, fixed_s=0.5), "ring_allreduce", [1], CLUSTER)

    assert (point.step_s, point.efficiency, point.exposed_s, point.speedup) == (3.5, 1.0, 0.0, 1.0)


def test_hidden_and_exposed_exchange() -> None:
    assert exposed_exchange_s([1.0, 2.0], [0.5, 0.5], 2.0) == 0.5
    assert exposed_exchange_s([1.0, 2.0], [2.0, 0.5], 2.0) == 1.5
    assert exposed_exchange_s([1.0, 1.2], [0.1, 0.1], 2.0) == 0.0
    assert exposed_exchange_s([], [], 2.0) == 0.0


def test_thousand_ranks_of_a_cluster() -> None:
    """ResNet-18 on 25 us and 1.1 GB/s: bandwidth-optimal algorithms scale, a central server does not."""
    step = TrainingStep(0.4, 0.8, RESNET18, overlaps=False)
    efficiency = {name: predict(step, name, [1024], CLUSTER)[0].efficiency for name in ALLREDUCES}

    assert efficiency["ring_allreduce"] == pytest.approx(0.90, abs=0.01)
    assert efficiency["rabenseifner_allreduce"] == pytest.approx(0.93, abs=0.01)
    assert efficiency["central_parameter_server"] == pytest.approx(0.01, abs=0.005)


def test_strong_scaling_is_harder_than_weak() -> None:
    step = TrainingStep(0.4, 0.8, RESNET18, fixed_s=0.01)
    ranks = [1, 4, 16, 64]
    strong = predict(step, "ring_allreduce", ranks, CLUSTER, "strong")
    weak = predict(step, "ring_allreduce", ranks, CLUSTER, "weak")

    assert all(hard.efficiency <= easy.efficiency for hard, easy in zip(strong, weak))
    assert [point.compute_s for point in strong] == pytest.approx([1.2 / count + 0.01 for count in ranks])
    # T(1) / (p T(p)) from the times themselves, with the whole step on one rank as the base case.
    assert [point.efficiency for point in strong] == pytest.approx(
        [strong[0].step_s / (point.ranks * point.step_s) for point in strong]
    )
    assert [point.efficiency for point in weak] == pytest.approx([weak[0].step_s / point.step_s for point in weak])


@pytest.mark.parametrize("name", ALLREDUCES)
@pytest.mark.parametrize("mode", ["strong", "weak"])
@given(ranks=st.integers(1, 20), bucket=st.sampled_from([None, 8 << 10, 64 << 10]), overlaps=st.booleans())
@settings(max_examples=15, deadline=None)
def test_prediction_is_the_undisturbed_simulation(
    name: str, mode: str, ranks: int, bucket: int | None, overlaps: bool
) -> None:
    step = TrainingStep(1e-3, 2e-3, 100_000, 1e-4, bucket_bytes=bucket, overlaps=overlaps)
    (point,) = predict(step, name, [ranks], CLUSTER, mode)

    run = simulate(step, name, ranks, CLUSTER, mode=mode, steps=2)

    # Where an algorithm leaves ranks ready at different times, the next bucket may begin earlier at some.
    rel = 1e-3 if name == "ring_allreduce" or (ranks & (ranks - 1) == 0 and "server" not in name) else 0.5
    assert run.step_s[0] == pytest.approx(point.step_s, rel=rel)
    assert run.step_s[0] <= point.step_s * (1 + 1e-9)


def test_buckets_hide_exchange_behind_the_backward_pass() -> None:
    whole = TrainingStep(0.4, 0.8, RESNET18)
    buckets = TrainingStep(0.4, 0.8, RESNET18, bucket_bytes=4 << 20)
    tiny = TrainingStep(0.4, 0.8, RESNET18, bucket_bytes=4 << 10)
    exposed = [predict(step, "ring_allreduce", [16], CLUSTER)[0].exposed_s for step in (whole, buckets, tiny)]

    assert exposed[1] < 0.3 * exposed[0]
    assert exposed[2] > exposed[0]  # latencies of 11,416 exchanges


def test_buckets_hold_all_elements() -> None:
    step = TrainingStep(1, 1, 4 * 1001, bucket_bytes=4 * 100)

    assert step.buckets == [100] * 10 + [1]
    assert step.ready_shares()[-1] == 1.0
    assert TrainingStep(1, 1, 0).buckets == []


def test_slow_rank_slows_everyone_once_they_exchange() -> None:
    step = TrainingStep(0.1, 0.2, 4000)
    run = simulate(step, "ring_allreduce", 8, CLUSTER, disturbance=Disturbance({3: 2.0}), steps=4)

    assert (run.step_s > 0.6).all()
    assert run.step_s == pytest.approx(0.6, rel=0.01)
    assert run.imbalance_s[:, 3] == pytest.approx(0.0, abs=1e-12)
    assert run.imbalance_s[0, 0] == pytest.approx(0.3)
    assert run.compute_s[0].tolist() == pytest.approx([0.3] * 3 + [0.6] + [0.3] * 4)
    assert (run.exposed_s >= run.imbalance_s).all()


def test_neighbours_feel_a_one_off_delay_later_than_an_allreduce() -> None:
    """A decentralised exchange passes a delay on by one neighbour a step."""
    step = TrainingStep(0.1, 0.2, 4000)
    slow = Disturbance({0: 2.0})

    run = simulate(step, "neighbour_exchange", 16, CLUSTER, disturbance=slow, steps=3)

    assert np.flatnonzero(run.imbalance_s[0] > 0.2).tolist() == [1, 15]


def test_late_messages_cost_and_repeat() -> None:
    step = TrainingStep(0.01, 0.02, 400_000)
    late = Disturbance(late_share=0.01, late_s=0.01, seed=4)
    first, again = (simulate(step, "ring_allreduce", 32, CLUSTER, disturbance=late, steps=5) for _ in range(2))

    assert first.step_s.mean() > 1.2 * simulate(step, "ring_allreduce", 32, CLUSTER).step_s[0]
    assert np.array_equal(first.step_s, again.step_s)


def test_one_rank_waits_for_nobody() -> None:
    run = simulate(TrainingStep(0.1, 0.2, 4000, 0.05), "ring_allreduce", 1, CLUSTER, steps=2)

    assert run.step_s == pytest.approx([0.35, 0.35])
    assert (run.exposed_s == 0).all()


def test_own_closed_form() -> None:
    (point,) = predict(TrainingStep(1.0, 1.0, 400), "", [4], CLUSTER, closed=lambda model, p, n, b: p * n * b / 800)

    assert point.exposed_s == 2.0


@pytest.mark.parametrize(
    "arguments",
    [(-1.0, 1.0, 4), (1.0, float("inf"), 4), (1.0, 1.0, 6), (0.0, 0.0, 4), (1.0, 1.0, -4)],
)
def test_wrong_step(arguments: tuple) -> None:
    with pytest.raises(CommunicationError, match="Accepted are times"):
        TrainingStep(*arguments)


def test_wrong_arguments() -> None:
    step = TrainingStep(1.0, 1.0, 4)
    with pytest.raises(CommunicationError, match="'strong' and 'weak'"):
        predict(step, "ring_allreduce", [1], CLUSTER, "both")
    with pytest.raises(CommunicationError, match="1 or more"):
        simulate(step, "ring_allreduce", 0, CLUSTER)
    with pytest.raises(CommunicationError, match="holds no element"):
        TrainingStep(1.0, 1.0, 8, bucket_bytes=2)
    with pytest.raises(UnknownNameError, match="ring_allreduce"):
        predict(step, "rings", [1], CLUSTER)
