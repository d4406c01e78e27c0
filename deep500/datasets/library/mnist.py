"""Handwritten digits, 28 x 28."""

from __future__ import annotations

from os import PathLike

from deep500.datasets.dataset import Dataset
from deep500.datasets.library._idx_images import IdxImages, load_idx_images, remote_files

__all__ = ["mnist"]

#: Sizes and SHA-256 are those of TensorFlow Datasets' url_checksums/mnist.txt.
PUBLISHED = IdxImages(
    title="MNIST",
    folder="mnist",
    other_folder="MNIST",
    files=remote_files(
        ("https://ossci-datasets.s3.amazonaws.com/mnist", "https://storage.googleapis.com/cvdf-datasets/mnist"),
        {
            "train-images-idx3-ubyte": (9_912_422, "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609"),
            "train-labels-idx1-ubyte": (28_881, "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c"),
            "t10k-images-idx3-ubyte": (1_648_877, "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6"),
            "t10k-labels-idx1-ubyte": (4_542, "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6"),
        },
    ),
)


def mnist(
    input_node: str = "input",
    label_node: str = "label",
    *,
    folder: str | PathLike[str] | None = None,
    normalize: bool = True,
    verify: bool = True,
    download: bool = True,
) -> tuple[Dataset, Dataset]:
    """Return MNIST: 60,000 training and 10,000 test images of 28 x 28 grey pixels in ten classes.

    Images are float32 ``[1, 28, 28]``: the bytes divided by 255, less their mean over the training set, divided by
    their standard deviation; both are taken from the training file, to four digits. Labels are int64 from 0 to 9:
    the digit. The test set is the published one.

    The four published files, compressed with gzip or not, are read from the folder ``mnist`` below ``folder``,
    from ``MNIST/raw`` below it (where torchvision keeps them), or from a ``folder`` that is named. Where they
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
        download: Whether they may be downloaded where they are missing (12 MB), unless the environment variable
            ``DEEP500_OFFLINE`` is set. Nothing is downloaded to a ``folder`` that does not exist.

    Returns:
        The training set and the test set.

    Raises:
        DatasetError: The files are not there (the message says how to get them), damaged, or not the published ones.

    Source: Y. LeCun, L. Bottou, Y. Bengio, P. Haffner, "Gradient-based learning applied to document recognition",
    Proceedings of the IEEE 86(11), 1998.
    """
    return load_idx_images(
        PUBLISHED, input_node, label_node, folder=folder, normalize=normalize, verify=verify, download=download
    )
