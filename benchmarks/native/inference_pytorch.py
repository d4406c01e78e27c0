"""Networks written by hand in PyTorch, to compare what Deep500 makes of their ONNX form with them."""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812 - PyTorch's own convention
from torch import nn

__all__ = ["INPUTS", "build"]

#: Shape of one sample; the GPT block takes activations.
INPUTS = {"resnet18": (3, 224, 224), "mobilenet_v2": (3, 224, 224), "gpt_block": (64, 256)}


class _Residual(nn.Module):
    """Two 3x3 convolutions and a shortcut. Source: He et al., "Deep Residual Learning", 2016."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(outputs)
        self.shortcut = None
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = F.relu(self.norm1(self.conv1(x)))
        y = self.norm2(self.conv2(y))
        return F.relu(y + (x if self.shortcut is None else self.shortcut(x)))


def _resnet18() -> nn.Module:
    layers: list[nn.Module] = [
        nn.Conv2d(3, 64, 7, 2, 3, bias=False),
        nn.BatchNorm2d(64),
        nn.ReLU(),
        nn.MaxPool2d(3, 2, 1),
    ]
    inputs = 64
    for outputs, stride in ((64, 1), (64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), (512, 1)):
        layers.append(_Residual(inputs, outputs, stride))
        inputs = outputs
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 1000))


class _Inverted(nn.Module):
    """Expansion, depthwise convolution, projection. Source: Sandler et al., "MobileNetV2", 2018."""

    def __init__(self, inputs: int, outputs: int, stride: int, expansion: int) -> None:
        super().__init__()
        wide = inputs * expansion
        layers: list[nn.Module] = []
        if expansion != 1:
            layers += [nn.Conv2d(inputs, wide, 1, bias=False), nn.BatchNorm2d(wide), nn.ReLU6()]
        layers += [nn.Conv2d(wide, wide, 3, stride, 1, groups=wide, bias=False), nn.BatchNorm2d(wide), nn.ReLU6()]
        layers += [nn.Conv2d(wide, outputs, 1, bias=False), nn.BatchNorm2d(outputs)]
        self.layers = nn.Sequential(*layers)
        self.is_residual = stride == 1 and inputs == outputs

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.layers(x)
        return x + y if self.is_residual else y


def _mobilenet_v2() -> nn.Module:
    layers: list[nn.Module] = [nn.Conv2d(3, 32, 3, 2, 1, bias=False), nn.BatchNorm2d(32), nn.ReLU6()]
    inputs = 32
    stages = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))
    for expansion, outputs, count, stride in stages:
        for index in range(count):
            layers.append(_Inverted(inputs, outputs, stride if index == 0 else 1, expansion))
            inputs = outputs
    layers += [nn.Conv2d(inputs, 1280, 1, bias=False), nn.BatchNorm2d(1280), nn.ReLU6()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(1280, 1000))


class _GPTBlock(nn.Module):
    """Causal attention and a feed-forward layer. Source: Radford et al., GPT-2, 2019."""

    def __init__(self, width: int = 256, heads: int = 8) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.project, self.merge = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        n, time, width = x.shape
        q, k, v = self.project(self.norm1(x)).view(n, time, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.merge(y.transpose(1, 2).reshape(n, time, width))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


def build(model: str) -> nn.Module:
    """Return a network in evaluation mode, with weights from a fixed seed."""
    torch.manual_seed(0)
    made = {"resnet18": _resnet18, "mobilenet_v2": _mobilenet_v2, "gpt_block": _GPTBlock}[model]()
    return made.eval()
