"""Normalisation."""

from __future__ import annotations

import torch

from deep500.frameworks.pytorch._recording import choose
from deep500.frameworks.pytorch.lowering import lowerings
from deep500.networks.operator_node import OperatorNode

__all__: list[str] = []


@lowerings.register("BatchNormalization", since=15)
def batch_normalization(
    node: OperatorNode,
    x: torch.Tensor,
    scale: torch.Tensor,
    bias: torch.Tensor,
    mean: torch.Tensor,
    var: torch.Tensor,
) -> torch.Tensor | tuple[torch.Tensor, ...]:
    """Normalisation of each channel of ``[N, C, D1, ...]``; in training also the next running statistics.

    ONNX' running variance is the biased one, PyTorch's the unbiased one, which is n / (n - 1) times larger for n
    values a channel. PyTorch adds its share to a copy that was scaled so that scaling back gives ONNX' value:
    ``(m v n/(n-1) + (1-m) u) (n-1)/n = m v + (1-m) b`` for old value v, unbiased u and biased b.
    """
    epsilon = node.attributes.get("epsilon", 1e-5)
    momentum = node.attributes.get("momentum", 0.9)
    if not node.attributes.get("training_mode", 0):
        return torch.batch_norm(x, scale, bias, mean, var, False, 0.0, epsilon, True)
    count = x.numel() // x.size(1)
    factor = (count - 1) / torch.sym_max(count, 1)
    next_mean = mean.clone()
    scaled_var = var / factor
    y = torch.batch_norm(x, scale, bias, next_mean, scaled_var, True, 1.0 - momentum, epsilon, True)
    # One value a channel has no unbiased variance, so the sum above is not a number; its biased one is 0.
    next_var = choose(torch.sym_min(count - 1, 1), var * momentum, scaled_var * factor)
    return y, next_mean, next_var
