"""Fourier transforms and what goes with them."""

from __future__ import annotations

import math

import onnx_ir as ir
import tensorflow as tf

from deep500.core.errors import OperatorError
from deep500.frameworks.tensorflow._dtypes import held_dtype
from deep500.frameworks.tensorflow.lowering import lowerings
from deep500.frameworks.tensorflow.lowering._padding import crop_and_pad
from deep500.frameworks.tensorflow.lowering._parameters import (
    Size,
    declared,
    length,
    maximum,
    minimum,
    scalar,
    size,
    sizes,
)
from deep500.networks.operator_node import OperatorNode

__all__ = ["blackman_window", "dft", "hamming_window", "hann_window", "mel_weight_matrix", "stft"]


@lowerings.register("HannWindow", since=17)
def hann_window(node: OperatorNode, count: tf.Tensor) -> tf.Tensor:
    r"""Return :math:`\frac{1}{2} - \frac{1}{2} \cos \frac{2 \pi n}{N}`. Source: ONNX HannWindow-17."""
    return _window(node, count, (0.5, -0.5))


@lowerings.register("HammingWindow", since=17)
def hamming_window(node: OperatorNode, count: tf.Tensor) -> tf.Tensor:
    r"""Return :math:`\frac{25}{46} - \frac{21}{46} \cos \frac{2 \pi n}{N}`. Source: ONNX HammingWindow-17."""
    return _window(node, count, (25 / 46, -21 / 46))


@lowerings.register("BlackmanWindow", since=17)
def blackman_window(node: OperatorNode, count: tf.Tensor) -> tf.Tensor:
    r"""Return :math:`0.42 - 0.5 \cos \frac{2 \pi n}{N} + 0.08 \cos \frac{4 \pi n}{N}`.

    Source: ONNX BlackmanWindow-17.
    """
    return _window(node, count, (0.42, -0.5, 0.08))


@lowerings.register("MelWeightMatrix", since=17)
def mel_weight_matrix(
    node: OperatorNode, bands: tf.Tensor, dft_length: tf.Tensor, rate: tf.Tensor, low: tf.Tensor, high: tf.Tensor
) -> tf.Tensor:
    r"""Return triangles over the bins of a spectrum, evenly spaced by :math:`2595 \log_{10}(1 + f / 700)`.

    Source: ONNX MelWeightMatrix-17.
    """
    count, transformed = scalar(bands), scalar(dft_length)
    edges = [tf.reshape(tf.cast(edge, tf.float64), []) for edge in (low, high)]
    lowest, highest = (2595 * tf.math.log1p(edge / 700) / math.log(10) for edge in edges)
    numbers = tf.cast(length(count + 2), tf.float64)
    mels = numbers * (highest - lowest) / tf.cast(count + 2, tf.float64) + lowest
    hertz = 700 * tf.math.expm1(mels / 2595 * math.log(10))
    scaled = tf.cast(transformed + 1, tf.float64) * hertz / tf.reshape(tf.cast(rate, tf.float64), [])
    points = tf.math.floor(scaled)
    left, center, right = points[:-2], points[1:-1], points[2:]
    bins = tf.cast(length(transformed // 2 + 1), tf.float64)[:, None]
    rising = tf.math.divide_no_nan(bins - left, center - left)
    falling = tf.math.divide_no_nan(right - bins, right - center)
    weights = tf.where((bins >= left) & (bins < center), rising, tf.zeros([], tf.float64))
    weights = tf.where((bins > center) & (bins < right), falling, weights)
    return _cast_to(node, tf.where(bins == center, tf.ones([], tf.float64), weights))


@lowerings.register("DFT", since=17)
def dft_17(node: OperatorNode, x: tf.Tensor, dft_length: tf.Tensor | None = None) -> tf.Tensor:
    """Return the discrete Fourier transform along the axis that an attribute names. Source: ONNX DFT-17."""
    return declared(node, _dft(node, x, dft_length, node.attributes.get("axis", 1) % x.shape.rank))


@lowerings.register("DFT", since=20)
def dft(
    node: OperatorNode, x: tf.Tensor, dft_length: tf.Tensor | None = None, axis: tf.Tensor | None = None
) -> tf.Tensor:
    r"""Return :math:`\sum_n e^{-2 \pi j k n / N} x_n`, or the inverse, along an axis.

    Source: ONNX DFT-20.
    """
    rank = x.shape.rank
    return declared(node, _dft(node, x, dft_length, rank - 2 if axis is None else scalar(axis) % rank))


@lowerings.register("STFT", since=17)
def stft(
    node: OperatorNode,
    signal: tf.Tensor,
    frame_step: tf.Tensor,
    window: tf.Tensor | None = None,
    frame_length: tf.Tensor | None = None,
) -> tf.Tensor:
    """Return the Fourier transforms of overlapping frames of a signal, each weighted by a window.

    Source: ONNX STFT-17.
    """
    count = size(signal, 1) if window is None else size(window, 0)
    if frame_length is not None:
        count = scalar(frame_length)
    step = scalar(frame_step)
    frames = maximum((size(signal, 1) - count) // step + 1, 0)
    places = length(frames)[:, None] * tf.cast(step, tf.int64) + length(count)
    y = tf.gather(signal, places, axis=1)
    if window is not None:
        y *= window[:, None]
    spectrum = _forward(
        _to_complex(node, y), _positive(node, count), _is_real(node, y), bool(node.attributes.get("onesided", 1))
    )
    return declared(node, tf.cast(_to_pairs(spectrum), signal.dtype))


def _window(node: OperatorNode, count: tf.Tensor, factors: tuple[float, ...]) -> tf.Tensor:
    """Return a sum of cosines over the window."""
    total = scalar(count)
    numbers = tf.cast(length(total), tf.float64)
    period = tf.cast(total if node.attributes.get("periodic", 1) else total - 1, tf.float64)
    angles = numbers * (2 * math.pi) / period
    return _cast_to(node, tf.add_n([factor * tf.math.cos(k * angles) for k, factor in enumerate(factors)]))


def _cast_to(node: OperatorNode, y: tf.Tensor) -> tf.Tensor:
    """Return y in the dtype that the attribute ``output_datatype`` names."""
    kind = ir.DataType(node.attributes.get("output_datatype", ir.DataType.FLOAT))
    return declared(node, tf.cast(y, held_dtype(kind.numpy().name)))


def _dft(node: OperatorNode, x: tf.Tensor, dft_length: tf.Tensor | None, axis: Size) -> tf.Tensor:
    """Return the transform along an axis, which may be known at run time only."""
    rank = x.shape.rank
    # The axis changes places with the last one of the signal; doing so again undoes it.
    places = tf.range(rank, dtype=tf.int64)
    swap = tf.where(places == axis, tf.constant(rank - 2, tf.int64), places)
    swap = tf.where(places == rank - 2, tf.cast(axis, tf.int64), swap)
    if isinstance(axis, int):
        swap = [rank - 2 if a == axis else axis if a == rank - 2 else a for a in range(rank)]
    moved = tf.transpose(x, swap)
    # The last dimension, of real and imaginary part, stays where it is.
    moved.set_shape([*moved.shape[:-1], x.shape[-1]])
    inverse, onesided = (bool(node.attributes.get(name, 0)) for name in ("inverse", "onesided"))
    own = size(moved, rank - 2)
    count = scalar(dft_length) if dft_length is not None else 2 * (own - 1) if inverse and onesided else own
    signal, count = _to_complex(node, moved), _positive(node, count)
    if not inverse:
        y = _to_pairs(_forward(signal, count, _is_real(node, moved), onesided))
    elif onesided:
        lengths = tf.reshape(tf.cast(count, tf.int32), [1])
        y = tf.signal.irfft(_fitted(signal, count // 2 + 1), lengths)[..., None]
    else:
        y = _to_pairs(tf.signal.ifft(_fitted(signal, count)))
    return tf.cast(tf.transpose(y, swap), x.dtype)


def _positive(node: OperatorNode, count: Size) -> Size:
    """Return the length of a transform after a check that there is one: TensorFlow's kernels abort the process on 0.

    Raises:
        OperatorError: The length is known, and not positive.
    """
    message = f"{node.label} transforms signals of length"
    if not isinstance(count, int):
        with tf.control_dependencies([tf.debugging.Assert(count > 0, [message, count, "; it must be at least 1"])]):
            return tf.identity(count)
    if count < 1:
        raise OperatorError(f"{message} {count}; it must be at least 1.")
    return count


def _forward(signal: tf.Tensor, count: Size, is_real: bool, onesided: bool) -> tf.Tensor:
    """Return the transform of a complex signal along its last axis; onesided, its first half."""
    signal = _fitted(signal, count)
    if not is_real:
        spectrum = tf.signal.fft(signal)
        return spectrum[..., : count // 2 + 1] if onesided else spectrum
    half = tf.signal.rfft(tf.math.real(signal))
    # The other half of a real signal's spectrum is the conjugate of the first.
    return half if onesided else tf.concat([half, tf.math.conj(half[..., 1 : (count + 1) // 2][..., ::-1])], -1)


def _fitted(signal: tf.Tensor, count: Size) -> tf.Tensor:
    """Return a signal that was cut, or filled by zeros, to a length of its last axis."""
    own = sizes(signal)
    none = [0] * (len(own) - 1)
    kept = [*own[:-1], minimum(own[-1], count)]
    return crop_and_pad(signal, [*none, 0], kept, [*none, 0], [*none, maximum(count - own[-1], 0)])


def _is_real(node: OperatorNode, x: tf.Tensor) -> bool:
    if x.shape[-1] not in (1, 2):
        raise OperatorError(
            f"{node.label} was given a signal of shape {x.shape}; accepted is a last size of 1 for real numbers and of "
            f"2 for complex ones, known before the network runs."
        )
    return bool(x.shape[-1] == 1)


def _to_complex(node: OperatorNode, x: tf.Tensor) -> tf.Tensor:
    """Return ``[..., 1]`` or ``[..., 2]`` as complex numbers ``[...]``."""
    x = tf.cast(x, tf.float32) if x.dtype.size < 4 else x
    return tf.complex(x[..., 0], tf.zeros_like(x[..., 0]) if _is_real(node, x) else x[..., 1])


def _to_pairs(x: tf.Tensor) -> tf.Tensor:
    """Return complex numbers ``[...]`` as ``[..., 2]``."""
    return tf.stack([tf.math.real(x), tf.math.imag(x)], -1)
