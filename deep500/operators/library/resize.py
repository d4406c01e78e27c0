"""ONNX Resize."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from deep500.core.errors import OperatorError
from deep500.operators import attributes
from deep500.operators.library._resampling import Axis, resampled, resampled_backward, source_positions, taps_of
from deep500.operators.library._tensors import (
    check_dtypes,
    compute_dtype,
    is_float,
    normalise_axis,
    present,
    returned,
    take_inputs,
)
from deep500.operators.operator import Array, Operator, OptionalArray

__all__ = ["Resize"]

_NAME = "Resize"
_TRANSFORMATIONS = (
    "half_pixel",
    "half_pixel_symmetric",
    "pytorch_half_pixel",
    "align_corners",
    "asymmetric",
    "tf_crop_and_resize",
)
_NEAREST = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")


class Resize(Operator):
    r"""Another number of elements along some axes, interpolated between those of the input.

    .. math::
        Y_{\dots,p,\dots} = \sum_t w_{p,t}\, X_{\dots,\,i_{p,t},\,\dots}

    along one axis after the other, with weights w of the elements i around the position in X that p stands for.

    Inputs: X, for the mode ``"nearest"`` of any dtype, else a float or an integer (rounded and limited to its range);
    roi, floats ``[2n]``, that only ``"tf_crop_and_resize"`` reads; one of scales, float32 ``[n]``, and sizes, int64
    ``[n]``, for the n axes. Output: X's dtype. With scales the output has ``floor(D * scale)`` elements. Elements
    outside of X are those at its edge. 16-bit floats are computed in float32.

    ``exclude_outside`` says nothing about the one element that ``"nearest"`` takes, and ``antialias`` neither.
    "pytorch_half_pixel" puts the only element of an axis at 0, as the specification says (its reference, at -0.5).

    Source: ONNX Resize, version 19.
    """

    def __init__(
        self,
        *,
        mode: str = "nearest",
        coordinate_transformation_mode: str = "half_pixel",
        nearest_mode: str = "round_prefer_floor",
        cubic_coeff_a: float = -0.75,
        exclude_outside: int = 0,
        extrapolation_value: float = 0.0,
        antialias: int = 0,
        axes: Sequence[int] | None = None,
        keep_aspect_ratio_policy: str = "stretch",
    ) -> None:
        """Set the attributes.

        Args:
            mode: ``"nearest"``, ``"linear"`` or ``"cubic"``.
            coordinate_transformation_mode: Which position in X an element of the output stands for.
            nearest_mode: How ``"nearest"`` rounds: ``"round_prefer_floor"``, ``"round_prefer_ceil"``, ``"floor"`` or
                ``"ceil"``.
            cubic_coeff_a: The coefficient a of the cubic kernel.
            exclude_outside: 1 to leave elements outside of X out, instead of repeating the edge.
            extrapolation_value: What ``"tf_crop_and_resize"`` gives for positions outside of X.
            antialias: 1 to widen the kernel where the output has fewer elements.
            axes: Those that roi, scales and sizes speak of; by default all.
            keep_aspect_ratio_policy: ``"stretch"``, ``"not_larger"`` or ``"not_smaller"`` than sizes.

        Raises:
            OperatorError: An attribute is not what is accepted.
        """
        self.mode = attributes.choice(_NAME, "mode", mode, ("nearest", "linear", "cubic"))
        self.transformation = attributes.choice(
            _NAME, "coordinate_transformation_mode", coordinate_transformation_mode, _TRANSFORMATIONS
        )
        self.nearest_mode = attributes.choice(_NAME, "nearest_mode", nearest_mode, _NEAREST)
        self.cubic = attributes.real(_NAME, "cubic_coeff_a", cubic_coeff_a)
        self.exclude_outside = attributes.flag(_NAME, "exclude_outside", exclude_outside)
        self.extrapolation_value = attributes.real(_NAME, "extrapolation_value", extrapolation_value)
        self.antialias = attributes.flag(_NAME, "antialias", antialias)
        self.axes = attributes.integers(_NAME, "axes", axes)
        policies = ("stretch", "not_larger", "not_smaller")
        self.policy = attributes.choice(_NAME, "keep_aspect_ratio_policy", keep_aspect_ratio_policy, policies)

    def forward(self, inputs: Sequence[OptionalArray]) -> tuple[Array, ...]:
        """Compute the output.

        Raises:
            OperatorError: Both or neither of scales and sizes are there, their lengths do not fit, or the dtype does
                not allow the mode.
        """
        x, axes = self._read(inputs)
        if self.mode == "nearest":
            y = x
            for axis in axes:
                y = np.take(y, axis.taps.element[:, 0], axis=axis.number)
        else:
            y = x.astype(compute_dtype(x.dtype) if is_float(x.dtype) else np.float64, copy=False)
            with np.errstate(all="ignore"):
                for axis in axes:
                    y = resampled(y, axis)
        outside = _outside(axes, y.ndim)
        if outside is not None:
            y = np.where(outside, np.asarray(self.extrapolation_value).astype(y.dtype), y)
        return (_converted(y, x.dtype) if y is not x else x.copy(),)

    @np.errstate(all="ignore")
    def backward(
        self, grads: Sequence[OptionalArray], fwd_inputs: Sequence[OptionalArray], fwd_outputs: Sequence[OptionalArray]
    ) -> tuple[OptionalArray, ...]:
        """Compute the gradient by X: that of every element is shared out over those of which it is the sum."""
        x, axes = self._read(fwd_inputs)
        if grads[0] is None or not is_float(x.dtype):
            return (None,) * len(fwd_inputs)
        by_x = np.asarray(grads[0]).astype(compute_dtype(x.dtype), copy=False)
        outside = _outside(axes, x.ndim)
        if outside is not None:
            by_x = np.where(outside, 0, by_x)
        for axis in reversed(axes):
            by_x = resampled_backward(by_x, axis)
        return returned([by_x, None, None, None], fwd_inputs)

    def _read(self, inputs: Sequence[OptionalArray]) -> tuple[Array, list[Axis]]:
        """Check the inputs; return X, and what becomes of every axis that changes."""
        received = take_inputs(_NAME, inputs, ["X"], ["roi", "scales", "sizes"])
        x, roi, scales, sizes = present(received[0]), *received[1:]
        if self.mode != "nearest":
            check_dtypes(_NAME, ["X"], [x], "numbers")
        numbers = [normalise_axis(_NAME, a, x.ndim, name="an entry of axes") for a in self.axes or range(x.ndim)]
        # Before version 13 of the operator, scales that are not wanted were an empty tensor.
        scales = None if scales is None or (scales.size == 0 and numbers) else scales
        sizes = None if sizes is None or (sizes.size == 0 and numbers) else sizes
        if (scales is None) == (sizes is None):
            raise OperatorError(
                f"{_NAME}: received {'both' if scales is not None else 'neither of'} scales and sizes; accepted is one."
            )
        for name, tensor, length in (("scales", scales, len(numbers)), ("sizes", sizes, len(numbers))):
            if tensor is not None and tensor.shape != (length,):
                raise OperatorError(f"{_NAME}: received {name} of shape {tensor.shape}; accepted is ({length},).")
        crops = self.transformation == "tf_crop_and_resize"
        if crops and (roi is None or roi.shape != (2 * len(numbers),)):
            shape = None if roi is None else roi.shape
            raise OperatorError(
                f"{_NAME}: received roi of shape {shape}; tf_crop_and_resize accepts ({2 * len(numbers)},)."
            )
        old = [x.shape[number] for number in numbers]
        factors, new = self._scaled(old, scales, sizes)
        axes = []
        for i, number in enumerate(numbers):
            region = (float(present(roi)[i]), float(present(roi)[i + len(numbers)])) if crops else (0.0, 1.0)
            if new[i] == old[i] and (new[i] == 0 or (factors[i] == 1 and region == (0.0, 1.0))):
                continue
            axes.append(self._axis(number, old[i], new[i], factors[i], region))
        return x, axes

    def _scaled(self, old: Sequence[int], scales: OptionalArray, sizes: OptionalArray) -> tuple[list[float], list[int]]:
        """Return scale and new size of every axis of which the inputs speak."""
        if scales is not None:
            factors = [float(scale) for scale in scales]
            new = [int(np.floor(scale * size)) if scale > 0 else -1 for scale, size in zip(factors, old, strict=True)]
        else:
            new = [int(size) for size in present(sizes)]
            factors = [size / max(1, before) for size, before in zip(new, old, strict=True)]
            if self.policy != "stretch" and factors:
                common = min(factors) if self.policy == "not_larger" else max(factors)
                factors = [common] * len(old)
                new = [int(common * size + 0.5) for size in old]
        if any(n < 0 or (n > 0 and before == 0) for n, before in zip(new, old, strict=True)):
            given = f"scales {scales.tolist()}" if scales is not None else f"sizes {present(sizes).tolist()}"
            raise OperatorError(
                f"{_NAME}: received {given} for axes of {list(old)} elements; accepted are scales above 0 and sizes "
                f"from 0 on, and 0 for an empty axis."
            )
        return factors, new

    def _axis(self, number: int, old: int, new: int, scale: float, region: tuple[float, float]) -> Axis:
        position = source_positions(self.transformation, old, new, scale, region)
        outside = None
        if self.transformation == "tf_crop_and_resize":
            outside = (position < 0) | (position > old - 1)
            outside = outside if outside.any() else None
        mode = self.nearest_mode if self.mode == "nearest" else self.mode
        kernel_scale = min(scale, 1.0) if self.antialias else 1.0
        taps = taps_of(mode, position, old, kernel_scale, self.cubic, exclude_outside=self.exclude_outside)
        return Axis(number, old, taps, outside)


def _outside(axes: Sequence[Axis], rank: int) -> OptionalArray:
    """Return which elements of the output lie outside of the input along any axis, or ``None`` for none of them."""
    found = None
    for axis in axes:
        if axis.outside is not None:
            part = axis.outside.reshape(-1, *(1,) * (rank - 1 - axis.number))
            found = part if found is None else found | part
    return found


def _converted(y: Array, dtype: np.dtype[Any]) -> Array:
    """Return the result in another dtype: integers are rounded, and limited to their range."""
    if y.dtype == dtype or dtype.kind not in "iu":
        return y.astype(dtype, copy=False)
    limits = np.iinfo(dtype)
    # The largest 64-bit integers are not floats: what lies above is set after the conversion.
    rounded = np.clip(np.nan_to_num(np.rint(y)), float(limits.min), np.nextafter(float(limits.max), 0))
    exact = np.clip(np.nan_to_num(np.rint(y)), limits.min, limits.max) if dtype.itemsize < 8 else rounded
    result = exact.astype(dtype)
    return np.where(y >= float(limits.max), limits.max, result).astype(dtype, copy=False)
