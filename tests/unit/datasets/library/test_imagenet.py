from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from deep500.core.errors import DatasetError
from deep500.datasets.decoding import ImageDecoder
from deep500.datasets.loading import load_dataset
from tests.dataset_files import SYNSETS, jpeg, photograph, write_imagenet_folder, write_imagenet_shards, write_tar

MEAN, DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def test_images_and_labels_are_those_of_the_folders(tmp_path: Path) -> None:
    write_imagenet_folder(tmp_path)
    train, val = load_dataset("imagenet", "x", "y", folder=tmp_path, size=32)

    assert (len(train), len(val), train.classes, train.sample_shape) == (18, 9, 3, (3, 32, 32))
    assert train[:]["y"].tolist() == sorted([0, 1, 2] * 6)
    decoder = ImageDecoder(32, mean=MEAN, standard_deviation=DEVIATION)
    for number in (0, 7, 17):
        label, image = divmod(number, 6)
        path = tmp_path / "imagenet" / "train" / SYNSETS[label] / f"{SYNSETS[label]}_{image}.JPEG"
        np.testing.assert_array_equal(train[number]["x"], decoder(path))


def test_all_layouts_hold_the_same(tmp_path: Path) -> None:
    write_imagenet_folder(tmp_path / "folders")
    write_imagenet_folder(tmp_path / "flat", flat=True)
    write_imagenet_shards(tmp_path / "shards")
    write_imagenet_shards(tmp_path / "json", label="json", shards=3)
    read = {
        name: load_dataset("imagenet", folder=tmp_path / name, size=32, classes=3)
        for name in ("folders", "flat", "shards", "json")
    }

    def content(name: str, part: int) -> list[bytes]:
        batch = read[name][part][:]
        return sorted(bytes([label]) + image.tobytes() for image, label in zip(batch["input"], batch["label"]))

    for part in (0, 1):
        assert all(content(name, part) == content("folders", part) for name in read)


@pytest.mark.parametrize("form", ["synsets", "numbers", "names"])
def test_other_files_that_tell_the_labels(tmp_path: Path, form: str) -> None:
    root = write_imagenet_folder(tmp_path, flat=True) / "imagenet"
    expected = load_dataset("imagenet", folder=tmp_path, size=32)[1][:]["label"].tolist()
    (root / "LOC_val_solution.csv").unlink()
    names = sorted(path.name for path in (root / "val").iterdir())
    lines = {
        "synsets": [SYNSETS[label] for label in expected],
        "numbers": [f"{name} {label}" for name, label in zip(names, expected)],
        "names": [f"val/{name} {SYNSETS[label]}" for name, label in zip(names, expected)],
    }[form]
    mapping = root / ("val.txt" if form != "synsets" else "imagenet_2012_validation_synset_labels.txt")
    mapping.write_text("\n".join(lines) + "\n")

    assert load_dataset("imagenet", folder=tmp_path, size=32)[1][:]["label"].tolist() == expected
    shutil.move(mapping, tmp_path / "other")
    with pytest.raises(DatasetError, match="no file that tells their labels"):
        load_dataset("imagenet", folder=tmp_path)
    named = load_dataset("imagenet", folder=tmp_path, size=32, mapping=tmp_path / "other")
    assert named[1][:]["label"].tolist() == expected


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["n01440764"], "1 lines for 9 images"),
        (["ILSVRC2012_val_00000001,n01440764 1 2 3 4"], "tells no label of"),
        (["n09999999"] * 9, "class 'n09999999'"),
        (["3"] * 9, "class '3'"),
        (["-1"] * 9, "class '-1'"),
    ],
)
def test_wrong_labels(tmp_path: Path, lines: list[str], message: str) -> None:
    root = write_imagenet_folder(tmp_path, flat=True) / "imagenet"
    (root / "LOC_val_solution.csv").write_text("\n".join(lines))

    with pytest.raises(DatasetError, match=message):
        load_dataset("imagenet", folder=tmp_path)


def test_nothing_there_says_how_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=r"ImageNet is not there.*image-net\.org.*DEEP500_DATA") as caught:
        load_dataset("imagenet", folder=tmp_path)
    assert str(tmp_path) in str(caught.value)


def test_layouts_that_are_not_complete(tmp_path: Path) -> None:
    root = write_imagenet_folder(tmp_path / "a") / "imagenet"
    shutil.rmtree(root / "val")
    with pytest.raises(DatasetError, match="has train and no val"):
        load_dataset("imagenet", folder=root)
    (root / "val" / "n09999999").mkdir(parents=True)
    with pytest.raises(DatasetError, match="'n09999999', which train does not have"):
        load_dataset("imagenet", folder=root)
    for path in (root / "train" / SYNSETS[1]).iterdir():
        path.unlink()
    with pytest.raises(DatasetError, match=f"{SYNSETS[1]} holds no images"):
        load_dataset("imagenet", folder=root)
    shutil.rmtree(root / "train")
    (root / "train").mkdir()
    with pytest.raises(DatasetError, match="holds no folders"):
        load_dataset("imagenet", folder=root)
    shards = write_imagenet_shards(tmp_path / "b") / "imagenet"
    with pytest.raises(DatasetError, match="mapping goes with"):
        load_dataset("imagenet", folder=shards, mapping="x")
    for path in shards.glob("*val*"):
        path.unlink()
    with pytest.raises(DatasetError, match=r"no \*val\*\.tar"):
        load_dataset("imagenet", folder=shards)


def test_labels_of_shards_are_in_range(tmp_path: Path) -> None:
    write_imagenet_shards(tmp_path)

    assert load_dataset("imagenet", folder=tmp_path)[0].classes == 1000
    with pytest.raises(DatasetError, match="is 2; with 2 classes"):
        load_dataset("imagenet", folder=tmp_path, classes=2)


def test_damaged_images_are_named(tmp_path: Path) -> None:
    root = write_imagenet_folder(tmp_path) / "imagenet"
    path = root / "train" / SYNSETS[0] / f"{SYNSETS[0]}_1.JPEG"
    path.write_bytes(path.read_bytes()[:300])
    train, _ = load_dataset("imagenet", folder=tmp_path, size=32)
    with pytest.raises(DatasetError, match=r"_1\.JPEG cannot be decoded: it is truncated"):
        train[1]

    image = jpeg(photograph(0, 0))
    write_tar(tmp_path / "s" / "train.tar", [("0.jpg", image[:300]), ("0.cls", b"0")], "w:")
    write_tar(tmp_path / "s" / "val.tar", [("0.jpg", image), ("0.cls", b"0")], "w:")
    with pytest.raises(DatasetError, match=r"train\.tar, byte 512 cannot be decoded"):
        load_dataset("imagenet", folder=tmp_path / "s", size=32)[0][0]


def test_the_published_archive_of_archives_is_recognised(tmp_path: Path) -> None:
    write_tar(tmp_path / "ILSVRC2012_img_train.tar", [("n01440764.tar", b"x" * 1024)], "w:")

    with pytest.raises(DatasetError, match="Unpack both"):
        load_dataset("imagenet", folder=tmp_path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_folder_that_may_not_be_read(tmp_path: Path) -> None:
    root = write_imagenet_folder(tmp_path) / "imagenet"
    (root / "train").chmod(0)
    try:
        with pytest.raises(DatasetError):
            load_dataset("imagenet", folder=root)
    finally:
        (root / "train").chmod(0o755)


@pytest.mark.parametrize("kind", ["folder", "link to nothing", "link to itself"])
@pytest.mark.parametrize("layout", [write_imagenet_folder, write_imagenet_shards])
def test_what_is_named_like_a_file_and_is_none(tmp_path: Path, layout: Any, kind: str) -> None:
    layout(tmp_path)
    path = sorted(path for path in (tmp_path / "imagenet").rglob("*train*") if path.suffix == ".tar")
    place = path[0] if path else next((tmp_path / "imagenet" / "train").rglob("*.JPEG"))
    place.unlink()
    if kind == "folder":
        place.mkdir()
    else:
        place.symlink_to(place if kind == "link to itself" else tmp_path / "nothing")

    with pytest.raises(DatasetError, match="is no file, or a link that leads nowhere"):
        load_dataset("imagenet", folder=tmp_path, size=32)


def test_a_pipe_in_place_of_an_image_is_not_waited_for(tmp_path: Path) -> None:
    write_imagenet_folder(tmp_path)
    path = sorted((tmp_path / "imagenet" / "train").rglob("*.JPEG"))[0]
    path.unlink()
    os.mkfifo(path)

    with pytest.raises(DatasetError, match="no file"):
        load_dataset("imagenet", folder=tmp_path, size=32)
