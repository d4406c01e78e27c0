"""Regularisation by noise."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from deep500.frameworks.pytorch._recording import call_module, recorded, spread
from deep500.frameworks.pytorch.lowering import lowerings
from deep500.frameworks.pytorch.lowering._known import known_dtype, wants
from deep500.frameworks.pytorch.lowering._plain import widened
from deep500.networks.operator_node import OperatorNode
from deep500.networks.random_streams import node_stream

__all__: list[str] = []


@lowerings.register("Dropout", since=12)
def dropout(
    node: OperatorNode, x: torch.Tensor, ratio: torch.Tensor | None = None, training: torch.Tensor | None = None
) -> Any:
    """``x mask / (1 - ratio)`` in training, where the mask is drawn anew in every run; else ``x``.

    A node with a seed draws from NumPy's stream of that seed, as ONNX' reference does, so that it drops the same
    elements under every framework; such a mask is drawn on the host. Source: ONNX Dropout-22.
    """
    trains: Any = training
    if "training_mode" in node.attributes:  # set for the mode of the network
        trains = bool(node.attributes["training_mode"])
    elif training is None or 2 in node.constants:
        trains = training is not None and bool(node.constants[2].reshape(()))
    if trains is False:
        return (x, torch.ones_like(x, dtype=torch.bool)) if wants(node, 1) else x
    share: Any = float(node.constants[1].reshape(())) if 1 in node.constants else 0.5 if ratio is None else ratio
    if "seed" in node.attributes:
        stream = node_stream(node.outputs, node.attributes["seed"])
        return spread(call_module(_SeededDropout(stream), (x, share, trains)), 2)
    is_narrow = str(known_dtype(node, 0)).startswith("float8")  # PyTorch stores them, and multiplies no two
    if trains is True and isinstance(share, float) and not is_narrow:
        if not wants(node, 1):
            return torch.dropout(x, share, True)
        return spread(_native_dropout(x, share), 2)
    return spread(_dropped(x, torch.rand_like(x, dtype=torch.float32), share, trains), 2)


@recorded
def _native_dropout(x: torch.Tensor, ratio: float) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.native_dropout(x, ratio, True)


@recorded
def _dropped(
    x: torch.Tensor, noise: torch.Tensor, ratio: float | torch.Tensor, trains: bool | torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return what is left of a tensor, and the mask, for noise in [0, 1); no value is looked at on the host."""
    share = torch.as_tensor(ratio, dtype=torch.float64 if noise.dtype == torch.float64 else torch.float32)
    share, drops = share.to(noise.device).reshape(()), torch.as_tensor(trains).to(noise.device).reshape(())
    mask = (noise >= share) | ~drops
    scale = torch.where(drops, 1.0 / (1.0 - share), 1.0)
    wide = widened(x)
    return torch.where(mask, wide * scale.to(wide.dtype), 0.0).to(x.dtype), mask


class _SeededDropout(torch.nn.Module):
    """Dropout by NumPy's stream of a seed, of which every run takes the next numbers. Runs on the host."""

    def __init__(self, stream: np.random.RandomState) -> None:
        super().__init__()
        self._random = stream

    def forward(self, x: torch.Tensor, ratio: Any, trains: Any) -> tuple[torch.Tensor, torch.Tensor]:
        if not bool(trains):
            return x, torch.ones_like(x, dtype=torch.bool)
        noise = torch.from_numpy(np.asarray(self._random.uniform(0.0, 1.0, tuple(x.shape))))
        return _dropped(x, noise.to(x.device), ratio, True)
