"""Videos of 101 kinds of human actions."""

from __future__ import annotations

from os import PathLike

from deep500.core.counts import check_count
from deep500.core.errors import DatasetError
from deep500.datasets.dataset import Dataset
from deep500.datasets.folder import data_folder, may_download
from deep500.datasets.library._imagenet_decoder import imagenet_decoder
from deep500.datasets.library._ucf101_files import Clips, find_clips, read_splits

__all__ = ["ucf101"]


def ucf101(
    input_node: str = "input",
    label_node: str = "label",
    *,
    folder: str | PathLike[str] | None = None,
    split: int = 1,
    frames: int = 16,
    size: int = 112,
    fit: str = "crop",
    normalize: bool = True,
    dtype: str = "float32",
    download: bool = True,
) -> tuple[Dataset, Dataset]:
    """Return UCF101: 13,320 videos of human actions in 101 classes, split as published.

    Samples are ``[frames, 3, size, size]``: frames spread evenly over the video, scaled and cut as ``fit`` says;
    float32, the bytes divided by 255, less (0.485, 0.456, 0.406), divided by (0.229, 0.224, 0.225); or the bytes.
    Labels are int64 from 0 to 100, one less than in the published list of classes.

    Videos (``UCF-101/CLASS/VIDEO.avi``; needs the extra ``video``) or folders of their frames as images
    (``UCF-101/CLASS/VIDEO/*.jpg``, in the order of the numbers in their names) are read from the folder ``ucf101``
    below ``folder``, or from a ``folder`` that is named. The published lists lie there too, in ``ucfTrainTestlist`` or
    as the published archive, which is small and downloaded where it is missing; the videos (7 GB) are not.

    Args:
        input_node: Name of the network's input that the frames are for.
        label_node: Name of the network's input that the labels are for.
        folder: Where it lies; by default, see :func:`deep500.datasets.folder.data_folder`.
        split: Which of the three published splits, 1 to 3.
        frames: Number of frames a video.
        size: Height and width of a frame.
        fit: ``"crop"``, ``"stretch"`` or ``"exact"``, see :class:`~deep500.datasets.ImageDecoder`.
        normalize: Whether to take off the mean and to divide by the standard deviation; else pixels are from 0 to 1.
        dtype: ``"float32"``, or ``"uint8"`` for the bytes, which are not normalised.
        download: Whether the lists may be downloaded, unless the environment variable ``DEEP500_OFFLINE`` is set.

    Returns:
        The training set and the test set.

    Raises:
        DatasetError: The videos are not there (the message says how to get them), or not laid out as they should be.
        MissingDependencyError: When a video is read: PyAV is not installed.

    Source: K. Soomro, A. R. Zamir, M. Shah, "UCF101: A Dataset of 101 Human Actions Classes From Videos in The Wild",
    CRCV-TR-12-01, 2012.
    """
    if type(split) is not int or split not in (1, 2, 3):
        raise DatasetError(f"split was given as {split!r}; accepted are 1, 2 and 3.")
    count = check_count("frames", frames, least=1, error=DatasetError)
    decoder = imagenet_decoder(size, fit, None, dtype, normalize)
    base = data_folder(folder).absolute()
    place = base if folder is not None and not (base / "ucf101").is_dir() else base / "ucf101"
    listing = read_splits(place, split, may_download(folder, download))
    videos, labels = find_clips(place, listing)
    train, test = (
        Clips(part, decoder, count, input_node, numbers, label_node, len(listing.classes))
        for part, numbers in zip(videos, labels)
    )
    return train, test
