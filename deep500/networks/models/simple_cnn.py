"""A small convolutional network."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir
from onnxscript import OpBuilder, nn

from deep500.core.errors import InvalidInputError
from deep500.networks.layers import BatchNormalization, Convolution, Linear

__all__ = ["simple_cnn"]


class SimpleCNN(nn.Module):
    """Blocks of 3x3 convolution, normalisation, ReLU and 2x2 pooling, then a global average and a linear layer."""

    def __init__(self, classes: int, channels: int, widths: Sequence[int], pooled: int) -> None:
        """Declare the layers; the first ``pooled`` blocks halve the image."""
        super().__init__()
        inputs = [channels, *widths]
        self.pooled = pooled
        self.convolutions = nn.ModuleList([Convolution(a, b, 3, padding=1, bias=False) for a, b in zip(inputs, widths)])
        self.norms = nn.ModuleList([BatchNormalization(width) for width in widths])
        self.classifier = Linear(widths[-1], classes, gain=1.0)

    def forward(self, op: OpBuilder, x: ir.Value) -> ir.Value:
        """Add the nodes."""
        for index, (convolution, norm) in enumerate(zip(self.convolutions, self.norms)):
            x = op.Relu(norm(op, convolution(op, x)))
            if index < self.pooled:
                x = op.AveragePool(x, kernel_shape=[2, 2], strides=[2, 2])
        scores: ir.Value = self.classifier(op, op.Flatten(op.GlobalAveragePool(x), axis=1))
        return scores


def simple_cnn(*, classes: int, shape: Sequence[int], widths: Sequence[int] = (16, 32, 64)) -> nn.Module:
    """Return a small convolutional network for images of any size.

    Args:
        classes: Number of classes.
        shape: Shape of one sample, ``(C, H, W)``.
        widths: Number of feature maps of each block. Blocks halve the image while it has two pixels a side.

    Raises:
        InvalidInputError: The sample is no image, or a width is not a positive whole number.
    """
    if len(shape) != 3:
        raise InvalidInputError(f"The model simple_cnn needs samples of shape (C, H, W); received {tuple(shape)}.")
    if (
        not isinstance(widths, Sequence)
        or not widths
        or any(isinstance(w, bool) or not isinstance(w, int) or w < 1 for w in widths)
    ):
        raise InvalidInputError(f"widths was given as {widths!r}; accepted are sizes from 1, such as (16, 32, 64).")
    pooled = min(min(shape[1], shape[2]).bit_length() - 1, len(widths))
    return SimpleCNN(classes, shape[0], widths, pooled)
