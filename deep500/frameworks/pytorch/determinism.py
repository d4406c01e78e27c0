"""PyTorch's deterministic mode."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import Any

import torch

__all__ = ["deterministic_operators"]

#: Without a workspace of fixed size, cuBLAS may add up in another order from run to run.
_CUBLAS = "CUBLAS_WORKSPACE_CONFIG"


@contextlib.contextmanager
def deterministic_operators(seed: int) -> Iterator[dict[str, Any]]:
    """Let PyTorch use kernels alone that give equal bits in equal runs, for the time of a block.

    An operator that has none raises an error when it is run. The switches are those of the whole process; afterwards
    they are as they were. cuBLAS reads its workspace from the environment when it starts, so that a process that has
    used the GPU before may need ``CUBLAS_WORKSPACE_CONFIG=:4096:8`` from its start.

    Source: PyTorch's notes on reproducibility, ``torch.use_deterministic_algorithms``.

    Args:
        seed: Not used; PyTorch's random numbers are seeded by the executor.

    Yields:
        What is switched to what, in JSON's types.
    """
    cudnn, filling = torch.backends.cudnn, torch.utils.deterministic
    before = (
        torch.are_deterministic_algorithms_enabled(),
        torch.is_deterministic_algorithms_warn_only_enabled(),
        cudnn.deterministic,
        cudnn.benchmark,
        filling.fill_uninitialized_memory,  # type: ignore[attr-defined]
    )
    workspace = os.environ.get(_CUBLAS)
    try:
        os.environ.setdefault(_CUBLAS, ":4096:8")
        torch.use_deterministic_algorithms(True)
        cudnn.deterministic, cudnn.benchmark = True, False
        # Memory that is filled before its use hides reads of what was never written; it costs time and changes no bits.
        filling.fill_uninitialized_memory = False  # type: ignore[attr-defined]
        yield {
            "torch.use_deterministic_algorithms": True,
            "torch.backends.cudnn.deterministic": True,
            "torch.backends.cudnn.benchmark": False,
            _CUBLAS: os.environ[_CUBLAS],
            "threads": torch.get_num_threads(),
        }
    finally:
        torch.use_deterministic_algorithms(before[0], warn_only=before[1])
        cudnn.deterministic, cudnn.benchmark = before[2], before[3]
        filling.fill_uninitialized_memory = before[4]  # type: ignore[attr-defined]
        if workspace is None:
            os.environ.pop(_CUBLAS, None)
