"""Photographs of a thousand kinds of things."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from deep500.datasets._encoded_dataset import EncodedDataset
from deep500.datasets.dataset import Dataset
from deep500.datasets.folder import data_folder, may_download
from deep500.datasets.library._imagenet_decoder import imagenet_decoder
from deep500.datasets.library._imagenet_files import find_images

__all__ = ["imagenet"]


def imagenet(
    input_node: str = "input",
    label_node: str = "label",
    *,
    folder: str | PathLike[str] | None = None,
    mapping: str | PathLike[str] | None = None,
    size: int = 224,
    resize: int | None = None,
    fit: str = "crop",
    normalize: bool = True,
    dtype: str = "float32",
    classes: int | None = None,
) -> tuple[Dataset, Dataset]:
    """Return ImageNet (ILSVRC 2012): 1,281,167 training and 50,000 validation photographs in a thousand classes.

    Images are ``[3, size, size]`` (red, green, blue), scaled and cut as ``fit`` and ``resize`` say (256 for a size of
    224 is usual for validation): float32, the bytes divided by 255, less (0.485, 0.456, 0.406), divided by
    (0.229, 0.224, 0.225); or the bytes. Labels are int64, in the order of the classes' folders' names. To cut training
    images at random, read them larger (``size=256``) and add the augmentation to the sampler.

    Two layouts are read, from the folder ``imagenet`` below ``folder``, or from a ``folder`` that is named:

    - ``train/CLASS/*.JPEG`` and ``val/CLASS/*.JPEG``; or ``val/*.JPEG`` with a file that tells the labels
      (``LOC_val_solution.csv``, ``imagenet_2012_validation_synset_labels.txt`` or ``val.txt``).
    - WebDataset shards, ``*train*.tar`` and ``*val*.tar``, whose samples are an image and a class number
      (``KEY.jpg``, ``KEY.cls``). They are indexed by one pass and never unpacked.

    The images cannot be downloaded without an account. Nothing is written; the listing is kept in memory.

    Args:
        input_node: Name of the network's input that the images are for.
        label_node: Name of the network's input that the labels are for.
        folder: Where it lies; by default, see :func:`deep500.datasets.folder.data_folder`.
        mapping: The file that tells the labels of ``val/*.JPEG``; by default, it is looked for beside them.
        size: Height and width of the images.
        resize: To what the shorter side is scaled before the centre is cut out; by default ``size``.
        fit: ``"crop"``, ``"stretch"`` or ``"exact"``, see :class:`~deep500.datasets.ImageDecoder`.
        normalize: Whether to take off the mean and to divide by the standard deviation; else pixels are from 0 to 1.
        dtype: ``"float32"``, or ``"uint8"`` for the bytes, which are not normalised.
        classes: Number of classes; by default the number of folders, or 1,000 for shards.

    Returns:
        The training set and the validation set.

    Raises:
        DatasetError: The images are not there (the message says how to get them), or not laid out as they should be.

    Source: O. Russakovsky et al., "ImageNet Large Scale Visual Recognition Challenge", IJCV 115, 2015;
    https://image-net.org.
    """
    decoder = imagenet_decoder(size, fit, resize, dtype, normalize)
    may_download(folder, False)  # for its check of the folder
    base = data_folder(folder).absolute()
    train, val, names = find_images(base, None if mapping is None else Path(mapping), folder is not None)
    count = classes if classes is not None else 1000 if names is None else len(names)
    first, second = (
        EncodedDataset(contents, decoder, input_node, labels, label_node, count) for contents, labels in (train, val)
    )
    return first, second
