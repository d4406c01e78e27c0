"""How photographs become numbers for networks that were made for ImageNet."""

from __future__ import annotations

from deep500.core.errors import DatasetError
from deep500.datasets.decoding import ImageDecoder

__all__ = ["imagenet_decoder"]

#: Mean and standard deviation of ImageNet's training images, from 0 to 1, for red, green and blue, as torchvision's
#: models take them.
_MEAN = (0.485, 0.456, 0.406)
_STANDARD_DEVIATION = (0.229, 0.224, 0.225)


def imagenet_decoder(size: int, fit: str, resize: int | None, dtype: str, normalize: bool) -> ImageDecoder:
    """Return a decoder that normalises float32 images by ImageNet's statistics.

    Args:
        size: Height and width.
        fit: See :class:`~deep500.datasets.ImageDecoder`.
        resize: See there.
        dtype: ``"float32"``, or ``"uint8"`` for bytes, which are not normalised.
        normalize: Whether to take off the mean and to divide by the standard deviation.

    Raises:
        DatasetError: An argument is not accepted.
    """
    if not isinstance(normalize, bool):
        raise DatasetError(f"normalize was given as {normalize!r}; accepted are True and False.")
    if not normalize or dtype != "float32":
        return ImageDecoder(size, fit=fit, resize=resize, dtype=dtype)
    return ImageDecoder(size, fit=fit, resize=resize, dtype=dtype, mean=_MEAN, standard_deviation=_STANDARD_DEVIATION)
