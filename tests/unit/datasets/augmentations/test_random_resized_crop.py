from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import kstest

from deep500.core.errors import DatasetError
from deep500.datasets.augmentations.random_resized_crop import RandomResizedCrop
from tests.unit.datasets.augmentations.support import DTYPES, SHAPES, apply, make_images, stream, uniforms
from tests.unit.datasets.augmentations.test_resize import TOLERANCES, resized


def windows(shape: tuple[int, ...], scale: tuple[float, float], ratio: tuple[float, float]) -> list[tuple[int, ...]]:
    """The windows that the definition gives, one image after the other."""
    count, _, height, width = shape
    areas, shapes, places = uniforms((count, 10), (count, 10), (2, count))
    found = []
    for n in range(count):
        for area, form in zip(areas[n], shapes[n]):
            pixels = height * width * (scale[0] + (scale[1] - scale[0]) * area)
            aspect = math.exp(math.log(ratio[0]) + (math.log(ratio[1]) - math.log(ratio[0])) * form)
            wide, high = round(math.sqrt(pixels * aspect)), round(math.sqrt(pixels / aspect))
            if 1 <= wide <= width and 1 <= high <= height:
                top, left = int(places[0, n] * (height - high + 1)), int(places[1, n] * (width - wide + 1))
                break
        else:
            high, wide = height, width
            if width / height < ratio[0]:
                high = max(1, round(width / ratio[0]))
            elif width / height > ratio[1]:
                wide = max(1, round(height * ratio[1]))
            top, left = (height - high) // 2, (width - wide) // 2
        found.append((top, left, high, wide))
    return found


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [*SHAPES, (3, 3, 2, 40), (3, 3, 40, 2)])
@pytest.mark.parametrize(("interpolation", "antialias"), [("bilinear", True), ("bilinear", False), ("nearest", True)])
def test_each_sample_is_its_window_resized(
    shape: tuple[int, ...], dtype: Any, interpolation: str, antialias: bool
) -> None:
    images = make_images(shape, dtype)
    scale, ratio = (0.2, 0.9), (0.5, 2.0)

    found = apply(RandomResizedCrop((4, 5), scale, ratio, interpolation, antialias), images)

    assert found.dtype == dtype
    assert found.shape == (*shape[:2], 4, 5)
    for n, (top, left, high, wide) in enumerate(windows(shape, scale, ratio)):
        window = images[n, :, top : top + high, left : left + wide]
        expected = resized(window, (4, 5), interpolation, antialias)
        if dtype == np.uint8:
            assert np.abs(found[n] - expected).max() <= 0.5 + 1e-4
        else:
            np.testing.assert_allclose(found[n].astype(float), expected, atol=TOLERANCES[np.dtype(dtype).name])


def test_areas_are_drawn_evenly() -> None:
    augmentation = RandomResizedCrop(8, (0.2, 0.4))
    augmentation.set_random_stream(stream())
    _, _, heights, widths = augmentation.windows(5000, 400, 400)
    # Rounding to pixels moves areas by less than one part in 200.
    assert kstest(heights * widths / 400**2, "uniform", (0.2, 0.2)).pvalue > 1e-6
    logarithms = np.log(widths / heights)
    assert kstest(logarithms, "uniform", (math.log(3 / 4), 2 * math.log(4 / 3))).pvalue > 1e-6


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"size": (0, 1)}, "size"),
        ({"size": 2, "scale": (0, 1)}, "above 0"),
        ({"size": 2, "scale": (0.5, 1.5)}, "from 0 to 1"),
        ({"size": 2, "ratio": (2, 1)}, "smaller number first"),
        ({"size": 2, "ratio": 1}, "accepted is a pair"),
        ({"size": 2, "interpolation": None}, "interpolation"),
    ],
)
def test_arguments_that_are_not_accepted(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(DatasetError, match=message):
        RandomResizedCrop(**arguments)
