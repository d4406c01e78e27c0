from __future__ import annotations

import numpy as np
from scipy.stats import chisquare, kstest

from deep500.core.random import random_stream
from deep500.datasets.draws import uniform, whole_numbers


def test_numbers_are_the_raw_bits_and_even() -> None:
    raw = random_stream(0, "test").bit_generator.random_raw(6)
    numbers = uniform(random_stream(0, "test"), 2, 3)
    assert numbers.tolist() == [[(int(r) >> 11) / 2**53 for r in row] for row in raw.reshape(2, 3)]
    assert kstest(uniform(random_stream(1, "test"), 20_000), "uniform").pvalue > 1e-6


def test_whole_numbers_are_even() -> None:
    numbers = whole_numbers(random_stream(0, "test"), 7, 7000)
    assert numbers.dtype == np.int64
    assert chisquare(np.bincount(numbers, minlength=7)).pvalue > 1e-6
    assert whole_numbers(random_stream(0, "test"), 7, 0).shape == (0,)
