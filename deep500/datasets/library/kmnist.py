"""Handwritten Japanese characters, 28 x 28."""

from __future__ import annotations

from os import PathLike

from deep500.datasets.dataset import Dataset
from deep500.datasets.library._idx_images import IdxImages, load_idx_images, remote_files

__all__ = ["kmnist"]

#: Sizes and SHA-256 are those of TensorFlow Datasets' url_checksums/kmnist.txt.
PUBLISHED = IdxImages(
    title="KMNIST",
    folder="kmnist",
    other_folder="KMNIST",
    files=remote_files(
        ("http://codh.rois.ac.jp/kmnist/dataset/kmnist",),
        {
            "train-images-idx3-ubyte": (18_165_135, "51467d22d8cc72929e2a028a0428f2086b092bb31cfb79c69cc0a90ce135fde4"),
            "train-labels-idx1-ubyte": (29_497, "e38f9ebcd0f3ebcdec7fc8eabdcdaef93bb0df8ea12bee65224341c8183d8e17"),
            "t10k-images-idx3-ubyte": (3_041_136, "edd7a857845ad6bb1d0ba43fe7e794d164fe2dce499a1694695a792adfac43c5"),
            "t10k-labels-idx1-ubyte": (5_120, "20bb9a0ef54c7db3efc55a92eef5582c109615df22683c380526788f98e42a1c"),
        },
    ),
)


def kmnist(
    input_node: str = "input",
    label_node: str = "label",
    *,
    folder: str | PathLike[str] | None = None,
    normalize: bool = True,
    verify: bool = True,
    download: bool = True,
) -> tuple[Dataset, Dataset]:
    """Return KMNIST: 60,000 training and 10,000 test images of 28 x 28 grey pixels in ten classes.

    Images are float32 ``[1, 28, 28]``: the bytes divided by 255, less their mean over the training set, divided by
    their standard deviation; both are taken from the training file, to four digits. Labels are int64 from 0 to 9:
    o, ki, su, tsu, na, ha, ma, ya, re, wo. The test set is the published one.

    The four published files, compressed with gzip or not, are read from the folder ``kmnist`` below ``folder``,
    from ``KMNIST/raw`` below it (where torchvision keeps them), or from a ``folder`` that is named. Where they
    are missing, they are downloaded. Files that are not compressed are mapped, not read into memory.

    Args:
        input_node: Name of the network's input that the images are for.
        label_node: Name of the network's input that the labels are for.
        folder: Where they lie; by default the environment variable ``DEEP500_DATA``, else the user's cache, see
            :func:`deep500.datasets.folder.data_folder`.
        normalize: Whether to take off the mean and to divide by the standard deviation; else pixels are from 0 to 1.
        verify: Whether the files must be the published ones, by SHA-256 (of those that are not compressed, no checksum
            is published; of them, the number of images is checked). Otherwise any files of the format are accepted,
            with any number and size of images.
        download: Whether they may be downloaded where they are missing (21 MB), unless the environment variable
            ``DEEP500_OFFLINE`` is set. Nothing is downloaded to a ``folder`` that does not exist.

    Returns:
        The training set and the test set.

    Raises:
        DatasetError: The files are not there (the message says how to get them), damaged, or not the published ones.

    Source: T. Clanuwat et al., "Deep Learning for Classical Japanese Literature", arXiv:1812.01718, 2018; licence
    CC BY-SA 4.0.
    """
    return load_idx_images(
        PUBLISHED, input_node, label_node, folder=folder, normalize=normalize, verify=verify, download=download
    )
