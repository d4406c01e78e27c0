"""PyTorch's own random stream, from which operators without a seed draw, as bytes that can be kept."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from deep500.core.errors import CheckpointError

__all__ = ["check_generator_state", "generator_state", "restore_generator"]


def generator_state(device: torch.device) -> NDArray[np.uint8]:
    """Return a copy of the state of a device's stream."""
    state = torch.cuda.get_rng_state(device) if device.type == "cuda" else torch.get_rng_state()
    return np.array(state.numpy())


def check_generator_state(state: Any, device: torch.device) -> None:
    """Check that a state is one of such a device's stream.

    Raises:
        CheckpointError: It is none.
    """
    size = generator_state(device).size
    if not isinstance(state, np.ndarray) or state.dtype != np.uint8 or state.shape != (size,):
        raise CheckpointError(
            f"The checkpoint holds no random stream of PyTorch on {device.type}. Go on with the framework and the kind "
            f"of device that it was made with."
        )


def restore_generator(state: NDArray[np.uint8], device: torch.device) -> None:
    """Let a device's stream go on from a state."""
    tensor = torch.from_numpy(np.array(state))
    if device.type == "cuda":
        torch.cuda.set_rng_state(tensor, device)
    else:
        torch.set_rng_state(tensor)
