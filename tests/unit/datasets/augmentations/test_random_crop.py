from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import chisquare

from deep500.core.errors import DatasetError
from deep500.datasets.augmentations.random_crop import RandomCrop
from tests.unit.datasets.augmentations.support import DTYPES, SHAPES, apply, make_images, uniforms


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("mode", ["constant", "edge"])
def test_each_sample_is_its_own_window(shape: tuple[int, ...], dtype: Any, mode: str) -> None:
    images = make_images(shape, dtype)
    count, channels, height, width = shape
    size = (height, width + 1)

    cropped = apply(RandomCrop(size, (2, 3), mode, value=1), images)

    rows, columns = uniforms((count,), (count,))
    assert cropped.dtype == dtype
    assert cropped.shape == (count, channels, *size)
    for n in range(count):
        top, left = int(rows[n] * 5) - 2, int(columns[n] * 6) - 3
        for y in range(size[0]):
            for x in range(size[1]):
                down, across = y + top, x + left
                inside = 0 <= down < height and 0 <= across < width
                nearest = images[n, :, min(max(down, 0), height - 1), min(max(across, 0), width - 1)]
                expected = nearest if inside or mode == "edge" else np.ones(channels, dtype)
                np.testing.assert_array_equal(cropped[n, :, y, x], expected)


def test_reflection_does_not_repeat_the_edge() -> None:
    images = np.arange(3.0).reshape(1, 1, 1, 3).repeat(3, axis=2)
    assert apply(RandomCrop((3, 7), (0, 2), "reflect"), images).tolist() == [[[[2, 1, 0, 1, 2, 1, 0]] * 3]]


def test_each_place_is_as_likely() -> None:
    images = np.arange(16.0).reshape(1, 1, 4, 4).repeat(9000, axis=0)
    places = apply(RandomCrop(2), images)[:, 0, 0, 0].astype(int)
    counts = np.bincount(places, minlength=16)
    seen = counts[[0, 1, 2, 4, 5, 6, 8, 9, 10]]

    assert seen.sum() == 9000
    assert chisquare(seen).pvalue > 1e-6  # the probability that a right law fails


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"size": 0}, "size was given as 0"),
        ({"size": (4, 4, 4)}, "pair"),
        ({"size": 4, "padding": -1}, "padding was given as -1"),
        ({"size": 4, "mode": "wrap"}, "accepted are constant, edge, reflect"),
        ({"size": 4, "value": float("nan")}, "value was given as nan"),
    ],
)
def test_arguments_that_are_not_accepted(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(DatasetError, match=message):
        RandomCrop(**arguments)


def test_window_larger_than_the_image_is_refused() -> None:
    with pytest.raises(DatasetError, match="padded to 6 x 6, have no window of 7 x 7"):
        apply(RandomCrop(7, padding=1), make_images((2, 3, 4, 4)))
