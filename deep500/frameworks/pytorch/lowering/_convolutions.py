"""PyTorch's convolutions by number of spatial dimensions."""

from __future__ import annotations

import torch

__all__ = ["CONVOLUTIONS"]

CONVOLUTIONS = {1: torch.conv1d, 2: torch.conv2d, 3: torch.conv3d}
