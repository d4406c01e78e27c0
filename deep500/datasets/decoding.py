"""The one place where compressed images become numbers."""

from __future__ import annotations

import functools
import io
import logging
import struct
import zlib
from collections.abc import Sequence
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deep500.core.errors import DatasetError
from deep500.core.files import read_regular
from deep500.core.requirement import Requirement
from deep500.core.texts import shown_path
from deep500.datasets._pixels import PixelScale

__all__ = ["ImageDecoder", "image_size"]

logger = logging.getLogger(__name__)

#: Decodes small JPEGs six times as fast as Pillow, to the same pixels: both build on libjpeg-turbo.
FAST_JPEG = Requirement("simplejpeg", "images", ("simplejpeg",))

_JPEG_MAGIC = b"\xff\xd8"
_FORMATS = ("JPEG", "PNG", "BMP", "GIF", "TIFF", "WEBP", "PPM")
_FITS = ("crop", "stretch", "exact")

#: What Pillow raises for damaged files.
_DAMAGED = (OSError, SyntaxError, ValueError, TypeError, EOFError, IndexError, struct.error, zlib.error)


class ImageDecoder:
    """Makes arrays ``[C, H, W]`` of one shape from JPEG, PNG and other images of 8 bits a channel.

    It is a function of an image's path, or decodes bytes, also into an array that is there. JPEGs are decoded by
    simplejpeg where it is installed (the extra ``images``), everything else by Pillow; which of both decodes a JPEG
    does not change its pixels.

    Attributes:
        shape: Shape of each image, ``(C, H, W)``.
        dtype: ``"float32"`` or ``"uint8"``.

    Example:
        >>> decoder = ImageDecoder(224, resize=256, mean=(0.5, 0.5, 0.5), standard_deviation=(0.25, 0.25, 0.25))
        >>> decoder.shape, decoder.dtype
        ((3, 224, 224), 'float32')
    """

    def __init__(
        self,
        size: int | tuple[int, int],
        *,
        channels: int = 3,
        fit: str = "crop",
        resize: int | None = None,
        dtype: str = "float32",
        mean: Sequence[float] | None = None,
        standard_deviation: Sequence[float] | None = None,
    ) -> None:
        """Say what images become.

        Args:
            size: Height and width; one number for both.
            channels: 3 for red, green and blue, 1 for brightness.
            fit: What happens to an image of another size: ``"crop"`` scales it so that it covers the size and takes
                the centre, ``"stretch"`` scales height and width separately, ``"exact"`` refuses it. Scaling is
                bilinear over the area that a pixel covers (Pillow's).
            resize: With ``"crop"``: to what the shorter side is scaled before the centre is taken, such as 256 for a
                size of 224; by default as little as covers the size.
            dtype: ``"float32"``: the bytes divided by 255, less ``mean``, divided by ``standard_deviation``.
                ``"uint8"``: the bytes.
            mean: Mean of each channel, from 0 to 1; zeros by default.
            standard_deviation: Standard deviation of each channel; ones by default.

        Raises:
            DatasetError: An argument is not accepted.
        """
        height, width = size if isinstance(size, (tuple, list)) and len(size) == 2 else (size, size)
        for name, value in (("size", height), ("size", width), ("resize", 1 if resize is None else resize)):
            if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or not 1 <= value <= 65_535:
                raise DatasetError(f"{name} was given as {value!r}; accepted are whole numbers from 1 to 65,535.")
        if channels not in (1, 3):
            raise DatasetError(f"channels was given as {channels!r}; accepted are 3 (colour) and 1 (brightness).")
        if fit not in _FITS:
            raise DatasetError(f"fit was given as {fit!r}; accepted are {', '.join(map(repr, _FITS))}.")
        if resize is not None and (fit != "crop" or resize < max(height, width)):
            raise DatasetError(
                f"resize was given as {resize} with fit={fit!r} and size {height} x {width}; it goes with fit='crop', "
                f"and must cover the size."
            )
        self._scale = PixelScale(channels, mean, standard_deviation, dtype)
        self.shape = (int(channels), int(height), int(width))
        self.dtype = dtype
        self._fit = fit
        self._resize = resize

    def __call__(self, path: str | PathLike[str]) -> NDArray[Any]:
        """Return the image of a file.

        Raises:
            DatasetError: It cannot be read or decoded.
        """
        try:
            content = read_regular(path)
        except OSError as error:
            raise DatasetError(f"{shown_path(path)} cannot be read: {error.strerror or error}.") from error
        return self.decode(content, shown_path(path))

    def decode(self, content: bytes, where: str = "the image") -> NDArray[Any]:
        """Return the image that a file's bytes hold.

        Args:
            content: The bytes.
            where: What they are, for messages.

        Raises:
            DatasetError: They are truncated, damaged, or no image of a known format.
        """
        out = np.empty(self.shape, self.dtype)
        self.decode_into(content, out, where)
        return out

    def decode_into(self, content: bytes, out: NDArray[Any], where: str = "the image") -> None:
        """Decode an image into an array of :attr:`shape` and :attr:`dtype`; see :meth:`decode`."""
        self.place(_pixels(content, self.shape[0], where), out, where)

    def place(self, pixels: NDArray[np.uint8], out: NDArray[Any], where: str = "the image") -> None:
        """Fit pixels ``[H, W, C]`` into an array of :attr:`shape` and :attr:`dtype`.

        Raises:
            DatasetError: Their size is another, and ``fit`` is ``"exact"``.
        """
        if pixels.shape[:2] != self.shape[1:] or self._resize is not None:
            if self._fit == "exact":
                raise DatasetError(
                    f"{where} has {pixels.shape[0]} x {pixels.shape[1]} pixels; accepted are {self.shape[1]} x "
                    f"{self.shape[2]}. With fit='crop' or 'stretch' it is scaled."
                )
            pixels = self._fitted(pixels)
        self._scale.apply(pixels.transpose(2, 0, 1), out)

    def _fitted(self, pixels: NDArray[np.uint8]) -> NDArray[np.uint8]:
        from PIL import Image

        height, width = pixels.shape[:2]
        _, wanted_height, wanted_width = self.shape
        box: tuple[float, float, float, float] = (0, 0, width, height)
        if self._fit == "crop":
            if self._resize is None:
                scale = max(wanted_height / height, wanted_width / width)
            else:
                scale = self._resize / min(height, width)
            # What is seen, in pixels of the original, around its centre.
            across, down = min(wanted_width / scale, width), min(wanted_height / scale, height)
            left, top = (width - across) / 2, (height - down) / 2
            box = (left, top, min(left + across, width), min(top + down, height))
        image = Image.fromarray(pixels[:, :, 0] if pixels.shape[2] == 1 else pixels)
        scaled = np.asarray(image.resize((wanted_width, wanted_height), Image.Resampling.BILINEAR, box=box))
        return scaled.reshape(wanted_height, wanted_width, -1)


def image_size(content: bytes, where: str = "the image") -> tuple[int, int]:
    """Return height and width of an image, from its header.

    Raises:
        DatasetError: It is no image of a known format.
    """
    from PIL import Image

    try:
        with Image.open(io.BytesIO(content), formats=_FORMATS) as image:
            return int(image.height), int(image.width)
    except (*_DAMAGED, Image.DecompressionBombError) as error:
        raise _undecodable(content, where, error) from error


#: Larger images are left to Pillow, which refuses those that are made to use up the memory.
_MOST_FAST_PIXELS = 178_956_970


@functools.cache
def _fast_jpeg() -> Any:
    """Return simplejpeg, ``None`` where it is not installed."""
    if not FAST_JPEG.is_installed():
        return None
    import simplejpeg

    return simplejpeg


def _pixels(content: bytes, channels: int, where: str) -> NDArray[np.uint8]:
    """Decode an image to ``[H, W, C]``."""
    fast = _fast_jpeg() if content[:2] == _JPEG_MAGIC else None
    if fast is not None:
        try:
            # Both libraries agree on these; of four colours for printing they make different ones.
            height, width, colours = fast.decode_jpeg_header(content)[:3]
            if colours in ("YCbCr", "Gray") and height * width <= _MOST_FAST_PIXELS:
                pixels: NDArray[np.uint8] = fast.decode_jpeg(content, "RGB" if channels == 3 else "GRAY")
                return pixels
        except ValueError as error:
            logger.debug("%s is left to Pillow: %s", where, error)
    return _pixels_by_pillow(content, channels, where)


def _pixels_by_pillow(content: bytes, channels: int, where: str) -> NDArray[np.uint8]:
    from PIL import Image

    mode = "RGB" if channels == 3 else "L"
    try:
        with Image.open(io.BytesIO(content), formats=_FORMATS) as image:
            if image.mode.startswith(("I", "F")):
                raise DatasetError(
                    f"{where} has more than 8 bits a channel (mode {image.mode!r}); convert it to 8 bits first."
                )
            if channels == 1:
                image.draft("L", image.size)  # a JPEG's own brightness, as simplejpeg takes it
            return np.asarray(image.convert(mode)).reshape(image.height, image.width, channels)
    except DatasetError:
        raise
    except (*_DAMAGED, Image.DecompressionBombError) as error:
        raise _undecodable(content, where, error) from error


def _undecodable(content: bytes, where: str, error: BaseException) -> DatasetError:
    begins = content[:8].hex(" ") or "nothing"
    return DatasetError(
        f"{where} cannot be decoded: it is truncated, damaged, or no image ({len(content):,} bytes that begin with "
        f"{begins}): {error}. Accepted are {', '.join(_FORMATS)}."
    )
