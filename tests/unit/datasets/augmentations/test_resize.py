from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from deep500.core.errors import DatasetError
from deep500.datasets.augmentations.resize import Resize
from tests.unit.datasets.augmentations.support import DTYPES, SHAPES, apply, make_images

TOLERANCES = {"float16": 2e-3, "bfloat16": 1e-2, "float32": 1e-5, "float64": 1e-12}


def weights_of(source: int, target: int, place: int, interpolation: str, antialias: bool) -> dict[int, float]:
    """Weights of the source's pixels in one pixel of the target, from the definition."""
    scale = source / target
    centre = (place + 0.5) * scale
    if interpolation == "nearest":
        return {int(centre): 1.0}
    width = max(scale, 1.0) if antialias else 1.0
    weights = {j: max(0.0, 1 - abs(j + 0.5 - centre) / width) for j in range(source)}
    return {j: weight / sum(weights.values()) for j, weight in weights.items() if weight}


def resized(image: NDArray[Any], size: tuple[int, int], interpolation: str, antialias: bool) -> NDArray[Any]:
    result = np.zeros((len(image), *size))
    for y in range(size[0]):
        rows = weights_of(image.shape[1], size[0], y, interpolation, antialias)
        for x in range(size[1]):
            columns = weights_of(image.shape[2], size[1], x, interpolation, antialias)
            for j, down in rows.items():
                for i, across in columns.items():
                    result[:, y, x] += down * across * image[:, j, i].astype(np.float64)
    return result


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("interpolation", "antialias"), [("bilinear", True), ("bilinear", False), ("nearest", True)])
def test_each_sample_is_what_the_definition_says(
    shape: tuple[int, ...], dtype: Any, interpolation: str, antialias: bool
) -> None:
    images = make_images(shape, dtype)
    for size in ((3, 13), (7, 2)):
        found = apply(Resize(size, interpolation, antialias), images)
        assert found.dtype == dtype
        assert found.shape == (*shape[:2], *size)
        for n in range(len(images)):
            expected = resized(images[n], size, interpolation, antialias)
            if dtype == np.uint8:
                # Half-way cases may be rounded either way, as sums are not exact.
                assert np.abs(found[n] - expected).max() <= 0.5 + 1e-4
            else:
                tolerance = TOLERANCES[np.dtype(dtype).name]
                np.testing.assert_allclose(found[n].astype(np.float64), expected, atol=tolerance)


def test_same_size_changes_nothing() -> None:
    images = make_images((2, 3, 5, 6), np.uint8)
    np.testing.assert_array_equal(apply(Resize((5, 6)), images), images)


@pytest.mark.parametrize("size", [(5, 6), (31, 17), (40, 9)])
def test_within_a_step_of_pillow(size: tuple[int, int]) -> None:
    from PIL import Image

    image = make_images((1, 3, 24, 20), np.uint8)
    pillow = Image.fromarray(image[0].transpose(1, 2, 0)).resize(size[::-1], Image.Resampling.BILINEAR)
    difference = np.asarray(pillow).astype(int).transpose(2, 0, 1) - apply(Resize(size), image)[0]
    assert np.abs(difference).max() <= 1  # Pillow rounds after each direction


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"size": 2.5}, "size was given as 2.5"),
        ({"size": 2, "interpolation": "cubic"}, "accepted are bilinear, nearest"),
        ({"size": 2, "antialias": 1}, "antialias was given as 1"),
    ],
)
def test_arguments_that_are_not_accepted(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(DatasetError, match=message):
        Resize(**arguments)
