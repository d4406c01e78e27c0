from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from deep500.datasets.numpy_dataset import NumpyDataset
from deep500.training.samplers.shuffle import ShuffleSampler

seeds = st.integers(0, 2**64 - 1)


def epochs(seed: int, number: int = 3, count: int = 30) -> list[list[int]]:
    sampler = ShuffleSampler(NumpyDataset(np.arange(count), "x"), 5, seed)
    orders = []
    for _ in range(number):
        orders.append([int(x) for batch in sampler for x in batch["x"]])
        sampler.reset()
    return orders


@given(seed=seeds)
def test_reruns_are_equal_and_epochs_differ(seed: int) -> None:
    first, second, third = epochs(seed)

    assert [first, second, third] == epochs(seed)
    assert first != second != third != first


@given(a=seeds, b=seeds)
def test_seeds_differ(a: int, b: int) -> None:
    assert (epochs(a) == epochs(b)) is (a == b)


def test_last_smaller_batch_is_dropped_by_default() -> None:
    assert len(ShuffleSampler(NumpyDataset(np.arange(11), "x"), 5)) == 2


def test_global_random_state_is_not_involved() -> None:
    np.random.seed(0)  # noqa: NPY002 - the state that must not matter
    before = epochs(3)
    np.random.seed(1)  # noqa: NPY002

    assert epochs(3) == before
