"""Finding ImageNet's images: folders of JPEGs, or WebDataset shards."""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from deep500.core.errors import DatasetError
from deep500.core.texts import shown_path
from deep500.datasets._contents import Contents, FileTable
from deep500.datasets._shards import Shards

__all__ = ["find_images", "how_to_get"]

_EXTENSIONS = (".jpeg", ".jpg", ".png")

#: Where a flat validation folder's labels are looked for, beside the folder and above it.
_MAPPINGS = ("LOC_val_solution.csv", "imagenet_2012_validation_synset_labels.txt", "val.txt")

Part = tuple[Contents, NDArray[np.int64]]


def find_images(base: Path, mapping: Path | None, named: bool) -> tuple[Part, Part, list[str] | None]:
    """Return images and labels of the training set and of the validation set, and the classes' names.

    Args:
        base: The data folder.
        mapping: The file that tells the labels of a flat validation folder; ``None`` to look for it.
        named: Whether the user named the folder, which then may be ImageNet's own.

    Raises:
        DatasetError: There is nothing, or it is not laid out as it should be. The names are ``None`` for shards, whose
            labels are numbers.
    """
    for place in [base / "imagenet", *([base] if named else [])]:
        if (place / "train").is_dir():
            return _folders(place, mapping)
        if _shards(place, "train"):
            if mapping is not None:
                raise DatasetError(f"mapping goes with a folder of images; {shown_path(place)} holds shards.")
            train, val = (_read_shards(place, part) for part in ("train", "val"))
            return train, val, None
    raise DatasetError(
        f"ImageNet is not there: {shown_path(base / 'imagenet')} holds neither train/CLASS/*.JPEG nor shards such as "
        f"imagenet-train-000000.tar. {how_to_get(base)}"
    )


def how_to_get(base: Path) -> str:
    """Return the sentence that says where ImageNet comes from."""
    return (
        "It cannot be downloaded without an account: get ILSVRC2012_img_train.tar (MD5 "
        "1d675b47d978889d74fa0da5fadfb00e) and ILSVRC2012_img_val.tar (MD5 29b22e2961454d5413ddabcf34fc5622) from "
        f"https://image-net.org/download.php, and unpack them to train/CLASS/*.JPEG and val/*.JPEG in "
        f"{shown_path(base / 'imagenet')}; another folder can be named with folder=... or the environment variable "
        "DEEP500_DATA."
    )


def _folders(place: Path, mapping: Path | None) -> tuple[Part, Part, list[str]]:
    classes = _subfolders(place / "train")
    if not classes:
        raise DatasetError(f"{shown_path(place / 'train')} holds no folders, one a class.")
    train = _by_class(place / "train", classes)
    val = place / "val" if (place / "val").is_dir() else place / "validation"
    if not val.is_dir():
        raise DatasetError(f"{shown_path(place)} has train and no val. {how_to_get(place.parent)}")
    inside = _subfolders(val)
    if inside:
        unknown = sorted(set(inside) - set(classes))
        if unknown:
            raise DatasetError(f"{shown_path(val)} has the class {unknown[0]!r}, which train does not have.")
        return train, _by_class(val, classes, missing_allowed=True), classes
    return train, _flat(val, classes, mapping), classes


def _subfolders(place: Path) -> list[str]:
    with os.scandir(place) as entries:
        return sorted(entry.name for entry in entries if _is_folder(entry) and not entry.name.startswith("."))


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link that leads to itself
        return False


def _images(place: Path) -> list[str]:
    with os.scandir(place) as entries:
        found = [entry for entry in entries if entry.name.lower().endswith(_EXTENSIONS)]
        _check_files([Path(entry.path) for entry in found if entry.is_symlink() or not entry.is_file()])
        return sorted(entry.name for entry in found)


def _check_files(paths: Iterable[Path]) -> None:
    """Check that what is named like a file is one: what is passed over would be missing from the data set."""
    for path in paths:
        if not os.path.isfile(path):
            raise DatasetError(f"{shown_path(path)} is no file, or a link that leads nowhere. Remove it, or mend it.")


def _by_class(place: Path, classes: Sequence[str], missing_allowed: bool = False) -> Part:
    names: list[str] = []
    counts = []
    for name in classes:
        found = _images(place / name) if not missing_allowed or (place / name).is_dir() else []
        if not found and not missing_allowed:
            raise DatasetError(f"{shown_path(place / name)} holds no images ({', '.join(_EXTENSIONS)}).")
        names += [f"{name}/{image}" for image in found]
        counts.append(len(found))
    return FileTable(names, place), np.repeat(np.arange(len(classes), dtype=np.int64), counts)


def _flat(val: Path, classes: list[str], mapping: Path | None) -> Part:
    images = _images(val)
    if not images:
        raise DatasetError(f"{shown_path(val)} holds no images ({', '.join(_EXTENSIONS)}).")
    candidates = [folder / name for folder in (val, val.parent) for name in _MAPPINGS] if mapping is None else [mapping]
    found = next((path for path in candidates if path.is_file()), None)
    if found is None:
        where = shown_path(mapping) if mapping is not None else f"{', '.join(_MAPPINGS)} beside it"
        raise DatasetError(
            f"{shown_path(val)} holds images without classes' folders, and there is no file that tells their labels "
            f"({where}). Name one with mapping=..., or sort the images into val/CLASS/."
        )
    return FileTable(images, val), _labels(found, images, classes)


def _labels(mapping: Path, images: list[str], classes: list[str]) -> NDArray[np.int64]:
    """Return the label of each image, from one of the forms in which they are published.

    ``image,class ...`` (a CSV with a header), ``image class`` (a class' name or number), or a class a line for the
    images in the order of their names.
    """
    try:
        with mapping.open(newline="", encoding="utf-8") as file:
            rows = [re.split(r"[,\s]+", row[0].strip() + " " + " ".join(row[1:])) for row in csv.reader(file) if row]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DatasetError(f"{shown_path(mapping)} cannot be read: {error}.") from error
    rows = [[field for field in row if field] for row in rows]
    rows = [row for row in rows if row and row[0].lower() != "imageid"]
    numbers = {name: number for number, name in enumerate(classes)}
    if all(len(row) == 1 for row in rows):
        if len(rows) != len(images):
            raise DatasetError(f"{shown_path(mapping)} has {len(rows)} lines for {len(images)} images.")
        told = dict(zip(images, (row[0] for row in rows)))
    else:
        by_stem = {row[0].rpartition("/")[2].partition(".")[0]: row[1] for row in rows if len(row) > 1}
        missing = [image for image in images if image.partition(".")[0] not in by_stem]
        if missing:
            raise DatasetError(f"{shown_path(mapping)} tells no label of {missing[0]!r} ({len(missing)} are missing).")
        told = {image: by_stem[image.partition(".")[0]] for image in images}
    labels = []
    for image, text in told.items():
        number = numbers.get(text, int(text) if re.fullmatch(r"[0-9]{1,9}", text) else -1)
        if not 0 <= number < len(classes):
            raise DatasetError(
                f"{shown_path(mapping)} has the class {text!r} for {image!r}; accepted are the {len(classes)} folders "
                f"in train, and their numbers from 0."
            )
        labels.append(number)
    return np.array(labels, np.int64)


def _shards(place: Path, part: str) -> list[Path]:
    found = sorted(place.glob(f"*{part}*.tar"))
    _check_files(found)
    return found


def _read_shards(place: Path, part: str) -> Part:
    paths = _shards(place, part)
    if not paths:
        raise DatasetError(f"{shown_path(place)} holds shards *train*.tar and no *{part}*.tar.")
    shards = Shards(paths)
    return shards, shards.labels
