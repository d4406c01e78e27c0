"""Residual networks for small images."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir
from onnxscript import OpBuilder, nn

from deep500.core.errors import InvalidInputError
from deep500.networks.layers import BatchNormalization, Convolution, Linear
from deep500.networks.models._residual import ResidualBlock

__all__ = ["resnet"]


class ResNet(nn.Module):
    """A convolution, three stages of residual blocks, a global average, a linear layer."""

    def __init__(self, classes: int, channels: int, blocks: int, width: int) -> None:
        """Declare the layers; each stage has ``blocks`` blocks, the first ``width`` feature maps."""
        super().__init__()
        self.conv = Convolution(channels, width, 3, padding=1, bias=False)
        self.norm = BatchNormalization(width)
        layers: list[nn.Module] = []
        inputs = width
        for stage in range(3):
            for block in range(blocks):
                outputs = width << stage
                layers.append(ResidualBlock(inputs, outputs, 2 if stage > 0 and block == 0 else 1))
                inputs = outputs
        self.blocks = nn.ModuleList(layers)
        self.classifier = Linear(inputs, classes, gain=1.0)

    def forward(self, op: OpBuilder, x: ir.Value) -> ir.Value:
        """Add the nodes."""
        x = op.Relu(self.norm(op, self.conv(op, x)))
        for block in self.blocks:
            x = block(op, x)
        scores: ir.Value = self.classifier(op, op.Flatten(op.GlobalAveragePool(x), axis=1))
        return scores


def resnet(*, classes: int, shape: Sequence[int], depth: int = 20, width: int = 16) -> nn.Module:
    """Return a residual network of the CIFAR style.

    Source: K. He et al., "Deep residual learning for image recognition", CVPR 2016, section 4.2. The shortcuts that
    change the size are 1x1 convolutions with normalisation (the paper's option B).

    Args:
        classes: Number of classes.
        shape: Shape of one sample, ``(C, H, W)``.
        depth: Number of layers with weights on the longest path, 6n + 2: 8, 14, 20, 26, 32, 38, 44, 56, 110.
        width: Feature maps of the first stage; each later stage has twice as many.

    Raises:
        InvalidInputError: The sample is no image, or the depth is not 6n + 2.
    """
    if len(shape) != 3:
        raise InvalidInputError(f"The model resnet needs samples of shape (C, H, W); received {tuple(shape)}.")
    if isinstance(depth, bool) or not isinstance(depth, int) or depth < 8 or (depth - 2) % 6:
        raise InvalidInputError(f"depth was given as {depth!r}; accepted is 6n + 2: 8, 14, 20, 26, 32, 38, 44, ...")
    if isinstance(width, bool) or not isinstance(width, int) or width < 1:
        raise InvalidInputError(f"width was given as {width!r}; accepted are whole numbers from 1.")
    return ResNet(classes, shape[0], (depth - 2) // 6, width)
