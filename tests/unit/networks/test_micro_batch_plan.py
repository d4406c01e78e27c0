from __future__ import annotations

import itertools

import numpy as np
import pytest

from deep500.core.errors import InvalidInputError
from deep500.networks.creation import create_model
from deep500.networks.micro_batch_plan import Layer, candidate_sizes, choose_sizes, step_bytes, step_size


@pytest.mark.parametrize(
    ("batch", "sizes"), [(1, [1]), (7, [1, 2, 4, 7]), (12, [1, 2, 3, 4, 6, 8, 12]), (16, [1, 2, 4, 8, 16])]
)
def test_candidates_are_divisors_and_powers_of_two(batch: int, sizes: list[int]) -> None:
    assert candidate_sizes(batch) == sizes


def cheapest(layer: Layer, batch: int, bound: int) -> float:
    """Return the least time by trying every division."""
    fitting = [s for s in layer.bytes if layer.fixed_bytes + layer.bytes[s] <= bound]
    best = [0.0, *[float("inf")] * batch]
    for n in range(1, batch + 1):
        best[n] = min((best[n - s] + layer.times[s] for s in fitting if s <= n), default=float("inf"))
    return best[batch]


@pytest.mark.parametrize("seed", range(12))
def test_chosen_sizes_are_as_good_as_trying_all(seed: int) -> None:
    stream = np.random.default_rng(seed)
    batch = int(stream.integers(1, 30))
    sizes = candidate_sizes(batch)
    layers = [
        Layer(
            f"l{i}",
            int(stream.integers(0, 10**6)),
            {s: s * int(stream.integers(1, 10**6)) for s in sizes},
            {s: float(stream.uniform(0.1, 1.0) * s**0.8) for s in sizes},
        )
        for i in range(4)
    ]
    bound = max(max(layer.fixed_bytes + min(layer.bytes.values()) for layer in layers), 2 * 10**6)
    if any(cheapest(layer, batch, bound) == float("inf") for layer in layers):
        with pytest.raises(InvalidInputError):
            choose_sizes(layers, batch, bound)
        return

    found = choose_sizes(layers, batch, bound)

    for layer, parts in zip(layers, found):
        assert sum(parts) == batch
        assert max(layer.fixed_bytes + layer.bytes[s] for s in parts) <= bound
        assert sum(layer.times[s] for s in parts) == pytest.approx(cheapest(layer, batch, bound), rel=1e-4)
        assert parts == sorted(parts, reverse=True)


def test_sizes_are_mixed_where_that_is_faster() -> None:
    layer = Layer("conv", 0, {s: 100 * s for s in (1, 2, 4, 8)}, {1: 1.0, 2: 1.5, 4: 2.0, 8: 3.0})

    assert choose_sizes([layer], 7, 500) == [[4, 2, 1]]
    assert choose_sizes([], 7, 500) == []


def test_what_fits_nowhere_is_named() -> None:
    with pytest.raises(InvalidInputError, match=r"layer 'big' needs 1,100 with the smallest parts"):
        choose_sizes([Layer("big", 1000, {1: 100}, {1: 1.0})], 4, 1050)


def test_model_of_a_step_grows_with_the_part() -> None:
    network = create_model("lenet", shape=(1, 8, 8))
    network.append_loss("SoftmaxCrossEntropyLoss")

    sizes = [step_bytes(network, size) for size in (1, 2, 4, 8)]

    assert all(np.diff(sizes) > 0)
    assert step_bytes(network, 4, parts=2) - step_bytes(network, 4) == network.parameter_size_bytes


def test_size_of_a_step_is_the_largest_that_fits() -> None:
    network = create_model("resnet", depth=8, shape=(3, 16, 16))
    network.append_loss("SoftmaxCrossEntropyLoss")
    bound = step_bytes(network, 24) // 2

    size = step_size(network, 24, bound)

    assert step_bytes(network, size, parts=24 // size) <= bound
    assert step_size(network, 24, 10**9) == 24
    larger = [s for s in candidate_sizes(24) if s > size]
    assert all(step_bytes(network, s, parts=2) > bound for s in itertools.islice(larger, 1))


def test_measured_times_decide_among_what_fits() -> None:
    network = create_model("lenet", shape=(1, 8, 8))

    assert step_size(network, 8, 10**9, times={1: 1.0, 4: 1.0, 8: 9.0}) == 4


def test_bad_arguments_are_refused() -> None:
    network = create_model("lenet", shape=(1, 8, 8))
    with pytest.raises(InvalidInputError, match="batch_size"):
        candidate_sizes(0)
    with pytest.raises(InvalidInputError, match="memory_bound"):
        step_size(network, 8, 0)
    with pytest.raises(InvalidInputError, match=r"needs .* with the smallest"):
        step_size(network, 8, 1000)
    with pytest.raises(InvalidInputError, match="times has none"):
        step_size(network, 8, 10**9, times={3: 1.0})


def test_advice_is_not_what_is_done_already() -> None:
    with pytest.raises(InvalidInputError, match=r"needs [\d,]+ with the smallest parts\.$"):
        step_size(create_model("lenet"), 4, memory_bound=1)
