"""The training loop that a PyTorch user writes for data that fit into memory."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch.nn import functional as F  # noqa: N812 - PyTorch's own convention

from benchmarks.native.pytorch import MODELS

__all__ = ["epoch_by_hand"]


def epoch_by_hand(
    model: str, images: np.ndarray, labels: np.ndarray, batch_size: int, rate: float, momentum: float
) -> Callable[[], float]:
    """Return a function that trains for an epoch in random order and returns the mean loss, read once in the end."""
    network = MODELS[model](images.shape[1:], int(labels.max()) + 1).train()
    optimizer = torch.optim.SGD(network.parameters(), lr=rate, momentum=momentum)
    x, y = torch.from_numpy(images), torch.from_numpy(labels)

    def epoch() -> float:
        losses = []
        for chosen in torch.randperm(len(x)).split(batch_size):
            optimizer.zero_grad()
            loss = F.cross_entropy(network(x[chosen]), y[chosen])
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())
        return torch.stack(losses).mean().item()

    return epoch
