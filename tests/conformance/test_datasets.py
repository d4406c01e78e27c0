"""The contract of data sets, for each one that is registered and each way in which its files may lie."""

from __future__ import annotations

import inspect
import multiprocessing
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from deep500.core.errors import DatasetError
from deep500.datasets.dataset import Dataset, DatasetIndexError
from deep500.datasets.file_list_dataset import FileListDataset
from deep500.datasets.loading import DATASETS, load_dataset
from deep500.datasets.numpy_dataset import NumpyDataset
from tests import dataset_files as files

#: Other layouts and arguments; each is checked like the usual one.
VARIANTS: dict[str, tuple[str, Callable[[Path], Path] | None, dict[str, Any]]] = {
    "cifar10-python": ("cifar10", lambda f: files.write_cifar10(f, version="python"), {"verify": False}),
    "cifar10-archive": ("cifar10", lambda f: files.write_cifar10(f, archive=True), {"verify": False}),
    "cifar100-python-archive": (
        "cifar100",
        lambda f: files.write_cifar100(f, version="python", archive=True),
        {"verify": False, "labels": "coarse"},
    ),
    "mnist-raw": ("mnist", lambda f: files.write_mnist(f, compressed=False), {"verify": False}),
    "imagenet-flat": ("imagenet", lambda f: files.write_imagenet_folder(f, flat=True), {"size": 32, "fit": "stretch"}),
    "imagenet-shards": ("imagenet", files.write_imagenet_shards, {"size": 32, "classes": 3}),
    "imagenet-bytes": ("imagenet", files.write_imagenet_folder, {"size": 24, "resize": 32, "dtype": "uint8"}),
    "synthetic-regression": ("synthetic", None, {"shape": 9, "classes": None, "samples": 40, "dtype": "float64"}),
    "text-characters": ("text", None, {"context": 8, "level": "character", "stride": 3}),
    "diabetes-standardised": ("diabetes", None, {"standardize_labels": True}),
}

CASES = [*DATASETS.names(), *VARIANTS, "numpy_dataset-mapped", "file_list_dataset", "file_list_dataset-arrays"]


def _own_kind(name: str, folder: Path) -> tuple[Dataset, Dataset]:
    folder.mkdir(parents=True, exist_ok=True)
    labels = np.arange(12) % 4
    if name == "numpy_dataset-mapped":
        np.save(folder / "data.npy", np.random.default_rng(0).random((12, 3, 4), np.float32))
        whole = np.load(folder / "data.npy", mmap_mode="r")
        return NumpyDataset(whole[3:], labels=labels[3:]), NumpyDataset(whole[1::2], labels=labels[1::2])
    names = []
    for number, label in enumerate(labels):
        picture = files.photograph(int(label), number)
        if name == "file_list_dataset":
            names.append(f"{number}.jpg")
            (folder / names[-1]).write_bytes(files.jpeg(picture))
        else:
            names.append(f"{number}.npy")
            np.save(folder / names[-1], picture.astype(np.float16))
    made = [FileListDataset(names[part], labels=labels[part], folder=folder) for part in (slice(8), slice(8, None))]
    return made[0], made[1]


def load(case: str, folder: Path) -> tuple[Dataset, Dataset]:
    if case not in VARIANTS and case not in DATASETS:
        return _own_kind(case, folder)
    if case in VARIANTS:
        name, write, arguments = VARIANTS[case]
        return load_dataset(name, **arguments, **({} if write is None else {"folder": write(folder)}))
    assert case in files.DATASETS, f"tests/dataset_files.py has no entry for the data set {case!r}"
    return load_dataset(case, **files.arguments_for(case, folder))


@pytest.fixture(params=CASES)
def parts(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Dataset, Dataset]:
    return load(request.param, tmp_path)


def same(first: dict[str, Any], second: dict[str, Any]) -> bool:
    return list(first) == list(second) and all(
        np.asarray(first[n]).dtype == np.asarray(second[n]).dtype and np.array_equal(first[n], second[n]) for n in first
    )


def test_indexing(parts: tuple[Dataset, Dataset]) -> None:
    for dataset in parts:
        count = len(dataset)
        assert count >= 2
        numbers = [0, count - 1, 1, 1, count // 2]
        batch = dataset[numbers]
        for place, number in enumerate(numbers):
            for index in (number, np.int64(number), number - count):
                one = dataset[index]
                assert all(isinstance(value, np.ndarray) for value in one.values())
                assert same(one, {name: values[place] for name, values in batch.items()})
        assert same(dataset[np.array(numbers)], batch)
        assert same(dataset[np.array(numbers) - count], batch)
        assert same(dataset[:2], dataset[[0, 1]])
        assert same(dataset[-1:-3:-1], dataset[[count - 1, count - 2]])
        for empty in (dataset[[]], dataset[count:]):
            assert all(len(value) == 0 and value.shape[1:] == batch[name].shape[1:] for name, value in empty.items())


@pytest.mark.parametrize("index", [10**9, -(10**9), [0, 10**9], "0", 1.0, None, np.array([[0]]), np.array([True])])
def test_no_such_sample(index: Any, parts: tuple[Dataset, Dataset]) -> None:
    with pytest.raises(DatasetError) as caught:
        parts[0][index]

    assert isinstance(caught.value, DatasetIndexError) == ("1000000000" in str(caught.value))


def test_what_is_read_is_a_copy(parts: tuple[Dataset, Dataset]) -> None:
    for index in (0, slice(0, 2), [0, 1]):
        before = parts[0][index]
        read = parts[0][index]
        for value in read.values():
            assert value.flags.writeable
            value[...] = 0
        assert same(parts[0][index], before)


def test_what_is_said_of_the_samples_is_true(parts: tuple[Dataset, Dataset]) -> None:
    for dataset in parts:
        batch = dataset[:2]
        one = dataset[0]
        assert list(batch) == [dataset.input_node, dataset.label_node] == ["input", "label"]
        assert one["input"].shape == dataset.sample_shape
        assert one["input"].dtype.name == dataset.dtype
        for name, descriptor in dataset.descriptors.items():
            assert descriptor.shape == ("batch", *batch[name].shape[1:])
            assert descriptor.dtype == batch[name].dtype.name
    assert parts[0].descriptors == parts[1].descriptors
    assert parts[0].classes == parts[1].classes


def test_labels_are_in_range_and_fit_the_loss(parts: tuple[Dataset, Dataset]) -> None:
    for dataset in parts:
        labels = dataset[: min(len(dataset), 300)]["label"]
        if dataset.classes is None:
            assert labels.dtype.kind == "f"
            assert np.isfinite(labels).all()
            assert dataset.loss == "MeanSquaredError"
        else:
            assert labels.dtype == np.int64
            assert 0 <= labels.min() <= labels.max() < dataset.classes
            assert dataset.loss == "SoftmaxCrossEntropyLoss"


def test_samples_are_finite_and_differ(parts: tuple[Dataset, Dataset]) -> None:
    for dataset in parts:
        values = dataset[:2]["input"]
        assert np.isfinite(values.astype(np.float64)).all()
        assert not np.array_equal(values[0], values[1])


@pytest.mark.parametrize("case", CASES)
def test_loading_again_gives_the_same(case: str, tmp_path: Path) -> None:
    first, second = load(case, tmp_path / "a"), load(case, tmp_path / "b")

    for one, other in zip(first, second):
        assert len(one) == len(other)
        count = min(len(one), 20)
        assert same(one[:count], other[:count])


def test_reading_into_arrays(parts: tuple[Dataset, Dataset]) -> None:
    for index in (slice(0, 3), [1, 0, -1]):
        expected = parts[0][index]
        batch = {name: np.full_like(value, 1) for name, value in expected.items()}
        parts[0].read_into(index, batch)
        assert same(batch, expected)
    wrong = {name: np.zeros((2, *value.shape[1:]), value.dtype) for name, value in expected.items()}
    with pytest.raises(DatasetError, match="must be"):
        parts[0].read_into([0, 1, 2], wrong)
    with pytest.raises(DatasetError, match="nothing"):
        parts[0].read_into([0, 1], {"input": wrong["input"]})


def test_pickled_data_sets_read_the_same(parts: tuple[Dataset, Dataset]) -> None:
    for dataset in parts:
        expected = dataset[[0, -1]]
        copied = pickle.loads(pickle.dumps(dataset))
        assert same(copied[[0, -1]], expected)
        again = pickle.loads(pickle.dumps(copied))
        assert (len(again), again.classes, again.descriptors) == (len(dataset), dataset.classes, dataset.descriptors)
        assert same(again[[0, -1]], expected)


#: Data sets that hold their samples themselves; they are small.
EMBEDDED = {"breast_cancer", "diabetes", "diabetes-standardised", "digits", "text", "text-characters"}


@pytest.mark.parametrize("case", [case for case in CASES if case not in EMBEDDED])
def test_what_is_pickled_holds_no_samples(case: str, tmp_path: Path) -> None:
    for dataset in load(case, tmp_path):
        dataset[0]
        assert len(pickle.dumps(dataset)) < 8_000 + 40 * len(dataset)


def _read_elsewhere(dataset: Dataset) -> dict[str, Any]:
    return dataset[[0, -1]]


def test_another_process_reads_the_same(tmp_path: Path) -> None:
    loaded = {case: load(case, tmp_path / case)[0] for case in CASES}

    with multiprocessing.get_context("spawn").Pool(1) as pool:
        read = dict(zip(loaded, pool.map(_read_elsewhere, loaded.values())))

    assert [case for case in CASES if not same(read[case], loaded[case][[0, -1]])] == []


@pytest.mark.parametrize("name", DATASETS.names())
def test_names_of_inputs_and_documentation(name: str, tmp_path: Path) -> None:
    function = DATASETS.get(name)
    train, _ = load_dataset(name, "x", "y", **files.arguments_for(name, tmp_path))

    assert list(train[0]) == ["x", "y"]
    text = inspect.getdoc(function) or ""
    for parameter in inspect.signature(function).parameters.values():
        assert f"\n    {parameter.name}: " in text, f"{name} does not document {parameter.name}"
        assert parameter.kind is parameter.KEYWORD_ONLY or parameter.name in ("input_node", "label_node")
    assert "Returns:" in text
    assert "Raises:" in text
    with pytest.raises(DatasetError, match="has no argument 'no_such'"):
        load_dataset(name, no_such=1)
