from __future__ import annotations

import cmath
import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from deep500.core.errors import DatasetError
from deep500.datasets.augmentations.colour_jitter import ColourJitter
from tests.unit.datasets.augmentations.support import DTYPES, SHAPES, apply, make_images, uniforms


def grey(pixel: Any) -> float:
    return float(0.299 * pixel[0] + 0.587 * pixel[1] + 0.114 * pixel[2]) if len(pixel) == 3 else float(np.mean(pixel))


def turned(pixel: Any, turns: float) -> list[float]:
    """Turn a colour in YIQ, through complex numbers."""
    matrix = np.array([[0.299, 0.587, 0.114], [0.5959, -0.2746, -0.3213], [0.2115, -0.5227, 0.3112]])
    luminance, in_phase, quadrature = matrix @ pixel
    colour = complex(in_phase, quadrature) * cmath.exp(2j * math.pi * turns)
    return [float(value) for value in np.linalg.solve(matrix, [luminance, colour.real, colour.imag])]


def jittered(image: NDArray[Any], amounts: tuple[float, ...], draws: Any, limits: tuple[float, float]) -> NDArray[Any]:
    """One image, step by step."""
    bright, contrast, saturate = (1 + amount * draw for amount, draw in zip(amounts[:3], draws))
    pixels = [bright * pixel for pixel in image.astype(np.float64).reshape(len(image), -1).T]
    mean = sum(map(grey, pixels)) / len(pixels)
    pixels = [contrast * pixel + (1 - contrast) * mean for pixel in pixels]
    if len(image) == 3:
        pixels = [saturate * pixel + (1 - saturate) * grey(pixel) for pixel in pixels]
        pixels = [np.array(turned(pixel, amounts[3] * draws[3])) for pixel in pixels]
    return np.clip(np.array(pixels).T.reshape(image.shape), *limits)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [*SHAPES, (2, 5, 3, 3)])
@pytest.mark.parametrize(
    "amounts", [(0.8, 0, 0, 0), (0, 0.9, 0, 0), (0, 0, 1, 0), (0, 0, 0, 0.5), (0.4, 0.4, 0.4, 0.1), (0, 0, 0, 0)]
)
def test_each_sample_step_by_step(shape: tuple[int, ...], dtype: Any, amounts: tuple[float, ...]) -> None:
    images = make_images(shape, dtype)
    if shape[1] != 3:
        amounts = (*amounts[:2], 0, 0)

    found = apply(ColourJitter(*amounts), images)

    (draws,) = uniforms((4, shape[0]))
    assert found.dtype == dtype
    for n in range(shape[0]):
        limits = (0, 255) if dtype == np.uint8 else (0, 1)
        expected = jittered(images[n], amounts, 2 * draws[:, n] - 1, limits)
        tolerance = {"uint8": 0.501, "float16": 1e-3, "bfloat16": 4e-3, "float32": 2e-6, "float64": 1e-12}
        np.testing.assert_allclose(found[n].astype(float), expected, atol=tolerance[np.dtype(dtype).name])


def test_values_are_clipped_to_the_range_that_is_given() -> None:
    images = np.full((200, 1, 1, 1), 0.9)
    assert apply(ColourJitter(1), images).max() == 1
    assert apply(ColourJitter(1, value_range=(-2, 1.5)), images).max() == 1.5
    assert apply(ColourJitter(1, value_range=None), images).max() > 1.7


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"brightness": 2}, "brightness was given as 2"),
        ({"contrast": -1}, "contrast"),
        ({"saturation": None}, "saturation"),
        ({"hue": 0.6}, "hue was given as 0.6"),
        ({"value_range": (1, 0)}, "smaller number comes first"),
        ({"value_range": 1}, "accepted are a pair"),
    ],
)
def test_arguments_that_are_not_accepted(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(DatasetError, match=message):
        ColourJitter(**arguments)


def test_colours_of_grey_images_are_refused() -> None:
    with pytest.raises(DatasetError, match="Use saturation=0, hue=0"):
        apply(ColourJitter(hue=0.1), make_images((2, 1, 3, 3)))
