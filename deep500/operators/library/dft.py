"""ONNX DFT."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from deep500.core.errors import OperatorError
from deep500.operators import attributes
from deep500.operators.library._fourier import as_complex, as_pairs, resized, scalar
from deep500.operators.library._tensors import (
    check_dtypes,
    compute_dtype,
    normalise_axis,
    present,
    returned,
    take_inputs,
)
from deep500.operators.operator import Array, Operator, OptionalArray

__all__ = ["DFT"]


class _Read(NamedTuple):
    """The inputs, checked."""

    x: Array
    length: int
    axis: int


class DFT(Operator):
    r"""Discrete Fourier transform along an axis.

    .. math::
        y_k = \sum_{n=0}^{N-1} e^{-2 \pi j k n / N} x_n, \quad \text{or inverse} \quad
        x_n = \frac{1}{N} \sum_{k=0}^{N-1} e^{2 \pi j k n / N} y_k

    Inputs: input ``[..., 1]`` (real) or ``[..., 2]`` (real and imaginary part); optionally dft_length, the N to which
    the axis is cut off or filled with zeros, and axis, by default -2; both integer scalars. Output ``[..., 2]``. With
    ``onesided`` a real input gives the first ``N // 2 + 1`` numbers, and inverse, such complex numbers give a real
    output ``[..., 1]`` of N, by default twice their number less 2. 16-bit floats are computed in float32.

    The gradient of such an inverse by the imaginary parts that a real signal does not have, of the first number and of
    the middle one, is 0.

    Source: ONNX DFT, version 20.
    """

    def __init__(self, *, inverse: int = 0, onesided: int = 0) -> None:
        """Set the attributes.

        Args:
            inverse: 1 for the inverse transform.
            onesided: 1 to compute, or to take, only one half of what is symmetric.

        Raises:
            OperatorError: An attribute is neither 0 nor 1.
        """
        self.inverse = attributes.flag("DFT", "inverse", inverse)
        self.onesided = attributes.flag("DFT", "onesided", onesided)

    @np.errstate(all="ignore")
    def forward(self, inputs: Sequence[OptionalArray]) -> tuple[Array, ...]:
        """Compute the transform.

        Raises:
            OperatorError: The input is not of floats or of that form, or length or axis is out of range.
        """
        x, length, axis = self._read(inputs)
        z = as_complex(x.astype(compute_dtype(x.dtype), copy=False))
        if self.inverse and self.onesided:
            y = as_pairs(np.fft.irfft(z, length, axis), 1)
        elif self.inverse:
            y = as_pairs(np.fft.ifft(z, length, axis))
        elif self.onesided:
            y = as_pairs(np.fft.rfft(z, length, axis))
        else:
            y = as_pairs(np.fft.fft(z, length, axis))
        return (y.astype(x.dtype, copy=False),)

    @np.errstate(all="ignore")
    def backward(
        self, grads: Sequence[OptionalArray], fwd_inputs: Sequence[OptionalArray], fwd_outputs: Sequence[OptionalArray]
    ) -> tuple[OptionalArray, ...]:
        """Compute the gradient by the input: the adjoint transform of that by the output."""
        if grads[0] is None:
            return (None,) * len(fwd_inputs)
        x, length, axis = self._read(fwd_inputs)
        g = as_complex(np.asarray(grads[0]).astype(compute_dtype(x.dtype), copy=False))
        if self.inverse and self.onesided:
            by_z = np.fft.rfft(g, length, axis) / length
            # All numbers but the first, and but the middle one of an even length, stand for a conjugate as well.
            inner = (*(slice(None),) * axis, slice(1, (length + 1) // 2))
            by_z[inner] *= 2
        elif self.inverse:
            by_z = np.fft.fft(g, length, axis) / length
        else:
            by_z = np.fft.ifft(resized(g, length, axis), length, axis) * length
        by_x = as_pairs(resized(by_z, x.shape[axis], axis), x.shape[-1])
        return returned([by_x, None, None], fwd_inputs)

    def _read(self, inputs: Sequence[OptionalArray]) -> _Read:
        """Check the inputs."""
        received = take_inputs("DFT", inputs, ["input"], ["dft_length", "axis"])
        x, given, number = present(received[0]), received[1], received[2]
        check_dtypes("DFT", ["input"], [x], "floats")
        if x.ndim < 2 or x.shape[-1] not in (1, 2):
            raise OperatorError(f"DFT: received an input of shape {x.shape}; accepted are [..., 1] and [..., 2].")
        if self.onesided and x.shape[-1] != (2 if self.inverse else 1):
            raise OperatorError(
                f"DFT: received an input of shape {x.shape} with onesided; accepted is a real one, [..., 1], and for "
                f"the inverse a complex one, [..., 2]."
            )
        for name, value in (("dft_length", given), ("axis", number)):
            if value is not None and (value.size != 1 or value.dtype.kind not in "iu"):
                raise OperatorError(
                    f"DFT: received {name} of {value.dtype} and shape {value.shape}; accepted is an integer scalar."
                )
        axis = normalise_axis("DFT", -2 if number is None else scalar(number), x.ndim)
        if axis == x.ndim - 1:
            raise OperatorError(f"DFT: axis is {axis}, the one of real and imaginary parts; accepted is one before it.")
        default = 2 * (x.shape[axis] - 1) if self.inverse and self.onesided else x.shape[axis]
        length = default if given is None else scalar(given)
        if length < 1:
            raise OperatorError(f"DFT: the length of the transform is {length}; accepted is a length from 1 on.")
        return _Read(x, length, axis)
