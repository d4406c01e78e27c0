"""Numbers and the small types that stand for them, by scales and zero points."""

from __future__ import annotations

import torch

from deep500.core.errors import InvalidInputError
from deep500.frameworks.pytorch.lowering._casting import cast, is_small_float, values

__all__ = ["dequantized", "exact", "quantized", "spread_parameter"]

#: Least and greatest number of the integers that numbers are quantised to.
_RANGES = {
    "int2": (-2, 1),
    "int4": (-8, 7),
    "int8": (-128, 127),
    "int16": (-32768, 32767),
    "int32": (-(2**31), 2**31 - 1),
    "uint2": (0, 3),
    "uint4": (0, 15),
    "uint8": (0, 255),
    "uint16": (0, 65535),
}


def spread_parameter(parameter: torch.Tensor, x: torch.Tensor, axis: int, block_size: int) -> torch.Tensor:
    """Return a scale or zero point in a shape that broadcasts to a tensor.

    Args:
        parameter: One number for all of the tensor; a vector, one number an index of the axis; or a tensor with one
            number a block of indices of the axis.
        x: The tensor.
        axis: The axis.
        block_size: Length of a block, 0 where there are no blocks.

    Raises:
        InvalidInputError: The parameter does not fit.
    """
    if parameter.numel() == 1 and parameter.dim() < 2:
        return parameter.reshape(())
    if not -x.dim() <= axis < x.dim():
        raise InvalidInputError(
            f"The axis {axis} was given for a tensor of shape {list(x.shape)}; it has no such axis."
        )
    if block_size:
        spread = parameter.repeat_interleave(block_size, axis).narrow(axis, 0, x.size(axis))
        fits = spread.shape == x.shape
    else:
        sizes = [1] * x.dim()
        sizes[axis] = x.size(axis)
        fits = parameter.dim() == 1 and parameter.numel() == x.size(axis)
        spread = parameter.reshape(sizes) if fits else parameter
    if not fits:
        raise InvalidInputError(
            f"A scale or zero point of shape {list(parameter.shape)} was given for a tensor of shape {list(x.shape)}, "
            f"axis {axis} and block_size {block_size}; accepted are one number, one number an index of the axis, or "
            f"with block_size one number a block."
        )
    return spread


def exact(x: torch.Tensor, name: str | None) -> torch.Tensor:
    """Return what a quantised tensor holds as float64, in which all of them are exact."""
    return values(x, name).to(torch.float64)


def quantized(
    scaled: torch.Tensor, zero_point: torch.Tensor | None, target: str, saturate: bool = True
) -> torch.Tensor:
    """Return numbers that were divided by their scale in the type that they are quantised to.

    Integers are rounded, of two equally near ones to the even one, then moved by the zero point and kept within the
    type's range; what is no number becomes the least one.

    Args:
        scaled: The numbers.
        zero_point: What 0 becomes, as :func:`exact` gives it; ``None`` for 0.
        target: The type.
        saturate: Whether floats of 8 bits saturate.
    """
    if is_small_float(target):
        moved = scaled if zero_point is None else scaled.to(torch.float64) + zero_point
        return cast(moved, None, target, saturate)
    least, most = _RANGES[target]
    rounded = torch.round(scaled.to(torch.float64))
    if zero_point is not None:
        rounded = rounded + zero_point
    return cast(torch.clamp(rounded, least, most).nan_to_num(least), None, target)


def dequantized(
    x: torch.Tensor, name: str | None, scale: torch.Tensor, zero_point: torch.Tensor | None
) -> torch.Tensor:
    """Return ``(x - zero_point) scale`` in float32, or in float64 for a scale of that.

    Args:
        x: The quantised tensor.
        name: Its element type.
        scale: The scale, in a shape that broadcasts.
        zero_point: What stands for 0, as :func:`exact` gives it; ``None`` for 0.
    """
    numbers = exact(x, name)
    if zero_point is not None:
        numbers = numbers - zero_point
    return numbers.to(torch.float32) * values(scale, None).to(torch.float32)
