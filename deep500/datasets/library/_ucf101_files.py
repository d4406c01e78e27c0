"""Finding UCF101's videos and its published splits."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from deep500.core.errors import DatasetError
from deep500.core.texts import shown_path
from deep500.datasets._archives import read_zip_members
from deep500.datasets._contents import FileTable
from deep500.datasets._encoded_dataset import DecodedDataset
from deep500.datasets._video import read_video, spread
from deep500.datasets.decoding import ImageDecoder
from deep500.datasets.download import RemoteFile, how_to_get, obtain

__all__ = ["SPLITS", "Clips", "Listing", "find_clips", "read_splits"]

#: SHA-256 from TensorFlow Datasets' url_checksums/ucf101.txt.
SPLITS = RemoteFile(
    "UCF101TrainTestSplits-RecognitionTask.zip",
    ("https://www.crcv.ucf.edu/data/UCF101/UCF101TrainTestSplits-RecognitionTask.zip",),
    "5c0d1a53b8ed364a2ac830a73f405e51bece7d98ce1254fd19ed4a36b224bd27",
    113_943,
)

_VIDEOS = "https://www.crcv.ucf.edu/data/UCF101/UCF101.rar"
_LISTS = "ucfTrainTestlist"
_IMAGES = (".jpg", ".jpeg", ".png")


@dataclass(frozen=True)
class Listing:
    """One of the published splits.

    Attributes:
        classes: Names of the classes, in order.
        train: Names ``CLASS/VIDEO.avi`` of the training set.
        test: Names of the test set.
    """

    classes: list[str]
    train: list[str]
    test: list[str]


class Clips(DecodedDataset):
    """Videos, each a number of frames spread evenly over it: ``[T, C, H, W]``."""

    def __init__(
        self,
        videos: FileTable,
        decoder: ImageDecoder,
        frames: int,
        input_node: str,
        labels: NDArray[np.int64],
        label_node: str,
        classes: int,
    ) -> None:
        """Keep where the videos lie.

        Args:
            videos: Videos, or folders that hold one's frames.
            decoder: What becomes of a frame.
            frames: Number of frames a video.
            input_node: Name of the network's input that the frames are for.
            labels: The class of each video.
            label_node: Name of the network's input that the classes are for.
            classes: Number of classes.

        Raises:
            DatasetError: There are no videos.
        """
        shape = (frames, *decoder.shape)
        super().__init__(len(videos), shape, decoder.dtype, input_node, labels, label_node, classes)
        self._videos = videos
        self._decoder = decoder

    def read_sample(self, number: int, out: NDArray[np.generic]) -> None:
        path = self._videos.path(number)
        if not os.path.isdir(path):
            for place, pixels in enumerate(read_video(path, len(out))):
                self._decoder.place(pixels, out[place], shown_path(path))
            return
        names = sorted((name for name in os.listdir(path) if name.lower().endswith(_IMAGES)), key=_by_number)
        if not names:
            raise DatasetError(f"{shown_path(path)} holds no frames ({', '.join(_IMAGES)}).")
        table = FileTable(names, Path(path))
        for place, frame in enumerate(spread(len(names), len(out)).tolist()):
            self._decoder.decode_into(table.read(frame), out[place], table.where(frame))


def read_splits(base: Path, split: int, download: bool) -> Listing:
    """Return a published split, from the unpacked lists or from their archive, which is downloaded where it is missing.

    Raises:
        DatasetError: The lists are not there, or not what they should be.
    """
    names = ("classInd.txt", f"trainlist{split:02}.txt", f"testlist{split:02}.txt")
    place = next((folder for folder in (base / _LISTS, base) if (folder / names[0]).is_file()), None)
    if place is not None:
        missing = [name for name in names if not (place / name).is_file()]
        if missing:
            raise DatasetError(
                f"UCF101's lists are incomplete: {shown_path(place)} lacks {', '.join(missing)}. "
                f"{how_to_get(SPLITS, base)}"
            )
        contents = {name: (place / name).read_bytes() for name in names}
        where = shown_path(place)
    else:
        archive = obtain("UCF101's split", SPLITS, base, download=download)
        contents = read_zip_members(archive, {f"{_LISTS}/{name}": name for name in names}, how_to_get(SPLITS, base))
        where = shown_path(archive)
    lines = {name: _lines(f"{where}/{name}", content) for name, content in contents.items()}
    classes = _classes(f"{where}/{names[0]}", lines[names[0]])
    train, test = (_videos(f"{where}/{name}", lines[name], classes) for name in names[1:])
    return Listing(classes, train, test)


def find_clips(base: Path, listing: Listing) -> tuple[tuple[FileTable, FileTable], tuple[NDArray[np.int64], ...]]:
    """Return where the videos of both parts lie, and their classes.

    A video is ``CLASS/VIDEO.avi`` or a folder ``CLASS/VIDEO`` of frames, in ``UCF-101`` or the folder itself, or the
    same without the class' folder.

    Raises:
        DatasetError: A video is missing.
    """
    numbers = {name: number for number, name in enumerate(listing.classes)}
    first = listing.train[0]
    for place in (base / "UCF-101", base / "UCF101", base):
        for form in (_in_class, _frames_in_class, _alone, _frames_alone):
            if (place / form(first)).exists():
                names = [[form(name) for name in part] for part in (listing.train, listing.test)]
                _check_there(place, names[0] + names[1], base)
                labels = (
                    np.array([numbers[name.partition("/")[0]] for name in part], np.int64)
                    for part in (listing.train, listing.test)
                )
                return (FileTable(names[0], place), FileTable(names[1], place)), tuple(labels)
    raise DatasetError(
        f"UCF101 is not there: {shown_path(base)} holds neither {first} nor a folder {_frames_in_class(first)} of its "
        f"frames. {_videos_advice(base)}"
    )


def _check_there(place: Path, names: list[str], base: Path) -> None:
    missing = [name for name in names if not (place / name).exists()]
    if missing:
        raise DatasetError(
            f"UCF101 is incomplete: {shown_path(place)} lacks {missing[0]} ({len(missing)} of {len(names)} videos). "
            f"{_videos_advice(base)}"
        )


def _videos_advice(base: Path) -> str:
    return (
        f"Get {_VIDEOS} (7 GB; no checksum of it is published) and unpack it in {shown_path(base)}; another folder can "
        f"be named with folder=... or the environment variable DEEP500_DATA."
    )


def _in_class(name: str) -> str:
    return name


def _frames_in_class(name: str) -> str:
    return name.removesuffix(".avi")


def _alone(name: str) -> str:
    return name.partition("/")[2]


def _frames_alone(name: str) -> str:
    return _alone(name).removesuffix(".avi")


def _by_number(name: str) -> tuple[list[int], str]:
    # frame10 comes behind frame9.
    return [int(digits) for digits in re.findall(r"[0-9]+", name)], name


def _lines(where: str, content: bytes) -> list[list[str]]:
    try:
        return [line.split() for line in content.decode("utf-8").splitlines() if line.strip()]
    except UnicodeDecodeError as error:
        raise DatasetError(f"{where} is no text: {error}. Get it again.") from error


def _classes(where: str, lines: list[list[str]]) -> list[str]:
    expected = [str(number + 1) for number in range(len(lines))]
    if not lines or any(len(line) != 2 for line in lines) or [line[0] for line in lines] != expected:
        raise DatasetError(f"{where} must hold lines 'NUMBER CLASS' with the numbers from 1 on. Get it again.")
    return [line[1] for line in lines]


def _videos(where: str, lines: list[list[str]], classes: list[str]) -> list[str]:
    names = []
    for line in lines:
        match = re.fullmatch(r"(\w+)/(\w[\w-]*\.avi)", line[0])
        if match is None or match[1] not in classes or len(line) > 2:
            raise DatasetError(f"{where} has the line {' '.join(line)!r}; accepted is 'CLASS/VIDEO.avi NUMBER'.")
        if len(line) == 2 and line[1] != str(classes.index(match[1]) + 1):
            raise DatasetError(f"{where} gives {line[0]} the class {line[1]}, which is not that of {match[1]}.")
        names.append(line[0])
    if not names:
        raise DatasetError(f"{where} names no videos. Get it again.")
    return names
