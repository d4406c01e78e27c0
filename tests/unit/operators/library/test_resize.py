"""Edge cases of Resize; values and derivatives are in the conformance suite."""

from __future__ import annotations

import numpy as np
import pytest

from deep500.core.errors import OperatorError
from deep500.operators.library.resize import Resize


def resized(x: np.ndarray, size: int, **attributes: object) -> list:
    return Resize(**attributes)(x, None, None, np.array([size])).tolist()


@pytest.mark.parametrize("dtype", [np.int64, np.bool_, np.str_, np.uint8])
def test_nearest_takes_any_dtype(dtype: type) -> None:
    x = np.array([0, 1], dtype)

    y = Resize()(x, None, np.array([2.0], np.float32))

    assert y.dtype == x.dtype
    assert y.tolist() == [x[0], x[0], x[1], x[1]]


def test_large_integers_stay_exact() -> None:
    assert resized(np.array([2**63 - 1, 5]), 4) == [2**63 - 1, 2**63 - 1, 5, 5]


@pytest.mark.parametrize(("dtype", "low", "high"), [(np.uint8, 0, 255), (np.int8, -128, 127), (np.int64, None, None)])
def test_integers_are_rounded_and_limited(dtype: type, low: int | None, high: int | None) -> None:
    limits = np.iinfo(dtype)
    x = np.array([limits.min, limits.max, limits.max, limits.min], dtype)

    y = resized(x, 9, mode="cubic", coordinate_transformation_mode="align_corners")

    assert (min(y), max(y)) == (limits.min, limits.max)
    assert low is None or (min(y), max(y)) == (low, high)


def test_infinite_elements_without_weight_do_not_count() -> None:
    x = np.array([np.inf, 1.0, 2.0])

    y = resized(x, 5, mode="linear", coordinate_transformation_mode="align_corners")

    assert y == [np.inf, np.inf, 1.0, 1.5, 2.0]


def test_the_only_element_of_an_axis() -> None:
    x = np.array([1.0, 2.0, 4.0])

    assert resized(x, 1, mode="cubic", coordinate_transformation_mode="pytorch_half_pixel") == [1.0]
    assert resized(x, 1, mode="linear", coordinate_transformation_mode="align_corners") == [1.0]
    assert resized(x, 1, mode="linear") == [2.0]


def test_positions_outside_of_a_crop() -> None:
    crop = Resize(mode="linear", coordinate_transformation_mode="tf_crop_and_resize", extrapolation_value=9.0)
    inputs = [np.array([1.0, 3.0]), np.array([-1.0, 2.0], np.float32), None, np.array([4])]
    outputs = crop.forward(inputs)

    assert outputs[0].tolist() == [9.0, 1.0, 3.0, 9.0]
    assert crop.backward([np.ones(4)], inputs, outputs)[0].tolist() == [1.0, 1.0]


def test_nothing_changes_without_axes_to_change() -> None:
    x = np.arange(6.0).reshape(2, 3)

    y = Resize(axes=[-1], mode="cubic")(x, None, np.ones(1, np.float32))

    np.testing.assert_array_equal(y, x)
    assert not np.shares_memory(y, x)


def test_empty_tensors() -> None:
    x = np.zeros((0, 3), np.float32)
    outputs = Resize(axes=[1], mode="linear").forward([x, None, None, np.array([5])])

    assert outputs[0].shape == (0, 5)
    by_x = Resize(axes=[1], mode="linear").backward(outputs, [x, None, None, np.array([5])], outputs)[0]
    assert by_x.shape == (0, 3)
    assert Resize(mode="linear")(np.ones(3), None, None, np.array([0])).shape == (0,)


@pytest.mark.parametrize(
    ("attributes", "inputs", "message"),
    [
        ({}, [np.ones(2)], "received neither of scales and sizes"),
        ({}, [np.ones(2), None, np.ones(1, np.float32), np.array([1])], "received both"),
        ({}, [np.ones(2), None, np.ones(2, np.float32)], r"received scales of shape \(2,\); accepted is \(1,\)"),
        ({}, [np.ones(2), None, np.zeros(1, np.float32)], "scales above 0"),
        ({}, [np.ones(0), None, None, np.array([1])], "0 for an empty axis"),
        ({"axes": [1]}, [np.ones(2), None, None, np.array([1])], "an entry of axes is 1"),
        ({"mode": "linear"}, [np.array(["a"]), None, None, np.array([1])], "accepted are float16"),
        (
            {"coordinate_transformation_mode": "tf_crop_and_resize"},
            [np.ones(2), None, None, np.array([1])],
            r"received roi of shape None; tf_crop_and_resize accepts \(2,\)",
        ),
    ],
)
def test_refusals(attributes: dict, inputs: list, message: str) -> None:
    with pytest.raises(OperatorError, match=message):
        Resize(**attributes).forward(inputs)
