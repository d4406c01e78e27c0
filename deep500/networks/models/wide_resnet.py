"""Wide residual networks for small images."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir
from onnxscript import OpBuilder, nn

from deep500.core.counts import check_count
from deep500.core.errors import InvalidInputError
from deep500.networks.layers import BatchNormalization, Convolution, Dropout, Linear
from deep500.networks.models._arguments import check_image, check_rate

__all__ = ["wide_resnet"]


class WideBlock(nn.Module):
    """Normalisation, ReLU and 3x3 convolution, twice, added to the input: ``[N, I, H, W]`` to ``[N, O, H/s, W/s]``.

    Where the size changes, a 1x1 convolution of the first normalised input is added instead.
    """

    def __init__(self, in_channels: int, out_channels: int, stride: int, rate: float) -> None:
        """Declare the layers; ``rate`` is the share of values dropped between the convolutions."""
        super().__init__()
        self.norm1 = BatchNormalization(in_channels)
        self.conv1 = Convolution(in_channels, out_channels, 3, stride=stride, padding=1, bias=False)
        self.norm2 = BatchNormalization(out_channels)
        self.dropout = Dropout(rate)
        self.conv2 = Convolution(out_channels, out_channels, 3, padding=1, bias=False)
        self.projected = stride != 1 or in_channels != out_channels
        if self.projected:
            self.shortcut = Convolution(in_channels, out_channels, 1, stride=stride, bias=False)

    def forward(self, op: OpBuilder, x: ir.Value) -> ir.Value:
        """Add the nodes."""
        activated = op.Relu(self.norm1(op, x))
        y = op.Relu(self.norm2(op, self.conv1(op, activated)))
        y = self.conv2(op, self.dropout(op, y))
        result: ir.Value = op.Add(y, self.shortcut(op, activated) if self.projected else x)
        return result


class WideResNet(nn.Module):
    """A convolution, three stages of wide blocks, a normalisation, a global average, a linear layer."""

    def __init__(self, classes: int, channels: int, blocks: int, factor: int, rate: float) -> None:
        """Declare the layers; each stage has ``blocks`` blocks, the first ``16 factor`` feature maps."""
        super().__init__()
        self.conv = Convolution(channels, 16, 3, padding=1, bias=False)
        layers: list[nn.Module] = []
        inputs = 16
        for stage in range(3):
            for block in range(blocks):
                outputs = (16 << stage) * factor
                layers.append(WideBlock(inputs, outputs, 2 if stage > 0 and block == 0 else 1, rate))
                inputs = outputs
        self.blocks = nn.ModuleList(layers)
        self.norm = BatchNormalization(inputs)
        self.classifier = Linear(inputs, classes, gain=1.0)

    def forward(self, op: OpBuilder, x: ir.Value) -> ir.Value:
        """Add the nodes."""
        x = self.conv(op, x)
        for block in self.blocks:
            x = block(op, x)
        x = op.GlobalAveragePool(op.Relu(self.norm(op, x)))
        scores: ir.Value = self.classifier(op, op.Flatten(x, axis=1))
        return scores


def wide_resnet(
    *,
    classes: int = 10,
    shape: Sequence[int] = (3, 32, 32),
    depth: int = 28,
    factor: int = 10,
    dropout: float = 0.0,
) -> nn.Module:
    """Return a wide residual network of the CIFAR style, by default WRN-28-10.

    Source: S. Zagoruyko and N. Komodakis, "Wide residual networks", BMVC 2016, Table 1. First weights as in K. He et
    al., "Delving deep into rectifiers", ICCV 2015.

    Args:
        classes: Number of classes.
        shape: Shape of one sample, ``(C, H, W)``.
        depth: Number of layers, 6n + 4: 10, 16, 22, 28, 40.
        factor: How many times as many feature maps as a residual network has: 1, 2, 4, 8, 10.
        dropout: Share of values that is dropped within each block in training.

    Raises:
        InvalidInputError: The sample is no image, the depth is not 6n + 4, or another argument is not accepted.
    """
    channels, _, _ = check_image("wide_resnet", shape)
    if isinstance(depth, bool) or not isinstance(depth, int) or depth < 10 or (depth - 4) % 6:
        raise InvalidInputError(f"depth was given as {depth!r}; accepted is 6n + 4: 10, 16, 22, 28, 34, 40, ...")
    widening = check_count("factor", factor, least=1)
    return WideResNet(classes, channels, (depth - 4) // 6, widening, check_rate("dropout", dropout))
