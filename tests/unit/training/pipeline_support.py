"""Data sets and transformations for worker processes, which import this module only: it must import little."""

from __future__ import annotations

import os
import signal
import time
from typing import Any

import numpy as np

from deep500.datasets.dataset import Dataset
from deep500.datasets.numpy_dataset import NumpyDataset


def numbered(count: int, width: int = 1) -> NumpyDataset:
    return NumpyDataset(np.arange(count * width).reshape(count, width), "x", np.arange(count) % 3, "y")


class ReadsInto(NumpyDataset):
    """Says when it reads straight into memory, by making all labels 9; fails at one sample."""

    def read_into(self, index: Any, batch: Any) -> None:
        if 13 in index:
            raise ZeroDivisionError("sample 13")
        super().read_into(index, batch)
        batch["y"][...] = 9


class Noise:
    """Adds random numbers, and makes another dtype."""

    def set_random_stream(self, stream: np.random.Generator) -> None:
        self.stream = stream

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        return batch | {"x": (batch["x"] + self.stream.random(batch["x"].shape)).astype(np.float32)}


class Varying:
    """Makes arrays of another size in each minibatch, empty ones too."""

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        first = int(batch["x"].flat[0])
        return batch | {"more": np.full((first % 5, 1000 * first), first, ">f4"), "one": np.array(first)}


class NotPicklableError(Exception):
    def __init__(self, place: str, reason: object) -> None:
        super().__init__(f"{place}: {reason}")
        self.lock = lambda: None


class Fails:
    """Raises at one sample."""

    def __init__(self, sample: int, kind: str = "value") -> None:
        self.sample, self.kind = sample, kind

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        if self.sample in batch["x"]:
            if self.kind == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            if self.kind == "exit":
                os._exit(3)
            if self.kind == "odd":
                raise NotPicklableError("here", "odd")
            if self.kind == "stop":
                raise StopIteration
            raise ZeroDivisionError(f"sample {self.sample}")
        return batch


class Slow:
    """Takes time, most for the first minibatch."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        time.sleep(self.seconds * (3 if 0 in batch["x"] else 1))
        return batch


class Objects:
    """Returns Python objects in an array."""

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        return batch | {"x": np.array([None] * len(batch["x"]))}


class Unreadable(Dataset):
    """Can be pickled, but not unpickled."""

    def __len__(self) -> int:
        return 10

    def __getitem__(self, index: Any) -> dict[str, Any]:
        return {"input": np.zeros(3)}

    def __setstate__(self, state: Any) -> None:
        raise FileNotFoundError("the file is on the other machine")
