"""The one way in which Upsample, and Resize of opset 10, placed their points."""

from __future__ import annotations

import numpy as np

from deep500.networks.normalise.old_form import OldNode

__all__ = ["resize_asymmetrically"]


def resize_asymmetrically(old: OldNode) -> None:
    """Take the point at ``floor(x / scale)``, or between its neighbours: ``asymmetric``.

    Source: ONNX Upsample-7, Upsample-9, Resize-10, Resize-11 (``coordinate_transformation_mode``, ``nearest_mode``).
    """
    attributes = old.attributes
    if "scales" in attributes:
        scales = old.store(np.asarray(attributes["scales"], np.float32))
    elif "height_scale" in attributes:  # the first form
        factors = [1, 1, attributes["height_scale"], attributes.get("width_scale", 1)]
        scales = old.store(np.asarray(factors, np.float32))
    else:
        scales = old.given(1)
    mode = attributes.get("mode", "nearest")
    old.finish(
        "Resize",
        [old.given(0), "", scales],
        mode={"bilinear": "linear"}.get(mode, mode),
        coordinate_transformation_mode="asymmetric",
        nearest_mode="floor" if mode == "nearest" else None,
    )
