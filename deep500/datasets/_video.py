"""The one place where videos become frames."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from deep500.core.errors import DatasetError
from deep500.core.requirement import Requirement
from deep500.core.texts import shown_path

__all__ = ["read_video", "spread"]

PYAV = Requirement("av", "video", ("av",))


def spread(count: int, wanted: int) -> NDArray[np.int64]:
    """Return the numbers of frames that are spread evenly over a video, each in the middle of its part.

    Args:
        count: How many frames the video has; frames occur more than once when it has fewer than are wanted.
        wanted: How many are wanted.
    """
    return ((2 * np.arange(wanted, dtype=np.int64) + 1) * count) // (2 * wanted)


def read_video(path: str, frames: int) -> list[NDArray[np.uint8]]:
    """Return some frames of a video, each ``[H, W, 3]``.

    Args:
        path: The file.
        frames: How many, evenly spread; see :func:`spread`.

    Raises:
        MissingDependencyError: PyAV is not installed.
        DatasetError: The file cannot be read, or has no frames.
    """
    PYAV.require(f"Reading the video {shown_path(path)}")
    import av

    try:
        with av.open(path) as container:
            if not container.streams.video:
                raise DatasetError(f"{shown_path(path)} holds no video.")
            stream = container.streams.video[0]
            stream.thread_type = "SLICE"  # no threads of its own: the input pipeline has them
            # How many frames there are is known for sure only after decoding; they are kept as the codec made them,
            # half the size, and the wanted ones alone become colours.
            decoded: list[Any] = list(container.decode(stream))
            if not decoded:
                raise DatasetError(f"{shown_path(path)} holds no frames.")
            return [decoded[number].to_ndarray(format="rgb24") for number in spread(len(decoded), frames)]
    except (av.error.FFmpegError, OSError, EOFError, ValueError) as error:
        if isinstance(error, DatasetError):
            raise
        raise DatasetError(
            f"{shown_path(path)} cannot be decoded: it is truncated, damaged or no video: {error}"
        ) from error
