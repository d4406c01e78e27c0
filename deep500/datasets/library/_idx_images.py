"""What MNIST and the data sets in its format share."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from deep500.core.errors import DatasetError
from deep500.core.texts import shown_path
from deep500.datasets._idx import read_idx
from deep500.datasets._memory import LazyArrays
from deep500.datasets._pixels import PixelDataset, PixelScale, pixel_statistics
from deep500.datasets.download import RemoteFile, file_sha256, obtain
from deep500.datasets.folder import data_folder, may_download

__all__ = ["FILES", "IdxImages", "load_idx_images", "remote_files"]

#: Names of the files that hold the images and the labels, of the training set and of the test set.
FILES = (
    ("train-images-idx3-ubyte", "train-labels-idx1-ubyte"),
    ("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"),
)

#: Published numbers of images.
_PUBLISHED = (60_000, 10_000)


@dataclass(frozen=True)
class IdxImages:
    """One of the data sets.

    Attributes:
        title: What messages call it.
        folder: The folder below the data folder where its files are kept, for their names are those of every such data
            set.
        other_folder: The folder in which torchvision keeps them.
        files: The published files by the name that they have when they are unpacked.
    """

    title: str
    folder: str
    other_folder: str
    files: Mapping[str, RemoteFile]


def remote_files(addresses: tuple[str, ...], facts: Mapping[str, tuple[int, str]]) -> dict[str, RemoteFile]:
    """Return the four files.

    Args:
        addresses: The folders on servers that hold them.
        facts: Size in bytes and SHA-256 of each compressed file.
    """
    return {
        name: RemoteFile(f"{name}.gz", tuple(f"{address}/{name}.gz" for address in addresses), digest, size)
        for name, (size, digest) in facts.items()
    }


def load_idx_images(
    data_set: IdxImages,
    input_node: str,
    label_node: str,
    *,
    folder: str | PathLike[str] | None,
    normalize: bool,
    verify: bool,
    download: bool,
) -> tuple[PixelDataset, PixelDataset]:
    """Return the training set and the test set; the arguments are those of :func:`mnist`."""
    for name, value in (("normalize", normalize), ("verify", verify)):
        if not isinstance(value, bool):
            raise DatasetError(f"{name} was given as {value!r}; accepted are True and False.")
    paths = _find(data_set, folder, may_download(folder, download))
    if verify:
        for name, path in paths.items():
            _check_published(data_set.files[name], path)
    parts = []
    for (images, labels), published in zip(FILES, _PUBLISHED):
        load = functools.partial(_read, paths[images], paths[labels])
        arrays = load()
        if verify and len(arrays[0]) != published:
            raise DatasetError(
                f"{shown_path(paths[images])} holds {len(arrays[0]):,} images; the published file holds "
                f"{published:,}. Get it again, or use verify=False for files of your own."
            )
        parts.append((LazyArrays(load, arrays), shown_path(paths[labels])))
    mean, deviation = pixel_statistics(parts[0][0].get()[0]) if normalize else (None, None)
    scale = PixelScale(1, mean, deviation)
    train, test = (PixelDataset(arrays, input_node, label_node, 10, scale, source) for arrays, source in parts)
    return train, test


def _find(data_set: IdxImages, folder: str | PathLike[str] | None, download: bool) -> dict[str, Path]:
    """Return the path of each of the four files, compressed or not."""
    base = data_folder(folder).absolute()
    places = [base / data_set.folder, base / data_set.other_folder / "raw"]
    if folder is not None:  # in a folder that all data sets share, nobody could say which one these files are
        places.append(base)
    for place in places:
        found = {
            name: path
            for name in data_set.files
            for path in (place / f"{name}.gz", place / name)  # the second one wins: it need not be unpacked
            if path.is_file()
        }
        if found and (place != places[0] or not download):
            missing = [name for name in data_set.files if name not in found]
            if missing:
                raise DatasetError(
                    f"{data_set.title} is incomplete: {shown_path(place)} lacks {', '.join(missing)} (compressed with "
                    f"gzip or not). Get it from {data_set.files[missing[0]].addresses[0]}."
                )
        if len(found) == len(data_set.files):
            return found
    place = places[0]
    return {
        name: place / name if (place / name).is_file() else obtain(data_set.title, file, place, download=download)
        for name, file in data_set.files.items()
    }


def _check_published(file: RemoteFile, path: Path) -> None:
    """Check a compressed file; of unpacked ones no checksum is published, but the number of images is."""
    if path.suffix != ".gz":
        return
    digest = file_sha256(path)
    if digest != file.sha256:
        raise DatasetError(
            f"{shown_path(path)} is not the published file: its SHA-256 is {digest}, not {file.sha256} "
            f"({path.stat().st_size:,} bytes instead of {file.size_bytes:,}). Get it again from {file.addresses[0]}, "
            f"or use verify=False for files of your own."
        )


def _read(images: Path, labels: Path) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    pixels = read_idx(images, "uint8", 3)
    return pixels[:, np.newaxis], read_idx(labels, "uint8", 1).astype(np.int64)
