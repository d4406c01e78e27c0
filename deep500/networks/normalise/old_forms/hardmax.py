"""Hardmax before opset 13, which took all dimensions from one on for classes."""

from __future__ import annotations

from deep500.networks.normalise.old_form import OldForm, OldNode

__all__ = ["HARDMAX"]


def _flatten(old: OldNode) -> None:
    """Flatten to a matrix, and give the result the shape of the input.

    The version converter says only what the axis was. Source: ONNX Hardmax-11 ("coerced into a 2-dimensional tensor").
    """
    x, axis = old.given(0), old.attributes.get("axis", 1)
    shape = old.shape(x)
    if shape is not None and axis in (-1, len(shape) - 1):
        old.finish("Hardmax", [x], axis=-1)
        return
    rows = old.add("Flatten", [x], axis=axis)
    old.finish("Reshape", [old.add("Hardmax", [rows], axis=-1), old.add("Shape", [x])], allowzero=1)


HARDMAX = (OldForm("Hardmax", (1, 12), _flatten),)
