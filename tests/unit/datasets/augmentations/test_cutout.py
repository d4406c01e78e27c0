from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from deep500.core.errors import DatasetError
from deep500.datasets.augmentations.cutout import Cutout
from tests.unit.datasets.augmentations.support import DTYPES, SHAPES, apply, make_images, uniforms


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("size", [(1, 1), (2, 3), (50, 50)])
def test_each_sample_loses_its_rectangle(shape: tuple[int, ...], dtype: Any, size: tuple[int, int]) -> None:
    images = make_images(shape, dtype)
    count, channels, height, width = shape

    cut = apply(Cutout(size, value=1), images)

    rows, columns = uniforms((count,), (count,))
    assert cut.dtype == dtype
    for n in range(count):
        top = int(rows[n] * height) - size[0] // 2
        left = int(columns[n] * width) - size[1] // 2
        for y in range(height):
            for x in range(width):
                inside = top <= y < top + size[0] and left <= x < left + size[1]
                expected = np.ones(channels, dtype) if inside else images[n, :, y, x]
                np.testing.assert_array_equal(cut[n, :, y, x], expected)


def test_arguments_that_are_not_accepted() -> None:
    with pytest.raises(DatasetError, match="size was given as 0"):
        Cutout(0)
    with pytest.raises(DatasetError, match="value was given as 'black'"):
        Cutout(3, "black")  # type: ignore[arg-type]
