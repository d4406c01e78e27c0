"""AlexNet and ResNet-18 for benchmarks, where Deep500 itself does not bring them."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir
from onnxscript import OpBuilder, nn

from deep500.networks.layers import BatchNormalization, Convolution, Linear
from deep500.networks.models.resnet import ResidualBlock

__all__ = ["alexnet", "resnet18"]


class AlexNet(nn.Module):
    """Five convolutions and three linear layers, without Dropout.

    Source: A. Krizhevsky, "One weird trick for parallelizing convolutional neural networks", 2014.
    """

    def __init__(self, classes: int) -> None:
        super().__init__()
        sizes = [(3, 64, 11, 4, 2), (64, 192, 5, 1, 2), (192, 384, 3, 1, 1), (384, 256, 3, 1, 1), (256, 256, 3, 1, 1)]
        self.convolutions = nn.ModuleList([Convolution(i, o, k, stride=s, padding=p) for i, o, k, s, p in sizes])
        self.linear = nn.ModuleList([Linear(9216, 4096), Linear(4096, 4096), Linear(4096, classes, gain=1.0)])

    def forward(self, op: OpBuilder, x: ir.Value) -> ir.Value:
        for index, convolution in enumerate(self.convolutions):
            x = op.Relu(convolution(op, x))
            if index in (0, 1, 4):
                x = op.MaxPool(x, kernel_shape=[3, 3], strides=[2, 2])
        x = op.Flatten(x, axis=1)
        for index, linear in enumerate(self.linear):
            x = linear(op, x)
            x = op.Relu(x) if index < 2 else x
        return x


class ResNet18(nn.Module):
    """Source: K. He et al., "Deep residual learning for image recognition", CVPR 2016, table 1."""

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.conv = Convolution(3, 64, 7, stride=2, padding=3, bias=False)
        self.norm = BatchNormalization(64)
        widths = [(64, 64, 1), (64, 64, 1), (64, 128, 2), (128, 128, 1)]
        widths += [(128, 256, 2), (256, 256, 1), (256, 512, 2), (512, 512, 1)]
        self.blocks = nn.ModuleList([ResidualBlock(*width) for width in widths])
        self.classifier = Linear(512, classes, gain=1.0)

    def forward(self, op: OpBuilder, x: ir.Value) -> ir.Value:
        x = op.Relu(self.norm(op, self.conv(op, x)))
        x = op.MaxPool(x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
        for block in self.blocks:
            x = block(op, x)
        result: ir.Value = self.classifier(op, op.Flatten(op.GlobalAveragePool(x), axis=1))
        return result


def alexnet(*, classes: int, shape: Sequence[int]) -> nn.Module:
    """Return AlexNet for samples of shape (3, 224, 224)."""
    return AlexNet(classes)


def resnet18(*, classes: int, shape: Sequence[int]) -> nn.Module:
    """Return ResNet-18 for samples of shape (3, H, W)."""
    return ResNet18(classes)
