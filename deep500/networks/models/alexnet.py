"""AlexNet."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir
from onnxscript import OpBuilder, nn

from deep500.core.counts import check_count
from deep500.networks.layers import Convolution, Dropout, Linear
from deep500.networks.models._arguments import check_image, check_rate

__all__ = ["alexnet"]


class AlexNet(nn.Module):
    """Five convolutions with three poolings, then three linear layers: ``[N, C, H, W]`` to ``[N, classes]``."""

    def __init__(self, classes: int, channels: int, width: int, pixels: int, hidden: int, rate: float) -> None:
        """Declare the layers; ``pixels`` is the number of pixels after the last pooling."""
        super().__init__()
        self.conv1 = Convolution(channels, width, 11, stride=4, padding=2)
        self.conv2 = Convolution(width, 3 * width, 5, padding=2)
        self.conv3 = Convolution(3 * width, 6 * width, 3, padding=1)
        self.conv4 = Convolution(6 * width, 4 * width, 3, padding=1)
        self.conv5 = Convolution(4 * width, 4 * width, 3, padding=1)
        self.dropout1 = Dropout(rate)
        self.linear1 = Linear(4 * width * pixels, hidden)
        self.dropout2 = Dropout(rate)
        self.linear2 = Linear(hidden, hidden)
        self.linear3 = Linear(hidden, classes, gain=1.0)

    def forward(self, op: OpBuilder, x: ir.Value) -> ir.Value:
        """Add the nodes."""
        for convolution in (self.conv1, self.conv2):
            x = op.MaxPool(op.Relu(convolution(op, x)), kernel_shape=[3, 3], strides=[2, 2])
        for convolution in (self.conv3, self.conv4, self.conv5):
            x = op.Relu(convolution(op, x))
        x = op.MaxPool(x, kernel_shape=[3, 3], strides=[2, 2])
        x = self.dropout1(op, op.Flatten(x, axis=1))
        x = self.dropout2(op, op.Relu(self.linear1(op, x)))
        scores: ir.Value = self.linear3(op, op.Relu(self.linear2(op, x)))
        return scores


def alexnet(
    *,
    classes: int = 1000,
    shape: Sequence[int] = (3, 224, 224),
    width: int = 64,
    hidden: int = 4096,
    dropout: float = 0.5,
) -> nn.Module:
    """Return AlexNet in its later form for one device: 64 maps first, no response normalisation.

    Source: A. Krizhevsky, "One weird trick for parallelizing convolutional neural networks", 2014 (arXiv:1404.5997);
    A. Krizhevsky et al., "ImageNet classification with deep convolutional neural networks", NeurIPS 2012. First weights
    as in K. He et al., "Delving deep into rectifiers", ICCV 2015.

    Args:
        classes: Number of classes.
        shape: Shape of one sample, ``(C, H, W)``.
        width: Feature maps of the first convolution; the others have 3, 6, 4 and 4 times as many.
        hidden: Size of the two hidden linear layers.
        dropout: Share of values that is dropped before each of them in training.

    Raises:
        InvalidInputError: The sample is no image or smaller than 63x63, or another argument is not accepted.
    """
    channels, *sides = check_image("alexnet", shape, least=63)
    pixels = 1
    for size in sides:
        size = (size + 4 - 11) // 4 + 1
        for _ in range(3):
            size = (size - 3) // 2 + 1
        pixels *= size
    maps = check_count("width", width, least=1)
    return AlexNet(
        classes, channels, maps, pixels, check_count("hidden", hidden, least=1), check_rate("dropout", dropout)
    )
