"""Convolution of images."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from deep500.core.errors import OperatorError
from deep500.operators import attributes
from deep500.operators.custom.cpp_op import CppOp
from deep500.operators.windows import WindowAttributes
from native_ops._checks import check_shape, differs, shape_text

__all__ = ["Conv2d"]


class Conv2d(CppOp):
    r"""Convolution (cross-correlation) of images in groups, computed directly, without a matrix of columns.

    .. math::
        Y_{n,m,o,p} = B_m + \sum_{c,k,l} W_{m,c,k,l}\, X_{n,\, c,\, o s_0 + k d_0 - b_0,\, p s_1 + l d_1 - b_1}

    with strides :math:`s`, dilations :math:`d`, the pads :math:`b` before the image, and zeros outside of X. Inputs X
    ``[N, C, H, W]``, W ``[M, C / groups, KH, KW]`` and B ``[M]``, which may be ``None``; output Y ``[N, M, OH, OW]``
    with

    .. math::
        OH = \lfloor (H + b_0 + e_0 - (KH - 1) d_0 - 1) / s_0 \rfloor + 1

    and the pads :math:`e` after it. All have one dtype: float32, float64, bfloat16 or float16; 16-bit floats are
    multiplied and added in float32. Differentiable by X, W and B; gradients by W and B are summed over the images in
    float64. The code multiplies padding by weights and gradients by neighbours: where a tensor holds infinities or
    NaN, more results than the formula's may be NaN.

    Example:
        >>> import numpy as np
        >>> x = np.arange(9.0).reshape(1, 1, 3, 3)
        >>> Conv2d(strides=(2, 2), pads=(1, 1, 1, 1))(x, np.ones((1, 1, 3, 3)), None)
        array([[[[ 8., 12.],
                 [20., 24.]]]])

    Source: ONNX Conv, version 22, with two spatial axes.
    """

    name = "conv2d"
    source = "conv2d.cpp"
    cuda_source = "conv2d.cu"
    dtypes = ("float32", "float64", "bfloat16", "float16")

    def __init__(
        self,
        *,
        strides: Sequence[int] = (1, 1),
        pads: Sequence[int] = (0, 0, 0, 0),
        dilations: Sequence[int] = (1, 1),
        groups: int = 1,
    ) -> None:
        """Set the attributes.

        Args:
            strides: Distance between windows, down and across.
            pads: Rows and columns of zeros around X: ``(top, left, bottom, right)``.
            dilations: Distance between the elements of a window, down and across.
            groups: Number of groups into which channels and feature maps are divided.

        Raises:
            OperatorError: An attribute is not what is accepted.
        """
        windows = _windows(strides, pads, dilations)
        super().__init__(
            strides=windows.strides or (1, 1),
            pads=windows.pads or (0, 0, 0, 0),
            dilations=windows.dilations or (1, 1),
            groups=attributes.integer("conv2d", "groups", groups, minimum=1),
        )

    @cached_property
    def _windows(self) -> WindowAttributes:
        return _windows(self._given["strides"], self._given["pads"], self._given["dilations"])

    def example_inputs(self, rng: np.random.Generator, dtype: str, large: bool = False) -> list[Any]:
        """Return X, W and B; see :meth:`CustomOp.example_inputs`."""
        groups = self._given["groups"]
        images, channels, maps, more = (4, 16 * groups, 24 * groups, 28) if large else (2, 2 * groups, 3 * groups, 4)
        image = [2 * dilation + 1 + more for dilation in self._given["dilations"]]
        weight = rng.standard_normal((maps, channels // groups, 3, 3))
        return [rng.standard_normal((images, channels, *image)), weight, rng.standard_normal(maps)]

    def infer(self, shapes: Sequence[Any], dtypes: Sequence[Any]) -> tuple[Any, Any]:
        """Return shape and dtype of Y.

        Raises:
            OperatorError: The shapes of X, W and B do not fit to one another or to the attributes.
        """
        x, weight, bias = shapes
        groups = self._given["groups"]
        if len(x) != 4 or len(weight) != 4:
            raise OperatorError(
                f"conv2d: X has the shape {shape_text(x)} and W {shape_text(weight)}; accepted are X [N, C, H, W] and "
                f"W [M, C / groups, KH, KW]."
            )
        maps = weight[0]
        if differs(x[1], weight[1] * groups) or (isinstance(maps, int) and maps % groups):
            raise OperatorError(
                f"conv2d: X has the shape {shape_text(x)} and W {shape_text(weight)} with groups={groups}; accepted "
                f"are {groups} times as many channels in X as in W, and a number of feature maps that {groups} divides."
            )
        if any(isinstance(size, int) and size < 1 for size in weight[2:]):
            raise OperatorError(f"conv2d: W has the shape {shape_text(weight)}; accepted are kernels without zeros.")
        if bias is not None:
            check_shape("conv2d", "B", bias, (maps,), ", one entry a feature map")
        windows = self._windows.plan(tuple(x[2:]), tuple(weight[2:]))
        return [(x[0], maps, *windows.output)], [dtypes[0]]


def _windows(strides: Any, pads: Any, dilations: Any) -> WindowAttributes:
    return WindowAttributes(
        "conv2d", kernel_shape=None, strides=strides, pads=pads, dilations=dilations, auto_pad="NOTSET"
    )
