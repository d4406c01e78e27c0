from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from deep500.core.errors import DatasetError
from deep500.datasets.decoding import ImageDecoder
from deep500.datasets.file_list_dataset import FileListDataset
from tests.dataset_files import jpeg, photograph


def load_square(path: str) -> Any:
    return np.float64(Path(path).read_text()) ** 2 * np.ones(2)


def write_images(folder: Path, count: int = 5) -> list[Path]:
    paths = [folder / f"bäcker {number}.jpg" for number in range(count)]
    for number, path in enumerate(paths):
        path.write_bytes(jpeg(photograph(number, 0)))
    return paths


def test_images(tmp_path: Path) -> None:
    paths = write_images(tmp_path)
    dataset = FileListDataset(paths, "x", labels=[0, 1, 2, 0, 1], label_node="y")

    assert (len(dataset), dataset.sample_shape, dataset.dtype, dataset.classes) == (5, (3, 40, 48), "float32", 3)
    batch = dataset[[4, 0]]
    np.testing.assert_array_equal(
        batch["x"], np.stack([ImageDecoder((40, 48))(paths[4]), ImageDecoder((40, 48))(paths[0])])
    )
    assert batch["y"].tolist() == [1, 0]


def test_a_decoder_of_ones_own_and_no_labels(tmp_path: Path) -> None:
    dataset = FileListDataset(map(str, write_images(tmp_path)), "x", ImageDecoder(16, channels=1, dtype="uint8"))

    assert (dataset.sample_shape, dataset.dtype, dataset.label_node) == ((1, 16, 16), "uint8", None)
    assert list(dataset[0]) == ["x"]


def test_a_function_as_loader(tmp_path: Path) -> None:
    for number in range(3):
        (tmp_path / str(number)).write_text(str(number))
    dataset = FileListDataset(["0", "1", "2"], "x", load_square, [0.5, 1.5, 2.5], "y", folder=tmp_path)

    assert (dataset.sample_shape, dataset.dtype, dataset.loss) == ((2,), "float64", "MeanSquaredError")
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(dataset))[:]["x"], [[0, 0], [1, 1], [4, 4]])


def test_names_are_relative_to_the_folder_of_the_beginning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [path.name for path in write_images(tmp_path)]
    monkeypatch.chdir(tmp_path)
    dataset = FileListDataset(names)
    monkeypatch.chdir("/")

    assert dataset[0]["input"].shape == (3, 40, 48)


def test_a_million_names_are_one_block() -> None:
    dataset = FileListDataset((f"{n:07}.jpg" for n in range(1_000_000)), loader=ImageDecoder(8))

    assert len(pickle.dumps(dataset)) < 20_000_000
    assert dataset._files.path(999_999).endswith("/0999999.jpg")


def test_what_is_wrong_with_a_file_is_said(tmp_path: Path) -> None:
    paths = write_images(tmp_path)
    dataset = FileListDataset(paths)
    paths[1].write_bytes(paths[1].read_bytes()[:400])
    paths[2].write_bytes(jpeg(photograph(0, 0, 30, 30)))
    paths[3].unlink()

    for number, message in ((1, "truncated"), (2, "30 x 30 pixels; accepted are 40 x 48"), (3, "No such file")):
        with pytest.raises(DatasetError, match=message) as caught:
            dataset[number]
        assert paths[number].name in str(caught.value)


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.array([1.0, np.nan], np.float32), "holds NaN"),
        (np.zeros(3, np.float32), r"float32 of shape \(3,\); like the first file"),
        (np.zeros(2), "float64 of shape"),
        (np.array(["a", "b"]), "arrays of numbers"),
        (np.array([{}, {}]), "holds objects"),
    ],
)
def test_arrays_that_do_not_fit(tmp_path: Path, array: Any, message: str) -> None:
    np.save(tmp_path / "0.npy", np.zeros(2, np.float32))
    np.save(tmp_path / "1.npy", array)
    dataset = FileListDataset(["0.npy", "1.npy"], folder=tmp_path)

    with pytest.raises(DatasetError, match=message) as caught:
        dataset[1]
    assert "1.npy" in str(caught.value)


def test_truncated_arrays(tmp_path: Path) -> None:
    np.save(tmp_path / "0.npy", np.zeros(2, np.float32))
    content = (tmp_path / "0.npy").read_bytes()
    for size in (0, 5, 50, len(content) - 1):
        (tmp_path / "1.npy").write_bytes(content[:size])
        with pytest.raises(DatasetError, match="truncated"):
            FileListDataset(["0.npy", "1.npy"], folder=tmp_path)[1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"data": []}, "no files"),
        ({"data": "a.jpg"}, "a sequence of the names"),
        ({"labels": [0]}, "5 samples and 1 labels"),
        ({"labels": [0, 1, 2, 3, 4], "classes": 4}, "label of sample 4 is 4"),
        ({"labels": [0, 1, 2, 3, -4]}, "label of sample 4 is -4"),
        ({"labels": [0, 1, 2, 3, np.nan]}, "label is NaN"),
        ({"labels": [0, 1, 2, 3, 4], "label_node": None}, "label_node=None"),
        ({"classes": 4}, "without labels"),
        ({"loader": 3}, "loader"),
    ],
)
def test_arguments_that_are_not_accepted(tmp_path: Path, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(DatasetError, match=message):
        FileListDataset(**{"data": write_images(tmp_path), **arguments})
