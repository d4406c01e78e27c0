"""ONNX STFT."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from deep500.core.errors import OperatorError
from deep500.operators import attributes
from deep500.operators.library._fourier import as_complex, as_pairs, resized, scalar
from deep500.operators.library._tensors import check_dtypes, compute_dtype, present, returned, take_inputs
from deep500.operators.operator import Array, Operator, OptionalArray

__all__ = ["STFT"]


class _Read(NamedTuple):
    """The inputs, checked, in the dtype to compute in."""

    signal: Array  # real or complex, [N, L]
    places: Array  # the elements of every frame, [frames, frame length]
    window: OptionalArray


class STFT(Operator):
    r"""Short-time Fourier transform: the discrete Fourier transform of every frame of a signal, times a window.

    .. math::
        y_{n,f,k} = \sum_{m=0}^{M-1} e^{-2 \pi j k m / M}\, w_m\, s_{n,\,f \cdot \text{step} + m}

    Inputs: signal ``[N, L, 1]`` (real) or ``[N, L, 2]`` (real and imaginary part); frame_step, an integer scalar;
    optionally window ``[M]`` of the signal's dtype, by default ones, and frame_length, the integer M, by default the
    window's length or else L. Output ``[N, frames, K, 2]`` with ``frames = (L - M) // step + 1``, and K = M, or
    ``M // 2 + 1`` with ``onesided``, which a complex signal does not allow. 16-bit floats are computed in float32.

    Source: ONNX STFT, version 17.
    """

    def __init__(self, *, onesided: int = 1) -> None:
        """Set the attribute.

        Args:
            onesided: 1 to compute only one half of what is symmetric for real signals.

        Raises:
            OperatorError: It is neither 0 nor 1.
        """
        self.onesided = attributes.flag("STFT", "onesided", onesided)

    @np.errstate(all="ignore")
    def forward(self, inputs: Sequence[OptionalArray]) -> tuple[Array, ...]:
        """Compute the transform of every frame.

        Raises:
            OperatorError: Shapes or dtypes do not fit, or a length is out of range.
        """
        signal, places, window = self._read(inputs)
        frames = signal[:, places]
        if window is not None:
            frames = frames * window
        y = np.fft.rfft(frames, axis=2) if self.onesided else np.fft.fft(frames, axis=2)
        return (as_pairs(y).astype(np.asarray(inputs[0]).dtype, copy=False),)

    @np.errstate(all="ignore")
    def backward(
        self, grads: Sequence[OptionalArray], fwd_inputs: Sequence[OptionalArray], fwd_outputs: Sequence[OptionalArray]
    ) -> tuple[OptionalArray, ...]:
        """Compute the gradients by the signal, whose frames may overlap, and by the window."""
        if grads[0] is None:
            return (None,) * len(fwd_inputs)
        signal, places, window = self._read(fwd_inputs)
        x = np.asarray(fwd_inputs[0])
        length = places.shape[1]
        g = as_complex(np.asarray(grads[0]).astype(signal.real.dtype, copy=False))
        by_frames = np.fft.ifft(resized(g, length, 2), axis=2) * length
        by_window: OptionalArray = None
        if window is not None:
            # The derivative of a real number: real and imaginary parts add up.
            by_window = (by_frames * np.conj(signal[:, places])).real.sum(axis=(0, 1))
            by_frames = by_frames * window
        parts = x.shape[2]
        by_signal = np.zeros((signal.shape[1], x.shape[0], parts), signal.real.dtype)
        shares = as_pairs(by_frames, parts)
        for frame, place in enumerate(places):
            by_signal[place] += shares[:, frame].swapaxes(0, 1)
        return returned([by_signal.swapaxes(0, 1), None, by_window, None], fwd_inputs)

    def _read(self, inputs: Sequence[OptionalArray]) -> _Read:
        """Check the inputs."""
        received = take_inputs("STFT", inputs, ["signal", "frame_step"], ["window", "frame_length"])
        x, step, window, given = present(received[0]), present(received[1]), received[2], received[3]
        check_dtypes("STFT", ["signal", "window"], [x, window], "floats")
        if x.ndim != 3 or x.shape[2] not in (1, 2):
            raise OperatorError(f"STFT: received a signal of shape {x.shape}; accepted are [N, L, 1] and [N, L, 2].")
        if self.onesided and x.shape[2] == 2:
            raise OperatorError(
                f"STFT: received a complex signal of shape {x.shape} with onesided; accepted is onesided = 0, or a "
                f"real one, [N, L, 1]."
            )
        for name, value in (("frame_step", step), ("frame_length", given)):
            if value is not None and (value.size != 1 or value.dtype.kind not in "iu" or scalar(value) < 1):
                raise OperatorError(f"STFT: received {name} {value.tolist()}; accepted is an integer scalar from 1 on.")
        length = x.shape[1] if given is None else scalar(given)
        if window is not None:
            length = window.shape[0] if given is None and window.ndim == 1 else length
            if window.shape != (length,):
                raise OperatorError(
                    f"STFT: received a window of shape {window.shape} and frames of {length}; accepted is ({length},)."
                )
        if length < 1:
            raise OperatorError(f"STFT: received a signal of shape {x.shape} and no frame_length; accepted is L >= 1.")
        frames = max(0, (x.shape[1] - length) // scalar(step) + 1)
        wide = compute_dtype(x.dtype)
        places = np.arange(frames)[:, None] * scalar(step) + np.arange(length)
        signal = as_complex(x.astype(wide, copy=False))
        return _Read(signal, places, None if window is None else window.astype(wide, copy=False))
