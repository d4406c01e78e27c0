"""Multi-layer perceptron."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import onnx_ir as ir
from onnxscript import OpBuilder, nn

from deep500.core.errors import InvalidInputError
from deep500.networks.layers import Linear, flat_size

__all__ = ["mlp"]


class MultiLayerPerceptron(nn.Module):
    """Linear layers with ReLU between them over the flattened sample: ``[N, ...]`` to ``[N, classes]``."""

    def __init__(self, sizes: Sequence[int]) -> None:
        """Declare the layers; ``sizes`` runs from the flattened input to the output."""
        super().__init__()
        last = len(sizes) - 2
        layers = [Linear(a, b, gain=1.0 if i == last else 2.0**0.5) for i, (a, b) in enumerate(pairwise(sizes))]
        self.layers = nn.ModuleList([*layers])

    def forward(self, op: OpBuilder, x: ir.Value) -> ir.Value:
        """Add the nodes."""
        x = op.Flatten(x, axis=1)
        for index, layer in enumerate(self.layers):
            x = layer(op, x if index == 0 else op.Relu(x))
        return x


def mlp(*, classes: int, shape: Sequence[int], hidden: Sequence[int] = (128, 64)) -> nn.Module:
    """Return a multi-layer perceptron.

    Args:
        classes: Number of outputs.
        shape: Shape of one sample; it is flattened.
        hidden: Sizes of the hidden layers.

    Raises:
        InvalidInputError: A size is not a positive whole number.
    """
    if isinstance(hidden, int):
        hidden = (hidden,)
    if not isinstance(hidden, Sequence) or any(
        isinstance(size, bool) or not isinstance(size, int) or size < 1 for size in hidden
    ):
        raise InvalidInputError(f"hidden was given as {hidden!r}; accepted are sizes from 1, such as (128, 64).")
    return MultiLayerPerceptron([flat_size(shape), *hidden, classes])
