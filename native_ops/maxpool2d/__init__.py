"""The largest elements of windows over images."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from deep500.core.errors import OperatorError
from deep500.operators.custom.cpp_op import CppOp
from deep500.operators.windows import WindowAttributes
from native_ops._checks import shape_text

__all__ = ["MaxPool2d"]


class MaxPool2d(CppOp):
    r"""The largest element of every window over images, and where it lies.

    .. math::
        Y_{n,c,o,p} = \max_{k,l} X_{n,\, c,\, o s_0 + k d_0 - b_0,\, p s_1 + l d_1 - b_1}

    over the elements that lie in X, with strides :math:`s`, dilations :math:`d` and the pads :math:`b` before the
    image. Input X ``[N, C, H, W]``, float32, float64, bfloat16 or float16; outputs Y ``[N, C, OH, OW]`` in X's dtype,
    and Indices of the same shape, int64: the place of the maximum in the flattened X.

    The first of equal maxima counts, in row-major order, and receives the gradient. A NaN in a window is its maximum,
    the first one if there are several. A window that lies in the padding wholly gives minus infinity, the index -1 and
    no gradient. Differentiable by X; the backward reads the indices only.

    Example:
        >>> import numpy as np
        >>> MaxPool2d(kernel_shape=(2, 2), strides=(2, 2))(np.arange(8.0).reshape(1, 1, 2, 4))
        (array([[[[5., 7.]]]]), array([[[[5, 7]]]]))

    Source: ONNX MaxPool, version 22, with two spatial axes and ``storage_order`` 0.
    """

    name = "maxpool2d"
    source = "maxpool2d.cpp"
    cuda_source = "maxpool2d.cu"
    dtypes = ("float32", "float64", "bfloat16", "float16")

    def __init__(
        self,
        *,
        kernel_shape: Sequence[int],
        strides: Sequence[int] = (1, 1),
        pads: Sequence[int] = (0, 0, 0, 0),
        dilations: Sequence[int] = (1, 1),
        ceil_mode: int = 0,
    ) -> None:
        """Set the attributes.

        Args:
            kernel_shape: Height and width of the windows.
            strides: Distance between windows, down and across.
            pads: Rows and columns around X: ``(top, left, bottom, right)``.
            dilations: Distance between the elements of a window, down and across.
            ceil_mode: 1 to round the number of windows up; one that would start in the padding after X is left out.

        Raises:
            OperatorError: An attribute is not what is accepted.
        """
        windows = _windows(
            kernel_shape=kernel_shape, strides=strides, pads=pads, dilations=dilations, ceil_mode=ceil_mode
        )
        super().__init__(
            kernel_shape=windows.kernel_shape or (),
            strides=windows.strides or (1, 1),
            pads=windows.pads or (0, 0, 0, 0),
            dilations=windows.dilations or (1, 1),
            ceil_mode=windows.ceil_mode,
        )

    @cached_property
    def _windows(self) -> WindowAttributes:
        return _windows(**self._given)

    def example_inputs(self, rng: np.random.Generator, dtype: str, large: bool = False) -> list[Any]:
        """Return X without equal elements; see :meth:`CustomOp.example_inputs`."""
        given = self._given
        image = [(k - 1) * d + (58 if large else 4) for k, d in zip(given["kernel_shape"], given["dilations"])]
        shape = (8, 16, *image) if large else (2, 2, *image)
        return [rng.permutation(np.linspace(-4.0, 4.0, math.prod(shape))).reshape(shape)]

    def infer(self, shapes: Sequence[Any], dtypes: Sequence[Any]) -> tuple[Any, Any]:
        """Return shapes and dtypes of Y and Indices.

        Raises:
            OperatorError: X has another rank than 4, or no window fits into it.
        """
        x = shapes[0]
        if len(x) != 4:
            raise OperatorError(f"maxpool2d: X has the shape {shape_text(x)}; accepted is [N, C, H, W].")
        output = (x[0], x[1], *self._windows.plan(tuple(x[2:])).output)
        return [output, output], [dtypes[0], "int64"]


def _windows(**given: Any) -> WindowAttributes:
    return WindowAttributes("maxpool2d", auto_pad="NOTSET", **given)
