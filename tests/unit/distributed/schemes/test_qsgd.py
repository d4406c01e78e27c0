"""QSGD is unbiased and within its bound; a biased rounding is found."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

from deep500.core.random import random_stream
from deep500.distributed.schemes.qsgd import QSGD

#: The probability that the statistical test fails although the rounding is unbiased.
ERROR = 1e-6

DRAWS = 40_000


def check_unbiased(scheme: QSGD, values: np.ndarray) -> None:
    """The mean of many roundings is each value, and their error within the bound.

    The test of an element is Bernstein's inequality, which holds for any number of draws, with the variance that the
    published formula has; Bonferroni over the elements.
    """
    assert values.size % scheme.block == 0
    parts = scheme.encode(np.tile(values, DRAWS), random_stream(3, "draws"))
    draws = scheme.decode(*parts).reshape(DRAWS, values.size)
    norms = np.repeat(np.linalg.norm(values.reshape(-1, scheme.block), axis=1), scheme.block)
    gap = norms / scheme.levels
    fraction = np.abs(values) / gap % 1
    variance, likely = gap**2 * fraction * (1 - fraction), math.log(2 * values.size / ERROR)
    shift = gap * likely / (3 * DRAWS)
    limit = shift + np.sqrt(shift**2 + 2 * variance * likely / DRAWS)
    away = np.abs(draws.mean(axis=0) - values)
    assert (away <= limit).all(), f"biased by {float((away - limit).max()):.1e}"
    errors = ((draws - values) ** 2).sum(axis=1)
    n, s = scheme.block, scheme.levels
    bound = min(n / s**2, math.sqrt(n) / s) * float(values @ values)
    assert errors.mean() - norm.isf(ERROR) * errors.std() / math.sqrt(DRAWS) <= bound


@pytest.mark.parametrize("levels", [1, 4, 127])
def test_qsgd_is_unbiased_and_within_its_bound(levels: int) -> None:
    values = np.random.default_rng(1).normal(size=48) * np.logspace(-2, 1, 48)
    values[[3, 30]] = 0.0
    check_unbiased(QSGD(levels, 16), values)


class ToNearest(QSGD):
    """Rounds as usual: small values always vanish."""

    def encode(self, values: np.ndarray, stream: np.random.Generator) -> Any:
        norms, _ = super().encode(values, stream)
        share = np.abs(values) / np.repeat(norms, self.block)[: values.size]
        return norms, np.copysign(np.rint(share * self.levels), values).astype(np.int8)


class Shrunk(QSGD):
    """Returns two percent too little."""

    def decode(self, norms: np.ndarray, levels: np.ndarray) -> np.ndarray:
        return 0.98 * super().decode(norms, levels)


@pytest.mark.parametrize("bug", [ToNearest, Shrunk])
def test_a_biased_rounding_is_found(bug: type[QSGD]) -> None:
    with pytest.raises(AssertionError, match="biased by"):
        check_unbiased(bug(4, 16), np.random.default_rng(1).normal(size=48))


@pytest.mark.parametrize("scale", [0.0, 1e-300, 1e300])
def test_qsgd_neither_overflows_nor_divides_by_zero(scale: float) -> None:
    scheme, values = QSGD(127, 8), np.linspace(-1, 1, 21) * scale
    with np.errstate(all="raise", under="ignore"):
        found = scheme.decode(*scheme.encode(values, random_stream(0, "x")))
    assert np.abs(found - values).max() <= scale * math.sqrt(8) / 127
