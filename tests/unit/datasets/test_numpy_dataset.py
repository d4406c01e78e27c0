from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deep500.core.errors import DatasetError
from deep500.core.tensor_descriptor import TensorDescriptor
from deep500.datasets.numpy_dataset import NumpyDataset


def make(count: int = 6) -> NumpyDataset:
    data = np.arange(count * 4, dtype=np.float32).reshape(count, 2, 2)
    return NumpyDataset(data, "x", np.arange(count) % 3, "y", classes=3)


@st.composite
def indices(draw: st.DrawFn) -> tuple[int, Any]:
    count = draw(st.integers(1, 12))
    one = st.integers(-count, count - 1)
    several = st.lists(one, max_size=15)
    return count, draw(
        st.one_of(one, one.map(np.int64), several, several.map(lambda n: np.array(n, int)), st.slices(count))
    )


@given(indices())
def test_indexing_is_that_of_numpy(case: tuple[int, Any]) -> None:
    count, index = case
    dataset = make(count)
    expected = np.array(index, dtype=np.int64) if isinstance(index, list) else index

    sample = dataset[index]

    assert list(sample) == ["x", "y"]
    np.testing.assert_array_equal(sample["x"], dataset.data[expected])
    assert dataset.labels is not None
    np.testing.assert_array_equal(sample["y"], dataset.labels[expected])
    assert all(isinstance(value, np.ndarray) for value in sample.values())


@pytest.mark.parametrize("index", [2, slice(0, 3), [0, 1], np.array([0])])
def test_changing_what_was_read_changes_nothing(index: Any) -> None:
    dataset = make()
    before = dataset.data.copy()

    dataset[index]["x"][...] = -1

    np.testing.assert_array_equal(dataset.data, before)


def test_what_it_knows() -> None:
    dataset = make()

    assert (len(dataset), dataset.sample_shape, dataset.dtype) == (6, (2, 2), "float32")
    assert (dataset.classes, dataset.loss) == (3, "SoftmaxCrossEntropyLoss")
    assert dataset.descriptors["x"] == TensorDescriptor("float32", ("batch", 2, 2))
    assert dataset.descriptors["y"] == TensorDescriptor("int64", ("batch",))
    assert len(list(dataset)) == 6


def test_integers_become_int64_and_count_the_classes() -> None:
    dataset = NumpyDataset(np.zeros((3, 1)), labels=np.array([0, 4, 1], np.uint8))

    assert dataset.classes == 5
    assert dataset[0]["label"].dtype == np.int64


def test_floating_labels_are_targets_and_keep_their_dtype() -> None:
    dataset = NumpyDataset(np.zeros((3, 1)), labels=np.array([0.5, 1.5, 2.5], np.float32))

    assert (dataset.classes, dataset.loss) == (None, "MeanSquaredError")
    assert dataset[[0, 1]]["label"].dtype == np.float32


def test_no_labels() -> None:
    dataset = NumpyDataset([[1.0], [2.0]], "x")

    assert list(dataset[0]) == ["x"]
    assert dataset.label_node is None
    with pytest.raises(DatasetError, match="no labels"):
        _ = dataset.loss


def test_memory_map_and_bfloat16_are_kept(tmp_path: Any) -> None:
    np.save(tmp_path / "data.npy", np.ones((4, 2), np.float32))
    mapped = NumpyDataset(np.load(tmp_path / "data.npy", mmap_mode="r"), "x")
    short = NumpyDataset(np.ones((4, 2), ml_dtypes.bfloat16), "x")

    assert isinstance(mapped.data.base, np.memmap) or isinstance(mapped.data, np.memmap)
    mapped[0:2]["x"][0] = 5
    assert short.dtype == "bfloat16"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"data": []}, "no samples"),
        ({"data": np.zeros((0, 3))}, "no samples"),
        ({"data": 3.0}, "first dimension"),
        ({"data": ["a", "b"]}, "arrays of numbers"),
        ({"data": [[1], [1, 2]]}, "not an array"),
        ({"data": [1, 2], "labels": [0]}, "2 samples and 1 labels"),
        ({"data": [1, 2], "labels": [0, -1]}, "sample 1 is -1"),
        ({"data": [1, 2], "labels": [0, 3], "classes": 3}, "sample 1 is 3; with 3 classes"),
        ({"data": [1, 2], "labels": [0.0, np.nan]}, "NaN"),
        ({"data": [1, 2], "labels": [0.0, 1.0], "classes": 2}, "must be integers"),
        ({"data": [1, 2], "labels": [False, True]}, "must be integers"),
        ({"data": [1, 2], "classes": 2}, "without labels"),
        ({"data": [1, 2], "labels": [0, 1], "label_node": None}, "label_node=None"),
        ({"data": [1, 2], "labels": [0, 1], "label_node": "input"}, "cannot both"),
        ({"data": [1, 2], "labels": [0, 1], "classes": 0}, "classes"),
    ],
)
def test_arguments_that_are_not_accepted(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(DatasetError, match=message):
        NumpyDataset(**arguments)
