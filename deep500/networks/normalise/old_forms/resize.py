"""Resize of opset 10, which knew one way to place its points, and a way that opsets 11 and 12 knew.

tf2onnx writes the latter up to opset 18 all the same, and ONNX Runtime runs it.
"""

from __future__ import annotations

from deep500.networks.normalise.old_form import NEWEST_OPSET, OldForm, OldNode
from deep500.networks.normalise.old_forms._asymmetric import resize_asymmetrically

__all__ = ["RESIZE"]

_MODE = "coordinate_transformation_mode"
_FOR_NEAREST = "tf_half_pixel_for_nn"

#: The points lie half a pixel further than those of ``half_pixel``: the same one is nearest in another rounding.
_ROUNDINGS = {"floor": "round_prefer_ceil", "round_prefer_floor": "ceil"}


def _half_pixel(old: OldNode) -> None:
    """Source: ONNX Resize-11 (``tf_half_pixel_for_nn``: ``(x + 0.5) / scale``)."""
    attributes = old.attributes
    rounding = attributes.get("nearest_mode", "round_prefer_floor")
    if attributes.get("mode", "nearest") != "nearest" or rounding not in _ROUNDINGS:
        raise old.error(f"{_FOR_NEAREST} has one for the nearest modes {' and '.join(_ROUNDINGS)} only")
    attributes.update({_MODE: "half_pixel", "nearest_mode": _ROUNDINGS[rounding]})
    old.finish("Resize", list(old.node.input), **attributes)


def _applies(old: OldNode) -> bool:
    return bool(old.attributes.get(_MODE) == _FOR_NEAREST)


RESIZE = (
    OldForm("Resize", (10, 10), resize_asymmetrically),
    OldForm("Resize", (11, NEWEST_OPSET - 1), _half_pixel, _applies),
)
