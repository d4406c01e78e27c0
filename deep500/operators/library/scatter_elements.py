"""ONNX ScatterElements."""

from __future__ import annotations

from deep500.operators import attributes
from deep500.operators.library._places import element_places
from deep500.operators.library._scattering import ScatteringOperator
from deep500.operators.operator import Array

__all__ = ["ScatterElements"]


class ScatterElements(ScatteringOperator):
    r"""Write updates to elements along an axis, :math:`y_{n_{i j k} j k} = u_{i j k}` for axis 0.

    Inputs: data of any dtype; indices, integers of the same rank, whose sizes of the other axes are at most those of
    the data; updates, of the indices' shape. Output: a new tensor of data's shape.

    Source: ONNX ScatterElements, version 18.
    """

    def __init__(self, *, axis: int = 0, reduction: str = "none") -> None:
        """Set the attributes.

        Args:
            axis: The axis; negative values count from the back.
            reduction: What becomes of an element and its updates.

        Raises:
            OperatorError: The axis is no integer, or there is no such reduction.
        """
        super().__init__(reduction=reduction)
        self.axis = attributes.integer("ScatterElements", "axis", axis)

    def places(self, shape: tuple[int, ...], indices: Array) -> Array:
        """Return the flat index of the element to which each update goes."""
        return element_places("ScatterElements", shape, indices, self.axis)
