from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from deep500.core.errors import TrainingError
from deep500.training.accuracy import count_correct

NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("scores", "label", "right"),
    [
        ([0.1, 0.9, 0.0], 1, 1),
        ([0.1, 0.9, 0.0], 0, 0),
        ([0.5, 0.5, 0.0], 0, 0),  # ties
        ([0.5, 0.5, 0.0], 1, 0),
        ([0.0, 0.0, 0.0], 2, 0),
        ([NAN, 0.9, 0.0], 1, 0),  # NaN anywhere
        ([0.1, NAN, 0.0], 1, 0),
        ([NAN, NAN, NAN], 0, 0),
        ([0.1, INF, -INF], 1, 1),
        ([INF, INF, 0.0], 0, 0),
        ([-INF, -INF, -INF], 0, 0),
        ([-INF, -INF, 0.0], 2, 1),
    ],
)
def test_ties_and_nan_are_wrong(scores: list[float], label: int, right: int) -> None:
    assert count_correct(np.array([scores], np.float32), np.array([label])) == (right, 1)


@given(st.data())
def test_agrees_with_argmax_where_there_is_no_tie(data: st.DataObject) -> None:
    count = data.draw(st.integers(1, 8))
    scores = np.array([data.draw(st.permutations(range(5))) for _ in range(count)], np.float64)
    labels = data.draw(arrays(np.int64, count, elements=st.integers(0, 4)))
    before = scores.copy()

    assert count_correct(scores, labels) == (int((scores.argmax(axis=1) == labels).sum()), count)
    np.testing.assert_array_equal(scores, before)


def test_one_label_a_pixel() -> None:
    scores = np.zeros((2, 3, 4), np.float32)
    labels = np.array([[0, 1, 2, 0], [1, 1, 1, 1]])
    np.put_along_axis(scores, labels[:, None], 1.0, axis=1)
    labels[1, 3] = 2

    assert count_correct(scores, labels) == (7, 8)


@pytest.mark.parametrize("dtype", ["float16", "float64", ml_dtypes.bfloat16, "int32"])
def test_other_dtypes(dtype: Any) -> None:
    assert count_correct(np.array([[0, 2], [3, 1]]).astype(dtype), np.array([1, 1], np.uint8)) == (1, 2)


def test_float64_is_not_rounded() -> None:
    assert count_correct(np.array([[1.0, 1.0 + 1e-12]]), np.array([1])) == (1, 1)


@pytest.mark.parametrize(
    ("scores", "labels", "message"),
    [
        (np.zeros((2, 3)), np.zeros(2), "integer labels"),
        (np.zeros((2, 3)), np.zeros(3, int), "shape"),
        (np.zeros((2, 3)), np.zeros((2, 3), int), "shape"),
        (np.zeros(2), np.zeros(2, int), "network_output"),
        (np.zeros((2, 3)), np.array([0, 3]), "A label is 3; with 3 scores"),
        (np.zeros((2, 3)), np.array([0, -1]), "A label is -1"),
    ],
)
def test_what_does_not_fit(scores: Any, labels: Any, message: str) -> None:
    with pytest.raises(TrainingError, match=message):
        count_correct(scores, labels)


def test_largest_probability_is_the_class() -> None:
    scores = np.array([[0.1, 0.9, 0.0], [0.5, 0.2, 0.1], [0.0, 0.0, 1.0]], np.float32)
    labels = np.array([[0.3, 0.7, 0.0], [0.4, 0.0, 0.6], [0.0, 0.0, 1.0]], np.float32)

    assert count_correct(scores, labels) == (2, 3)
    assert count_correct(scores, labels.astype(ml_dtypes.bfloat16)) == (2, 3)


def test_probabilities_that_are_nan() -> None:
    with pytest.raises(TrainingError, match="A label is NaN"):
        count_correct(np.zeros((1, 2)), np.array([[np.nan, 1.0]]))
