"""Parameters that lie in flat buffers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import torch

from deep500.frameworks.pytorch._arrays import to_tensor

if TYPE_CHECKING:
    from deep500.distributed.flat_buffers import FlatBuffers

__all__ = ["FlatParameters"]


class FlatParameters:
    """Moves parameters into flat buffers, each as a view; they stay the same ``torch.nn.Parameter``."""

    def __init__(self, parameters: Mapping[str, torch.Tensor], buffers: FlatBuffers) -> None:
        """Find the place of each parameter.

        Args:
            parameters: The parameters by name, on the processor.
            buffers: Where they are to lie.
        """
        self._buffers = buffers
        self._places = [(parameter, to_tensor(buffers[name])) for name, parameter in parameters.items()]

    def is_of(self, buffers: FlatBuffers) -> bool:
        """Whether these are the buffers."""
        return self._buffers is buffers

    def lay(self) -> None:
        """Move those parameters that lie elsewhere."""
        for parameter, place in self._places:
            if parameter.data_ptr() != place.data_ptr():
                place.copy_(parameter.detach())
                parameter.data = place
