"""MobileNetV2."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir
from onnxscript import OpBuilder, nn

from deep500.core.errors import InvalidInputError
from deep500.core.texts import shown
from deep500.networks.layers import BatchNormalization, Convolution, Dropout, Linear, normal
from deep500.networks.models._arguments import check_image, check_rate

__all__ = ["mobilenet_v2"]

#: Expansion, feature maps, blocks and first stride of every stage (Table 2 of the paper).
_STAGES = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))


class ConvolutionUnit(nn.Module):
    """A convolution and a normalisation, clipped to the range from 0 to 6 unless ``linear``."""

    def __init__(
        self, inputs: int, outputs: int, kernel: int, *, stride: int = 1, groups: int = 1, linear: bool = False
    ) -> None:
        """Declare the layers."""
        super().__init__()
        self.linear = linear
        self.conv = Convolution(inputs, outputs, kernel, stride=stride, padding=kernel // 2, bias=False, groups=groups)
        self.norm = BatchNormalization(outputs)

    def forward(self, op: OpBuilder, x: ir.Value) -> ir.Value:
        """Add the nodes."""
        y: ir.Value = self.norm(op, self.conv(op, x))
        if not self.linear:
            y = op.Clip(y, 0.0, 6.0)
        return y


class InvertedResidual(nn.Module):
    """A 1x1 convolution to more maps, a 3x3 one of each map, a linear 1x1 one to fewer; added where sizes agree."""

    def __init__(self, inputs: int, outputs: int, stride: int, expansion: int) -> None:
        """Declare the layers; without expansion there is no first convolution."""
        super().__init__()
        hidden = inputs * expansion
        self.is_added = stride == 1 and inputs == outputs
        self.is_expanded = expansion != 1
        if self.is_expanded:
            self.expand = ConvolutionUnit(inputs, hidden, 1)
        self.depthwise = ConvolutionUnit(hidden, hidden, 3, stride=stride, groups=hidden)
        self.project = ConvolutionUnit(hidden, outputs, 1, linear=True)

    def forward(self, op: OpBuilder, x: ir.Value) -> ir.Value:
        """Add the nodes."""
        y = self.expand(op, x) if self.is_expanded else x
        y = self.project(op, self.depthwise(op, y))
        result: ir.Value = op.Add(x, y) if self.is_added else y
        return result


class MobileNetV2(nn.Module):
    """A convolution, 17 inverted residual blocks, a 1x1 convolution, a global average, a linear layer."""

    def __init__(self, classes: int, channels: int, multiplier: float, rate: float) -> None:
        """Declare the layers."""
        super().__init__()
        inputs = _multiplied(32, multiplier)
        last = _multiplied(1280, max(1.0, multiplier))
        self.conv = ConvolutionUnit(channels, inputs, 3, stride=2)
        layers: list[nn.Module] = []
        for expansion, maps, blocks, stride in _STAGES:
            outputs = _multiplied(maps, multiplier)
            for block in range(blocks):
                layers.append(InvertedResidual(inputs, outputs, stride if block == 0 else 1, expansion))
                inputs = outputs
        self.blocks = nn.ModuleList(layers)
        self.last = ConvolutionUnit(inputs, last, 1)
        self.dropout = Dropout(rate)
        self.classifier = Linear(last, classes, initial=normal(0.01))

    def forward(self, op: OpBuilder, x: ir.Value) -> ir.Value:
        """Add the nodes."""
        x = self.conv(op, x)
        for block in self.blocks:
            x = block(op, x)
        x = op.Flatten(op.GlobalAveragePool(self.last(op, x)), axis=1)
        scores: ir.Value = self.classifier(op, self.dropout(op, x))
        return scores


def _multiplied(maps: int, multiplier: float) -> int:
    """Return a multiple of 8 near the product, not less than nine tenths of it."""
    product = maps * multiplier
    rounded = max(8, int(product + 4) // 8 * 8)
    return rounded + 8 if rounded < 0.9 * product else rounded


def mobilenet_v2(
    *,
    classes: int = 1000,
    shape: Sequence[int] = (3, 224, 224),
    multiplier: float = 1.0,
    dropout: float = 0.2,
) -> nn.Module:
    """Return MobileNetV2: inverted residual blocks with linear bottlenecks.

    Source: M. Sandler et al., "MobileNetV2: inverted residuals and linear bottlenecks", CVPR 2018, Table 2. First
    weights of convolutions as in K. He et al., "Delving deep into rectifiers", ICCV 2015; of the linear layer normal
    with deviation 0.01.

    Args:
        classes: Number of classes.
        shape: Shape of one sample, ``(C, H, W)``.
        multiplier: Factor of the numbers of feature maps, such as 0.5 or 1.4; they are rounded to multiples of 8.
        dropout: Share of values that is dropped before the linear layer in training.

    Raises:
        InvalidInputError: The sample is no image, or another argument is not accepted.
    """
    channels, _, _ = check_image("mobilenet_v2", shape)
    return MobileNetV2(classes, channels, _check_multiplier(multiplier), check_rate("dropout", dropout))


def _check_multiplier(multiplier: Any) -> float:
    number = isinstance(multiplier, (int, float, np.floating)) and not isinstance(multiplier, bool)
    if not number or not math.isfinite(multiplier) or not 0 < multiplier <= 100:
        raise InvalidInputError(
            f"multiplier was given as {shown(multiplier)}; accepted are numbers above 0, such as 0.5."
        )
    return float(multiplier)
