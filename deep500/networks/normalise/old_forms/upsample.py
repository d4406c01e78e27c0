"""Upsample, which Resize replaced, and Resize of opset 10, which knew one way to place its points."""

from __future__ import annotations

import numpy as np

from deep500.networks.normalise.old_form import OldForm, OldNode

__all__ = ["UPSAMPLE"]


def _resize(old: OldNode) -> None:
    """Take the point at ``floor(x / scale)``, or between its neighbours: ``asymmetric``.

    Source: ONNX Upsample-7, Upsample-9, Resize-10, Resize-11 (``coordinate_transformation_mode``, ``nearest_mode``).
    """
    attributes = old.attributes
    if "scales" in attributes:
        scales = old.store(np.asarray(attributes["scales"], np.float32))
    elif "height_scale" in attributes:  # the first form
        scales = old.store(np.float32([1, 1, attributes["height_scale"], attributes["width_scale"]]))
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


UPSAMPLE = (OldForm("Upsample", (1, 9), _resize), OldForm("Resize", (10, 10), _resize))
