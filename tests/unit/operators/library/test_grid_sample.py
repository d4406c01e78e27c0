"""Edge cases of GridSample and AffineGrid; values and derivatives are in the conformance suite."""

from __future__ import annotations

import numpy as np
import pytest

from deep500.core.errors import OperatorError
from deep500.operators.library.affine_grid import AffineGrid
from deep500.operators.library.grid_sample import GridSample

SIGNAL = np.array([[[1.0, 2.0, 4.0]]])


def positions(*pixels: float) -> np.ndarray:
    """Return the grid of pixels of three, with corners aligned."""
    return np.array(pixels).reshape(1, -1, 1) - 1


@pytest.mark.parametrize(
    ("padding", "expected"),
    [("zeros", [0.0, 1.5, 0.0, 0.5]), ("border", [1.0, 1.5, 4.0, 1.0]), ("reflection", [4.0, 1.5, 2.0, 1.5])],
)
def test_what_lies_outside(padding: str, expected: list[float]) -> None:
    y = GridSample(padding_mode=padding, align_corners=1)(SIGNAL, positions(-2.0, 0.5, 5.0, -0.5))

    assert y.ravel().tolist() == expected


@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["linear", "nearest", "cubic"])
def test_positions_that_are_no_numbers(padding: str, mode: str) -> None:
    y = GridSample(mode=mode, padding_mode=padding)(SIGNAL, positions(np.nan, np.inf, 1.0))

    assert y.shape == (1, 1, 3)
    assert y.ravel()[2] == 2


@pytest.mark.parametrize("padding", ["border", "reflection"])
def test_an_axis_of_one_pixel(padding: str) -> None:
    sample, inputs = GridSample(padding_mode=padding, align_corners=1), [SIGNAL[:, :, :1], positions(-3.0, 0.0, 7.0)]
    outputs = sample.forward(inputs)

    assert outputs[0].ravel().tolist() == [1.0] * 3
    by_x, by_grid = sample.backward([np.ones((1, 1, 3))], inputs, outputs)
    assert by_x.ravel().tolist() == [3.0]
    assert not by_grid.any()


def test_integers_are_rounded_towards_zero_and_have_no_gradient() -> None:
    sample, inputs = GridSample(align_corners=1), [SIGNAL.astype(np.int32), positions(0.5, 1.9)]
    (y,) = sample.forward(inputs)

    assert y.dtype == np.int32
    assert y.ravel().tolist() == [1, 3]
    assert sample.backward([y], inputs, (y,)) == (None, None)
    assert GridSample(mode="nearest")(SIGNAL > 1, positions(1.0)).tolist() == [[[True]]]


def test_empty_grid() -> None:
    inputs = [SIGNAL, np.zeros((1, 0, 1))]
    (y,) = GridSample().forward(inputs)

    assert y.shape == (1, 1, 0)
    assert [g.shape for g in GridSample().backward([y], inputs, (y,))] == [(1, 1, 3), (1, 0, 1)]


@pytest.mark.parametrize("align_corners", [0, 1])
def test_the_identity_of_a_grid_gives_the_image(align_corners: int) -> None:
    image = np.random.default_rng(0).standard_normal((2, 3, 4, 5))
    theta = np.broadcast_to(np.eye(2, 3), (2, 2, 3))

    grid = AffineGrid(align_corners=align_corners)(theta, np.array(image.shape))

    np.testing.assert_allclose(GridSample(align_corners=align_corners)(image, grid), image, atol=1e-12)


def test_a_grid_of_one_pixel_and_of_none() -> None:
    theta = np.eye(2, 3)[None]

    assert AffineGrid(align_corners=1)(theta, np.array([1, 1, 1, 1])).ravel().tolist() == [-1.0, -1.0]
    assert AffineGrid()(theta, np.array([1, 1, 0, 2])).shape == (1, 0, 2, 2)


def test_refusals() -> None:
    with pytest.raises(OperatorError, match=r"\[N, o1, ..., or, r\]"):
        GridSample().forward([SIGNAL, np.zeros((1, 2, 2))])
    with pytest.raises(OperatorError, match="without empty spatial axes"):
        GridSample().forward([SIGNAL[:, :, :0], np.zeros((1, 2, 1))])
    with pytest.raises(OperatorError, match="received grid of int64"):
        GridSample().forward([SIGNAL, np.zeros((1, 2, 1), np.int64)])
    with pytest.raises(OperatorError, match="one of linear, nearest, cubic"):
        GridSample(mode="bilinear")
    with pytest.raises(OperatorError, match=r"accepted are \[N, 2, 3\]"):
        AffineGrid().forward([np.ones((1, 2, 3)), np.array([1, 1, 2, 2, 2])])
