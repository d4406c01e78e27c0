from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import binomtest

from deep500.core.errors import DatasetError
from deep500.datasets.augmentations.horizontal_flip import HorizontalFlip
from tests.unit.datasets.augmentations.support import DTYPES, SHAPES, apply, make_images, uniforms


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_chosen_samples_are_mirrored(shape: tuple[int, ...], dtype: Any) -> None:
    images = make_images(shape, dtype)

    flipped = apply(HorizontalFlip(0.6), images)

    (draws,) = uniforms((len(images),))
    assert flipped.dtype == dtype
    for n in range(len(images)):
        expected = images[n, :, :, ::-1] if draws[n] < 0.6 else images[n]
        np.testing.assert_array_equal(flipped[n], expected)


@pytest.mark.parametrize(("probability", "flips"), [(0, 0), (1, 100)])
def test_certain_choices(probability: float, flips: int) -> None:
    images = np.arange(2.0).reshape(1, 1, 1, 2).repeat(100, axis=0)
    assert apply(HorizontalFlip(probability), images)[:, 0, 0, 0].sum() == flips


def test_how_many_are_mirrored() -> None:
    images = np.arange(2.0).reshape(1, 1, 1, 2).repeat(10_000, axis=0)
    flips = int(apply(HorizontalFlip(0.3), images)[:, 0, 0, 0].sum())
    assert binomtest(flips, 10_000, 0.3).pvalue > 1e-6  # the probability that a right law fails


@pytest.mark.parametrize("probability", [-0.1, 1.1, "half", None, True, float("nan")])
def test_probabilities_that_are_not_accepted(probability: Any) -> None:
    with pytest.raises(DatasetError, match="probability was given as"):
        HorizontalFlip(probability)
