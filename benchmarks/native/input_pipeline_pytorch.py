"""JPEG files read by torch's DataLoader with two persistent workers, as its documents recommend.

Each sample is decoded and augmented by itself, which is what the DataLoader is made for. The decoder is the one that
Deep500 uses, so that pipelines are compared and not decoders; the augmentations are the few calls of torch that
torchvision's transforms end in, without their cost in Python.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

try:
    from simplejpeg import decode_jpeg
except ImportError:
    from PIL import Image

    def decode_jpeg(content: bytes) -> np.ndarray:
        return np.array(Image.open(io.BytesIO(content)).convert("RGB"))


__all__ = ["epochs"]


class Images(Dataset[tuple[torch.Tensor, int]]):
    """Decodes one file a sample and augments it, in uint8 until the last step."""

    def __init__(self, paths: Sequence[str], labels: Sequence[int], settings: dict[str, Any]) -> None:
        self.paths, self.labels = list(paths), list(labels)
        self.size, self.padding = settings["size"], settings["padding"]
        # Of bytes: what torchvision's ToDtype(scale=True) and Normalize make of them, in two passes.
        self.mean = torch.tensor(settings["mean"]).mul_(255).view(3, 1, 1)
        self.deviation = torch.tensor(settings["standard_deviation"]).mul_(255).view(3, 1, 1)

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        with open(self.paths[index], "rb") as file:
            image = torch.from_numpy(decode_jpeg(file.read())).permute(2, 0, 1)
        image = torch.nn.functional.pad(image, [self.padding] * 4)
        top, left = torch.randint(0, 2 * self.padding + 1, (2,)).tolist()
        image = image[:, top : top + self.size, left : left + self.size]
        if torch.rand(()) < 0.5:
            image = image.flip(2)
        return image.float().sub_(self.mean).div_(self.deviation), self.labels[index]


def epochs(
    paths: Sequence[str], labels: Sequence[int], settings: dict[str, Any], workers: int
) -> Iterator[Iterator[tuple[Any, Any]]]:
    """Yield one iterator over minibatches an epoch; workers stay from epoch to epoch."""
    loader = DataLoader(
        Images(paths, labels, settings),
        settings["batch_size"],
        shuffle=True,
        drop_last=True,
        num_workers=workers,
        persistent_workers=workers > 0,
    )
    while True:
        yield iter(loader)
