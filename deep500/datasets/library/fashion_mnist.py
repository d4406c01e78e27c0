"""Pictures of clothes, 28 x 28."""

from __future__ import annotations

from os import PathLike

from deep500.datasets.dataset import Dataset
from deep500.datasets.library._idx_images import IdxImages, load_idx_images, remote_files

__all__ = ["fashion_mnist"]

#: Sizes and SHA-256 are those of TensorFlow Datasets' url_checksums/fashion_mnist.txt.
PUBLISHED = IdxImages(
    title="Fashion-MNIST",
    folder="fashion_mnist",
    other_folder="FashionMNIST",
    files=remote_files(
        ("http://fashion-mnist.s3-website.eu-central-1.amazonaws.com",),
        {
            "train-images-idx3-ubyte": (26_421_880, "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84"),
            "train-labels-idx1-ubyte": (29_515, "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845"),
            "t10k-images-idx3-ubyte": (4_422_102, "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073"),
            "t10k-labels-idx1-ubyte": (5_148, "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5"),
        },
    ),
)


def fashion_mnist(
    input_node: str = "input",
    label_node: str = "label",
    *,
    folder: str | PathLike[str] | None = None,
    normalize: bool = True,
    verify: bool = True,
    download: bool = True,
) -> tuple[Dataset, Dataset]:
    """Return Fashion-MNIST: 60,000 training and 10,000 test images of 28 x 28 grey pixels in ten classes.

    Images are float32 ``[1, 28, 28]``: the bytes divided by 255, less their mean over the training set, divided by
    their standard deviation; both are taken from the training file, to four digits. Labels are int64 from 0 to 9:
    T-shirt, trouser, pullover, dress, coat, sandal, shirt, sneaker, bag, ankle boot. The test set is the published one.

    The four published files, compressed with gzip or not, are read from the folder ``fashion_mnist`` below ``folder``,
    from ``FashionMNIST/raw`` below it (where torchvision keeps them), or from a ``folder`` that is named. Where they
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
        download: Whether they may be downloaded where they are missing (31 MB), unless the environment variable
            ``DEEP500_OFFLINE`` is set. Nothing is downloaded to a ``folder`` that does not exist.

    Returns:
        The training set and the test set.

    Raises:
        DatasetError: The files are not there (the message says how to get them), damaged, or not the published ones.

    Source: H. Xiao, K. Rasul, R. Vollgraf, "Fashion-MNIST: a novel image dataset for benchmarking machine learning
    algorithms", arXiv:1708.07747, 2017; licence MIT.
    """
    return load_idx_images(
        PUBLISHED, input_node, label_node, folder=folder, normalize=normalize, verify=verify, download=download
    )
