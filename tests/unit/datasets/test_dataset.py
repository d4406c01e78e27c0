from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from deep500.core.errors import DatasetError
from deep500.core.tensor_descriptor import TensorDescriptor
from deep500.datasets.dataset import Dataset, DatasetIndexError, check_index


class Squares(Dataset):
    """The least that a user writes: regression of x * x."""

    def __len__(self) -> int:
        return 5

    def __getitem__(self, index: Any) -> dict[str, np.ndarray]:
        x = np.arange(5, dtype=np.float32)[index]
        return {self.input_node: np.stack([x, x], axis=-1), "label": np.asarray(x * x)}


def test_what_is_not_stated_is_read_from_the_first_sample() -> None:
    dataset = Squares()

    assert dataset.sample_shape == (2,)
    assert dataset.dtype == "float32"
    assert dataset.classes is None
    assert dataset.loss == "MeanSquaredError"
    assert dataset.descriptors == {
        "input": TensorDescriptor("float32", ("batch", 2)),
        "label": TensorDescriptor("float32", ("batch",)),
    }


def test_iteration_ends() -> None:
    assert [float(sample["label"]) for sample in Squares()] == [0.0, 1.0, 4.0, 9.0, 16.0]


def test_classes_decide_the_loss() -> None:
    assert Squares(classes=3).loss == "SoftmaxCrossEntropyLoss"
    with pytest.raises(DatasetError, match="no labels"):
        _ = Squares(label_node=None).loss


@pytest.mark.parametrize(
    "arguments",
    [
        {"input_node": ""},
        {"input_node": None},
        {"input_node": 3},
        {"label_node": ""},
        {"input_node": "x", "label_node": "x"},
        {"classes": 0},
        {"classes": True},
        {"classes": 2.5},
    ],
)
def test_arguments_that_are_not_accepted(arguments: dict[str, Any]) -> None:
    with pytest.raises(DatasetError):
        Squares(**arguments)


@pytest.mark.parametrize("index", [5, -6, [0, 5], np.array([-6]), np.int64(7), (1, 99)])
def test_samples_that_are_not_there(index: Any) -> None:
    with pytest.raises(DatasetIndexError, match="no sample"):
        check_index(index, 5)
    with pytest.raises(IndexError):
        check_index(index, 5)


@pytest.mark.parametrize(
    "index", ["1", None, 1.0, True, [True, False], np.array([0.0]), [[1, 2]], ["a"], np.zeros((1, 1), int), {1}]
)
def test_indices_that_are_none(index: Any) -> None:
    with pytest.raises(DatasetError, match="accepted are"):
        check_index(index, 5)


def test_indices_that_are_accepted() -> None:
    assert check_index(-1, 5) == -1
    assert check_index(np.uint8(4), 5) == 4
    assert check_index(slice(1, 3), 5) == slice(1, 3)
    np.testing.assert_array_equal(check_index(range(3), 5), [0, 1, 2])
    np.testing.assert_array_equal(check_index([], 5), np.zeros(0, np.int64))
