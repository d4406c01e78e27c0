"""Residual blocks and what several models make of them.

Source: K. He et al., "Deep residual learning for image recognition", CVPR 2016.
"""

from __future__ import annotations

from typing import Any

import onnx_ir as ir
from onnxscript import OpBuilder, nn

from deep500.core.counts import check_count
from deep500.core.errors import InvalidInputError
from deep500.networks.layers import BatchNormalization, Convolution

__all__ = ["Bottleneck", "ResidualBlock", "ResidualFeatures"]

#: Blocks of each stage by depth (Table 1 of the paper), and whether they are bottlenecks.
_STAGES = {
    18: ((2, 2, 2, 2), False),
    34: ((3, 4, 6, 3), False),
    50: ((3, 4, 6, 3), True),
    101: ((3, 4, 23, 3), True),
    152: ((3, 8, 36, 3), True),
}


class ResidualBlock(nn.Module):
    """Two 3x3 convolutions with normalisation, added to the input: ``[N, I, H, W]`` to ``[N, O, H/s, W/s]``."""

    def __init__(self, in_channels: int, out_channels: int, stride: int) -> None:
        """Declare the layers; a 1x1 convolution adapts the input where its size changes."""
        super().__init__()
        self.conv1 = Convolution(in_channels, out_channels, 3, stride=stride, padding=1, bias=False)
        self.norm1 = BatchNormalization(out_channels)
        self.conv2 = Convolution(out_channels, out_channels, 3, padding=1, bias=False)
        self.norm2 = BatchNormalization(out_channels)
        self.projected = stride != 1 or in_channels != out_channels
        if self.projected:
            self.shortcut_conv = Convolution(in_channels, out_channels, 1, stride=stride, bias=False)
            self.shortcut_norm = BatchNormalization(out_channels)

    def forward(self, op: OpBuilder, x: ir.Value) -> ir.Value:
        """Add the nodes."""
        y = op.Relu(self.norm1(op, self.conv1(op, x)))
        y = self.norm2(op, self.conv2(op, y))
        shortcut = self.shortcut_norm(op, self.shortcut_conv(op, x)) if self.projected else x
        result: ir.Value = op.Relu(op.Add(y, shortcut))
        return result


class Bottleneck(nn.Module):
    """Convolutions of 1x1, 3x3 and 1x1 with normalisation, added to the input; the 3x3 one has the stride.

    Source: the paper has the stride in the first convolution; that the second takes it is the form whose numbers of
    operations and accuracies are commonly published (ResNet "v1.5").
    """

    def __init__(self, in_channels: int, width: int, out_channels: int, stride: int) -> None:
        """Declare the layers; ``width`` is the number of maps of the 3x3 convolution."""
        super().__init__()
        self.conv1 = Convolution(in_channels, width, 1, bias=False)
        self.norm1 = BatchNormalization(width)
        self.conv2 = Convolution(width, width, 3, stride=stride, padding=1, bias=False)
        self.norm2 = BatchNormalization(width)
        self.conv3 = Convolution(width, out_channels, 1, bias=False)
        self.norm3 = BatchNormalization(out_channels)
        self.projected = stride != 1 or in_channels != out_channels
        if self.projected:
            self.shortcut_conv = Convolution(in_channels, out_channels, 1, stride=stride, bias=False)
            self.shortcut_norm = BatchNormalization(out_channels)

    def forward(self, op: OpBuilder, x: ir.Value) -> ir.Value:
        """Add the nodes."""
        y = op.Relu(self.norm1(op, self.conv1(op, x)))
        y = op.Relu(self.norm2(op, self.conv2(op, y)))
        y = self.norm3(op, self.conv3(op, y))
        shortcut = self.shortcut_norm(op, self.shortcut_conv(op, x)) if self.projected else x
        result: ir.Value = op.Relu(op.Add(y, shortcut))
        return result


class ResidualFeatures(nn.Module):
    """A residual network of the ImageNet form without its last layer: ``[N, C, H, W]`` to ``[N, features]``."""

    def __init__(self, channels: int, depth: Any, width: Any) -> None:
        """Declare a 7x7 convolution, a pooling and four stages; the first has ``width`` maps.

        Raises:
            InvalidInputError: The depth is none of the paper's, or the width no number from 1.
        """
        super().__init__()
        if isinstance(depth, bool) or not isinstance(depth, int) or depth not in _STAGES:
            raise InvalidInputError(f"depth was given as {depth!r}; accepted are {', '.join(map(str, _STAGES))}.")
        check_count("width", width, least=1)
        stages, bottlenecks = _STAGES[depth]
        self.conv = Convolution(channels, width, 7, stride=2, padding=3, bias=False)
        self.norm = BatchNormalization(width)
        layers: list[nn.Module] = []
        inputs = width
        for stage, blocks in enumerate(stages):
            maps = width << stage
            outputs = 4 * maps if bottlenecks else maps
            for block in range(blocks):
                stride = 2 if stage > 0 and block == 0 else 1
                layers.append(
                    Bottleneck(inputs, maps, outputs, stride) if bottlenecks else ResidualBlock(inputs, outputs, stride)
                )
                inputs = outputs
        self.blocks = nn.ModuleList(layers)
        self.features = inputs

    def forward(self, op: OpBuilder, x: ir.Value) -> ir.Value:
        """Add the nodes."""
        x = op.Relu(self.norm(op, self.conv(op, x)))
        x = op.MaxPool(x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
        for block in self.blocks:
            x = block(op, x)
        result: ir.Value = op.Flatten(op.GlobalAveragePool(x), axis=1)
        return result
