"""Fourier transforms, windows, and the mel scale."""

from __future__ import annotations

import math
from typing import Any

import torch

from deep500.frameworks.pytorch._dtypes import torch_dtype
from deep500.frameworks.pytorch._recording import recorded
from deep500.frameworks.pytorch._sizes import as_integers, integers_of
from deep500.frameworks.pytorch.lowering import lowerings
from deep500.networks.operator_node import OperatorNode

__all__: list[str] = []


def _number(values: Any) -> int | None:
    """Return a parameter that may be absent as a number, when the graph runs."""
    return None if values is None else as_integers(values)[0]


def _as_complex(x: torch.Tensor) -> torch.Tensor:
    """Return ``[..., 1]`` as real and ``[..., 2]`` as complex numbers, of at least 32 bits a part."""
    wide = x if x.dtype in (torch.float32, torch.float64) else x.to(torch.float32)
    return wide[..., 0] if wide.shape[-1] == 1 else torch.view_as_complex(wide.contiguous())


def _spectrum(signal: torch.Tensor, length: int, axis: int, is_onesided: bool) -> torch.Tensor:
    if is_onesided and not signal.is_complex():
        spectrum: torch.Tensor = torch.fft.rfft(signal, length, axis)
        return spectrum
    spectrum = torch.fft.fft(signal, length, axis)
    return spectrum.narrow(axis, 0, length // 2 + 1) if is_onesided else spectrum


@recorded
def _transformed(x: torch.Tensor, length: Any, axis: Any, is_inverse: bool, is_onesided: bool) -> torch.Tensor:
    place = as_integers(axis)[0] % x.dim()
    count = _number(length)
    signal = _as_complex(x)
    if is_inverse and is_onesided:
        count = 2 * (x.shape[place] - 1) if count is None else count
        samples: torch.Tensor = torch.fft.irfft(signal, count, place)
        return samples.unsqueeze(-1).to(x.dtype)
    count = x.shape[place] if count is None else count
    spectrum = torch.fft.ifft(signal, count, place) if is_inverse else _spectrum(signal, count, place, is_onesided)
    return torch.view_as_real(spectrum.resolve_conj()).to(x.dtype)


@lowerings.register("DFT", since=20)
def dft(node: OperatorNode, x: torch.Tensor, length: Any = None, axis: Any = None) -> torch.Tensor:
    """``sum_n x[n] exp(-2 pi i k n / N)`` along an axis, or its inverse. Source: ONNX DFT-20."""
    place = integers_of(node, 2, axis) if node.is_given(2) else (-2,)
    flags = (bool(node.attributes.get(name, 0)) for name in ("inverse", "onesided"))
    return _transformed(x, integers_of(node, 1, length), place, *flags)


@recorded
def _short_time(
    x: torch.Tensor, step: Any, window: torch.Tensor | None, length: Any, is_onesided: bool
) -> torch.Tensor:
    count = _number(length)
    if count is None:
        count = x.shape[-2] if window is None else window.shape[0]
    frames = _as_complex(x).unfold(-1, count, as_integers(step)[0])
    if window is not None:
        # A window that is shorter than the frame leaves zeros behind it.
        frames = frames[..., : window.shape[0]] * window.to(frames.real.dtype)
    return torch.view_as_real(_spectrum(frames, count, -1, is_onesided)).to(x.dtype)


@lowerings.register("STFT", since=17)
def stft(
    node: OperatorNode, x: torch.Tensor, step: torch.Tensor, window: torch.Tensor | None = None, length: Any = None
) -> torch.Tensor:
    """The spectrum of every frame of ``[N, L, 1 or 2]``, ``[N, frames, bins, 2]``. Source: ONNX STFT-17."""
    is_onesided = bool(node.attributes.get("onesided", 1))
    return _short_time(x, integers_of(node, 1, step), window, integers_of(node, 3, length), is_onesided)


@recorded
def _cosines(size: Any, weights: list[float], is_periodic: bool, dtype: torch.dtype, device: Any) -> torch.Tensor:
    """Return ``sum_k weights[k] cos(2 pi k n / N)``, computed in 64 bits."""
    count = as_integers(size)[0]
    if device is None and isinstance(size, torch.Tensor):
        device = size.device
    places = torch.arange(count, dtype=torch.float64, device=device)
    angles = places * (2 * math.pi) / (count if is_periodic else count - 1)
    total = torch.zeros_like(places)
    for order, weight in enumerate(weights):
        total = total + weight * torch.cos(order * angles)
    return total.to(dtype)


def _window(node: OperatorNode, size: Any, weights: list[float]) -> torch.Tensor:
    kind = node.output_types[0]
    dtype = torch.float32 if kind is None else torch_dtype(kind.dtype)
    return _cosines(integers_of(node, 0, size), weights, bool(node.attributes.get("periodic", 1)), dtype, None)


@lowerings.register("HannWindow", since=17)
def hann_window(node: OperatorNode, size: torch.Tensor) -> torch.Tensor:
    """``1/2 - 1/2 cos(2 pi n / N)``. Source: ONNX HannWindow-17."""
    return _window(node, size, [0.5, -0.5])


@lowerings.register("HammingWindow", since=17)
def hamming_window(node: OperatorNode, size: torch.Tensor) -> torch.Tensor:
    """``25/46 - 21/46 cos(2 pi n / N)``. Source: ONNX HammingWindow-17."""
    return _window(node, size, [25 / 46, -21 / 46])


@lowerings.register("BlackmanWindow", since=17)
def blackman_window(node: OperatorNode, size: torch.Tensor) -> torch.Tensor:
    """``0.42 - 0.5 cos(2 pi n / N) + 0.08 cos(4 pi n / N)``. Source: ONNX BlackmanWindow-17."""
    return _window(node, size, [0.42, -0.5, 0.08])


@recorded
def _mel_weights(bands: Any, length: Any, rate: Any, lower: Any, upper: Any, dtype: torch.dtype) -> torch.Tensor:
    count, transform, sampling = (as_integers(v)[0] for v in (bands, length, rate))
    device = next((v.device for v in (bands, length, rate, lower, upper) if isinstance(v, torch.Tensor)), None)
    first, last = (2595 * math.log10(1 + float(edge) / 700) for edge in (lower, upper))
    mels = torch.arange(count + 2, dtype=torch.float64) * ((last - first) / (count + 2)) + first
    hertz = 700 * (torch.pow(10.0, mels / 2595) - 1)
    edges = torch.floor((transform + 1) * hertz / sampling).to(torch.int64)
    low, center, high = (edges[index : index + count].unsqueeze(0) for index in range(3))
    bins = torch.arange(transform // 2 + 1).unsqueeze(1)
    rising = torch.where(low == center, 1.0, (bins - low) / (center - low).clamp_min(1))
    falling = (high - bins) / (high - center).clamp_min(1)
    weights = torch.where((bins >= low) & (bins <= center), rising, 0.0)
    # Both triangles are 1 at the center, unless the falling one is empty.
    weights = torch.where((bins > center) & (bins < high), falling, weights)
    return weights.to(dtype).to(device)


@lowerings.register("MelWeightMatrix", since=17)
def mel_weight_matrix(node: OperatorNode, *parameters: torch.Tensor) -> torch.Tensor:
    """Triangles over the bins of a spectrum, one a band of the mel scale. Source: ONNX MelWeightMatrix-17."""
    kind = node.output_types[0]
    dtype = torch.float32 if kind is None else torch_dtype(kind.dtype)
    counts = [integers_of(node, index, parameters[index]) for index in range(3)]
    edges = [float(node.constants[i].item()) if i in node.constants else parameters[i] for i in (3, 4)]
    return _mel_weights(counts[0], counts[1], counts[2], edges[0], edges[1], dtype)
