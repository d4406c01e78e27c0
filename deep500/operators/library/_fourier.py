"""Complex numbers as ONNX has them, two floats along the last axis."""

from __future__ import annotations

import numpy as np

from deep500.operators.operator import Array

__all__ = ["as_complex", "as_pairs", "resized", "scalar"]


def as_complex(x: Array) -> Array:
    """Return ``[..., 1]`` or ``[..., 2]`` as real or complex numbers ``[...]``; x is float32 or float64."""
    if x.shape[-1] == 1:
        return x[..., 0]
    kind = np.complex64 if x.dtype == np.float32 else np.complex128
    return np.asarray(x[..., 0] + kind(1j) * x[..., 1])


def as_pairs(z: Array, parts: int = 2) -> Array:
    """Return numbers ``[...]`` as ``[..., parts]``: real and imaginary part, or the real part alone."""
    return np.stack([z.real, z.imag][:parts], axis=-1)


def resized(x: Array, size: int, axis: int) -> Array:
    """Return a tensor whose axis has so many elements: the first ones, with zeros after them where they are too few."""
    axis %= x.ndim
    if x.shape[axis] == size:
        return x
    kept = min(size, x.shape[axis])
    place = (*(slice(None),) * axis, slice(kept))
    result = np.zeros((*x.shape[:axis], size, *x.shape[axis + 1 :]), x.dtype)
    result[place] = x[place]
    return result


def scalar(value: Array) -> int:
    """Return the integer that a scalar, or a tensor of one element, holds."""
    return int(value.reshape(-1)[0])
