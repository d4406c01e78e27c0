"""Images of other brightness, contrast, saturation and hue."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from deep500.core.errors import DatasetError
from deep500.core.texts import shown
from deep500.datasets.augmentation import RandomAugmentation, checked_number, computing_dtype, rounded_to
from deep500.datasets.draws import uniform

__all__ = ["ColourJitter"]

#: Luminance of red, green and blue (ITU-R BT.601), and the two differences of NTSC's YIQ.
_YIQ = np.array([[0.299, 0.587, 0.114], [0.5959, -0.2746, -0.3213], [0.2115, -0.5227, 0.3112]])


class ColourJitter(RandomAugmentation):
    r"""Changes brightness, contrast, saturation and hue of each image at random, in this order.

    With :math:`g(x) = 0.299 r + 0.587 g + 0.114 b` and factors drawn evenly from :math:`1 - a` to :math:`1 + a` of each
    argument :math:`a`: brightness :math:`x_1 = f_b x`; contrast :math:`x_2 = f_c x_1 + (1 - f_c) \overline{g(x_1)}`,
    the mean over the image; saturation :math:`x_3 = f_s x_2 + (1 - f_s) g(x_2)`; hue turns the colours of :math:`x_3`
    in NTSC's YIQ by an angle :math:`2 \pi h`, :math:`h` drawn evenly from :math:`-a` to :math:`a`. All of it is one
    linear map of each pixel, so results are clipped and rounded once: uint8 to 0 .. 255, floating images to
    ``value_range``.

    Images of one channel have no saturation nor hue; brightness and contrast work on any number of channels, contrast
    with the mean over all of them unless there are three.
    """

    def __init__(
        self,
        brightness: float = 0,
        contrast: float = 0,
        saturation: float = 0,
        hue: float = 0,
        value_range: tuple[float, float] | None = (0.0, 1.0),
    ) -> None:
        """Set how much is changed.

        Args:
            brightness: From 0 to 1.
            contrast: From 0 to 1.
            saturation: From 0 to 1.
            hue: From 0 to 0.5, in turns.
            value_range: To what floating images are clipped; ``None`` not to clip.

        Raises:
            DatasetError: An argument is not accepted.
        """
        self.brightness = checked_number("brightness", brightness, 0, 1)
        self.contrast = checked_number("contrast", contrast, 0, 1)
        self.saturation = checked_number("saturation", saturation, 0, 1)
        self.hue = checked_number("hue", hue, 0, 0.5)
        self.value_range = None if value_range is None else _range(value_range)

    def apply(self, images: NDArray[Any]) -> NDArray[Any]:
        """Return the images; for all of them, brightness is drawn first, then contrast, saturation and hue.

        Raises:
            DatasetError: Saturation or hue are to be changed, and the images have not three channels.
        """
        count, channels, height, width = images.shape
        if channels != 3 and (self.saturation or self.hue):
            raise DatasetError(
                f"Saturation and hue are of colours, images [N, 3, H, W]; received {list(images.shape)}. Use "
                f"saturation=0, hue=0."
            )
        draws = 2 * uniform(self.stream, 4, count) - 1
        bright, contrast, saturate = (
            1 + amount * draw for amount, draw in zip((self.brightness, self.contrast, self.saturation), draws)
        )
        dtype = computing_dtype(images.dtype)
        pixels = images.reshape(count, channels, height * width).astype(dtype)
        grey = _YIQ[0] if channels == 3 else np.full(channels, 1 / channels)
        mean = pixels.mean(axis=2, dtype=np.float64) @ grey  # of each image, before its brightness
        maps = np.eye(channels) * (bright * contrast)[:, None, None]
        if channels == 3:
            maps = _hue(self.hue * draws[3]) @ _saturation(saturate) @ maps
        # A grey stays what it is under saturation and hue, so the part that contrast adds need not go through them.
        added = ((1 - contrast) * bright * mean)[:, None, None]
        changed = (maps.astype(dtype) @ pixels + added.astype(dtype)).reshape(images.shape)
        if images.dtype != np.uint8 and self.value_range is not None:
            np.clip(changed, *self.value_range, out=changed)
        return rounded_to(images.dtype, changed)


def _saturation(factors: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return matrices ``[N, 3, 3]`` that take colours towards their grey, or away from it."""
    f = factors[:, None, None]
    matrices: NDArray[np.float64] = f * np.eye(3) + (1 - f) * _YIQ[0]
    return matrices


def _hue(turns: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return matrices ``[N, 3, 3]`` that turn colours around grey."""
    cosine, sine = np.cos(2 * np.pi * turns), np.sin(2 * np.pi * turns)
    turn = np.zeros((len(turns), 3, 3))
    turn[:, 0, 0] = 1
    turn[:, 1, 1] = turn[:, 2, 2] = cosine
    turn[:, 1, 2], turn[:, 2, 1] = -sine, sine
    matrices: NDArray[np.float64] = np.linalg.inv(_YIQ) @ turn @ _YIQ
    return matrices


def _range(value: Any) -> tuple[float, float]:
    if not isinstance(value, (tuple, list)) or len(value) != 2:
        raise DatasetError(f"value_range was given as {shown(value)}; accepted are a pair (least, largest), and None.")
    low, high = (checked_number("value_range", end) for end in value)
    if low >= high:
        raise DatasetError(f"value_range was given as {shown(value)}; the smaller number comes first.")
    return low, high
