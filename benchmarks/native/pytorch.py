"""LeNet and ResNet-8 as a PyTorch user writes them, and their training step."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812 - PyTorch's own convention


class LeNet(nn.Module):
    """LeNet-5 with ReLU and maximum pooling, padding 2."""

    def __init__(self, shape: tuple[int, int, int], classes: int) -> None:
        """Declare the layers for samples of ``shape`` (C, H, W)."""
        super().__init__()
        self.conv1 = nn.Conv2d(shape[0], 6, 5, padding=2)
        self.conv2 = nn.Conv2d(6, 16, 5, padding=2)
        self.fc1 = nn.Linear(16 * (shape[1] // 4) * (shape[2] // 4), 120)
        self.fc2 = nn.Linear(120, 84)
        self.fc3 = nn.Linear(84, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return class scores."""
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        x = torch.flatten(x, 1)
        return self.fc3(F.relu(self.fc2(F.relu(self.fc1(x)))))


class Block(nn.Module):
    """Residual block."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        """Declare the layers."""
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(outputs)
        self.shortcut = (
            nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))
            if stride != 1 or inputs != outputs
            else None
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the block's output."""
        y = self.norm2(self.conv2(F.relu(self.norm1(self.conv1(x)))))
        return F.relu(y + (x if self.shortcut is None else self.shortcut(x)))


class ResNet8(nn.Module):
    """CIFAR-style residual network of depth 8."""

    def __init__(self, shape: tuple[int, int, int], classes: int) -> None:
        """Declare the layers for samples of ``shape`` (C, H, W)."""
        super().__init__()
        self.conv = nn.Conv2d(shape[0], 16, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(16)
        self.blocks = nn.Sequential(Block(16, 16, 1), Block(16, 32, 2), Block(32, 64, 2))
        self.classifier = nn.Linear(64, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return class scores."""
        x = self.blocks(F.relu(self.norm(self.conv(x))))
        return self.classifier(torch.flatten(F.adaptive_avg_pool2d(x, 1), 1))


MODELS = {"lenet": LeNet, "resnet8": ResNet8}


def training_step(model: str, shape: tuple[int, int, int], classes: int) -> Callable[[np.ndarray, np.ndarray], float]:
    """Return a function that trains on one batch and returns the loss."""
    network = MODELS[model](shape, classes).train()
    optimizer = torch.optim.SGD(network.parameters(), lr=0.01, momentum=0.9)

    def step(x: np.ndarray, y: np.ndarray) -> float:
        optimizer.zero_grad()
        loss = F.cross_entropy(network(torch.from_numpy(x)), torch.from_numpy(y))
        loss.backward()
        optimizer.step()
        return loss.item()

    return step
