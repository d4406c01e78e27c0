"""Fourier transforms, windows and filter banks of signals."""

from __future__ import annotations

import math

from deep500.core.errors import InvalidNetworkError
from deep500.networks.flop_rules import flop_rules
from deep500.networks.flop_rules._sizes import input_shape, output_shape, output_size
from deep500.networks.operator_node import OperatorNode

__all__: list[str] = []


def _transform(length: int) -> int:
    """``5 n log2 n`` of a fast Fourier transform of complex numbers."""
    return round(5 * length * math.log2(length)) if length > 1 else 0


@flop_rules.register("DFT", since=17)
def fourier_transform(node: OperatorNode) -> int:
    """``5 n log2 n`` for each transform of ``n`` complex numbers, also where they are real; one more each inversely."""
    shape = input_shape(node)
    given = [index for index in (1, 2) if node.is_given(index)]
    if any(index not in node.constants for index in given):
        raise InvalidNetworkError(f"The length or the axis of {node.label} is computed at run time.")
    axis = int(node.constants[2]) if 2 in given else int(node.attributes.get("axis", 1 if node.version < 20 else -2))
    length = int(node.constants[1]) if 1 in given else max(shape[axis], output_shape(node)[axis])
    count = math.prod(shape[:-1]) // max(shape[axis], 1)
    return count * (_transform(length) + (2 * length if node.attributes.get("inverse", 0) else 0))


@flop_rules.register("STFT", since=17)
def short_time_transform(node: OperatorNode) -> int:
    """``5 n log2 n`` a frame of ``n`` numbers, and their products with the window."""
    batch, frames, bins, _ = output_shape(node)
    length = input_shape(node, 2)[0] if node.is_given(2) else 0
    if not length:
        whole = 2 * (bins - 1) if node.attributes.get("onesided", 1) else bins
        length = int(node.constants[3]) if 3 in node.constants else whole
    return batch * frames * (_transform(length) + length * node.is_given(2))


@flop_rules.register("HannWindow", since=17)
@flop_rules.register("HammingWindow", since=17)
def cosine_window(node: OperatorNode) -> int:
    """Four an element: the angle, its cosine, a product and a sum."""
    return 4 * output_size(node)


@flop_rules.register("BlackmanWindow", since=17)
def two_cosines_window(node: OperatorNode) -> int:
    """Eight an element: two angles with their cosines, products and sums."""
    return 8 * output_size(node)


@flop_rules.register("MelWeightMatrix", since=17)
def mel_weights(node: OperatorNode) -> int:
    """Four an element: two slopes, the smaller of them, and zero."""
    return 4 * output_size(node)
