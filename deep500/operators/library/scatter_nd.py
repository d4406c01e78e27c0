"""ONNX ScatterND."""

from __future__ import annotations

from deep500.operators.library._places import slice_places
from deep500.operators.library._scattering import ScatteringOperator
from deep500.operators.operator import Array

__all__ = ["ScatterND"]


class ScatterND(ScatteringOperator):
    """Write updates to elements or slices at places that are given by several indices each.

    Inputs: data of any dtype; indices, integers ``[..., n]``, each row the first n indices of a slice; updates, the
    slices. Output: a new tensor of data's shape.

    Source: ONNX ScatterND, version 18.
    """

    def places(self, shape: tuple[int, ...], indices: Array) -> Array:
        """Return the flat index of the element to which each update goes."""
        return slice_places("ScatterND", shape, indices)
