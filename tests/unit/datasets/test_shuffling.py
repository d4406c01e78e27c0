from __future__ import annotations

import hashlib

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from deep500.core.random import random_stream
from deep500.datasets.shuffling import shuffled_order


@given(count=st.integers(0, 200), seed=st.integers(0, 2**64 - 1))
def test_each_number_once_and_the_same_again(count: int, seed: int) -> None:
    order = shuffled_order(random_stream(seed, "test"), count)

    assert order.dtype == np.int64
    np.testing.assert_array_equal(np.sort(order), np.arange(count))
    np.testing.assert_array_equal(order, shuffled_order(random_stream(seed, "test"), count))


def test_order_is_the_same_under_every_version_of_numpy() -> None:
    order = shuffled_order(random_stream(0, "test"), 1000).astype("<i8")

    expected = "a37b5c11bdd98c0d1be8e6eea930847507c2c9127721f5b0fb40247b4506b481"
    assert hashlib.sha256(order.tobytes()).hexdigest() == expected


def test_orders_are_equally_likely() -> None:
    stream = random_stream(0, "test")
    counts: dict[tuple[int, ...], int] = {}
    for _ in range(6000):
        order = tuple(shuffled_order(stream, 3).tolist())
        counts[order] = counts.get(order, 0) + 1

    # Chi-square with 5 degrees of freedom; the seed is fixed, so this cannot fail by chance.
    assert len(counts) == 6
    assert sum((count - 1000) ** 2 / 1000 for count in counts.values()) < 15.1
