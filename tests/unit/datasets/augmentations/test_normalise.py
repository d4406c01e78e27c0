from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from deep500.core.errors import DatasetError
from deep500.datasets.augmentations.normalise import Normalise
from tests.unit.datasets.augmentations.support import DTYPES, SHAPES, apply, make_images

MEAN, DEVIATION = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [shape for shape in SHAPES if shape[1] == 3])
def test_each_channel_has_its_statistics(shape: tuple[int, ...], dtype: Any) -> None:
    images = make_images(shape, dtype)

    found = apply(Normalise(MEAN, DEVIATION), images)

    result = np.dtype(np.float32 if dtype == np.uint8 else dtype)
    assert found.dtype == result
    scaled = images.astype(np.float64) / (255 if dtype == np.uint8 else 1)
    for n in range(len(images)):
        for channel in range(3):
            expected = (scaled[n, channel] - MEAN[channel]) / DEVIATION[channel]
            tolerance = {"float64": 1e-14, "float32": 1e-6, "float16": 4e-3, "bfloat16": 2e-2}[result.name]
            np.testing.assert_allclose(found[n, channel].astype(np.float64), expected, atol=tolerance)


@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_float32_is_computed_as_said(dtype: Any) -> None:
    images = make_images((2, 1, 4, 4), dtype)
    found = apply(Normalise(0.3, 0.6, scale=0.01), images)
    expected = images.astype(np.float32) * np.float32(0.01 / 0.6) - np.float32(0.3 / 0.6)
    np.testing.assert_array_equal(found, expected)


def test_one_number_for_all_channels() -> None:
    images = make_images((2, 3, 4, 4), np.float64)
    np.testing.assert_allclose(apply(Normalise(0.5, [2, 2, 2]), images), (images - 0.5) / 2, atol=1e-15)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, 0), "standard_deviation was given as 0"),
        ((0, [1, -1]), "above 0"),
        (([], 1), "one for each channel"),
        (("grey", 1), "mean was given as 'grey'"),
        (([1, 2], [1, 2, 3]), "mean has 2 channels and standard_deviation 3"),
        ((0, 1, "auto"), "scale was given as 'auto'"),
    ],
)
def test_arguments_that_are_not_accepted(arguments: Any, message: str) -> None:
    with pytest.raises(DatasetError, match=message):
        Normalise(*arguments)


def test_other_number_of_channels_is_refused() -> None:
    with pytest.raises(DatasetError, match="statistics of 3 channels; the images have 1"):
        apply(Normalise(MEAN, DEVIATION), make_images((2, 1, 4, 4)))
