"""Normalisation."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - PyTorch's own convention

from deep500.frameworks.pytorch._dtypes import torch_dtype
from deep500.frameworks.pytorch._recording import recorded, spread
from deep500.frameworks.pytorch.lowering import lowerings
from deep500.frameworks.pytorch.lowering._known import known_dtype, known_shape, known_sizes, wants
from deep500.frameworks.pytorch.lowering._statistics import with_gradients
from deep500.networks.operator_node import OperatorNode

__all__: list[str] = []

#: Element types of ONNX in which statistics may be asked for.
_STASHES = {1: torch.float32, 10: torch.float16, 11: torch.float64, 16: torch.bfloat16}

_HALVES = ("float16", "bfloat16")


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

    ``y = scale (x - mean) / sqrt(var + epsilon) + bias``. Source: ONNX BatchNormalization-15.
    """
    trains = bool(node.attributes.get("training_mode", 0))
    dtypes = [known_dtype(node, index) for index in range(5)]
    shape = known_shape(node, 0)
    flat = shape is not None and len(shape) == 1  # [N] is [N, 1]
    x = torch.unsqueeze(x, 1) if flat else x
    common = _common_dtype(dtypes, trains)
    if common is not None:
        x = x if dtypes[0] in (*_HALVES, common) and common == "float32" else x.to(torch_dtype(common))
        scale, bias, mean, var = (v.to(torch_dtype(common)) for v in (scale, bias, mean, var))
    epsilon = node.attributes.get("epsilon", 1e-5)
    if not trains:
        y = torch.batch_norm(x, scale, bias, mean, var, False, 0.0, epsilon, True)
        statistics: tuple[torch.Tensor, ...] = ()
    else:
        y, *rest = _trained(x, scale, bias, mean, var, node.attributes.get("momentum", 0.9), epsilon)
        statistics = tuple(rest)
    y = torch.squeeze(y, 1) if flat else y
    if common is not None:
        y = y.to(torch_dtype(str(dtypes[0])))
        statistics = tuple(value.to(torch_dtype(str(dtypes[3]))) for value in statistics)
    return (y, *statistics) if trains else y


def _common_dtype(dtypes: list[str | None], trains: bool) -> str | None:
    """Return the dtype to compute in where PyTorch's kernel does not take the tensors as they are, else ``None``.

    The kernel takes one dtype, or halves with parameters of 32 bits. Statistics of halves are computed in 32 bits.
    """
    kinds = {dtype for dtype in dtypes if dtype is not None}
    if len(kinds) <= 1 and not (trains and kinds & set(_HALVES)):
        return None
    if dtypes[0] in _HALVES and set(dtypes[1:]) == {"float32"}:
        return None
    return "float64" if "float64" in kinds else "float32"


def _trained(
    x: torch.Tensor,
    scale: torch.Tensor,
    bias: torch.Tensor,
    mean: torch.Tensor,
    var: torch.Tensor,
    momentum: float,
    epsilon: float,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Normalise by the statistics of the batch, and update the running ones."""
    y, next_mean, next_var = spread(_normalised(x, scale, bias, mean, var, momentum, epsilon), 3)
    next_mean, next_var = spread(with_gradients(x, mean, var, next_mean, next_var, momentum), 2)
    return y, next_mean, next_var


@recorded
def _normalised(
    x: torch.Tensor,
    scale: torch.Tensor,
    bias: torch.Tensor,
    mean: torch.Tensor,
    var: torch.Tensor,
    momentum: float,
    epsilon: float,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return the normalised tensor and the next running statistics, without their gradients.

    ONNX' running variance is the biased one, PyTorch's the unbiased one, which is n / (n - 1) times larger for n
    values a channel. PyTorch adds its share to a copy that was scaled so that scaling back gives ONNX' value:
    ``(m v n/(n-1) + (1-m) u) (n-1)/n = m v + (1-m) b`` for old value v, unbiased u and biased b. These few calls stand
    beside a kernel that may be as short; so they are as few as can be.
    """
    count = x.numel() // max(x.size(1), 1)
    factor = (count - 1) / max(count, 1)
    mean = mean.detach() if mean.requires_grad else mean
    var = var.detach() if var.requires_grad else var
    next_mean = mean.clone()
    next_var = var.clone() if count == 1 else var / factor
    y = torch.batch_norm(x, scale, bias, next_mean, next_var, True, 1.0 - momentum, epsilon, True)
    # One value a channel has no unbiased variance; its biased one is 0.
    next_var = var * momentum if count == 1 else next_var * factor
    return y, next_mean, next_var


@lowerings.register("InstanceNormalization", since=6)
def instance_normalization(
    node: OperatorNode, x: torch.Tensor, scale: torch.Tensor, bias: torch.Tensor
) -> torch.Tensor:
    """Normalisation of each channel of each instance of ``[N, C, D1, ...]``. Source: ONNX InstanceNormalization-22."""
    epsilon = node.attributes.get("epsilon", 1e-5)
    return _instance_norm(x, scale, bias, epsilon)


@recorded
def _instance_norm(x: torch.Tensor, scale: torch.Tensor, bias: torch.Tensor, epsilon: float) -> torch.Tensor:
    if x.shape[0] == 0 or x.dim() == 2:  # PyTorch's kernel refuses no instances, and no positions
        return torch.group_norm(x, x.shape[1], scale, bias, epsilon)
    return torch.instance_norm(x, scale, bias, None, None, True, 0.0, epsilon, True)


def _stash(node: OperatorNode) -> torch.dtype | None:
    """Return the dtype of the statistics, ``None`` where PyTorch's fused kernel has that precision or a better one.

    It has 64 bits for tensors of 64 bits, and 32 for all others.
    """
    wanted = _STASHES.get(node.attributes.get("stash_type", 1), torch.float32)
    is_double = known_dtype(node, 0) == "float64"
    return None if wanted == torch.float32 or (wanted == torch.float64 and is_double) else wanted


@recorded
def _standardised(x: torch.Tensor, axis: int, stash: torch.dtype, epsilon: float) -> torch.Tensor:
    """Return a tensor with mean 0 and variance 1 over the axes from one on, computed in a given precision."""
    wide = x.to(stash)
    var, mean = torch.var_mean(wide, list(range(axis % x.dim(), x.dim())), correction=0, keepdim=True)
    return ((wide - mean) * torch.rsqrt(var + epsilon)).to(x.dtype)


@lowerings.register("GroupNormalization", since=21)
def group_normalization(node: OperatorNode, x: torch.Tensor, scale: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """Normalisation of each group of channels of each instance. Source: ONNX GroupNormalization-21."""
    groups, epsilon = node.attributes["num_groups"], node.attributes.get("epsilon", 1e-5)
    stash = _stash(node)
    if stash is None:
        return torch.group_norm(x, groups, scale, bias, epsilon)
    return _group_norm_in(x, groups, scale, bias, stash, epsilon)


@recorded
def _group_norm_in(
    x: torch.Tensor, groups: int, scale: torch.Tensor, bias: torch.Tensor, stash: torch.dtype, epsilon: float
) -> torch.Tensor:
    parts = x.reshape(x.shape[0], groups, x.shape[1] // groups, *x.shape[2:])
    normal = _standardised(parts, 2, stash, epsilon).reshape(x.shape)
    channels = (-1, *(1,) * (x.dim() - 2))
    return normal * scale.reshape(channels) + bias.reshape(channels)


def _normalised_shape(node: OperatorNode, axis: int) -> tuple[int, ...] | None:
    """Return the sizes of an input's axes from one on, also where only the scale tells them; ``None`` if unknown."""
    shape, scale = known_shape(node, 0), known_sizes(node, 1)
    if shape is None:
        return None
    count = len(shape) - axis % len(shape)
    sizes = known_sizes(node, 0, len(shape) - count)
    # The scale is broadcast to the input: sizes above 1 are the input's.
    if sizes is None and scale is not None and len(scale) == count and all(size > 1 for size in scale):
        return scale
    return sizes


@lowerings.register("LayerNormalization", since=17)
def layer_normalization(
    node: OperatorNode, x: torch.Tensor, scale: torch.Tensor, bias: torch.Tensor | None = None
) -> tuple[torch.Tensor, ...]:
    """Normalisation over the axes from ``axis`` on; mean and ``1 / sqrt(variance + epsilon)``.

    Source: ONNX LayerNormalization-17.
    """
    axis, epsilon, stash = node.attributes.get("axis", -1), node.attributes.get("epsilon", 1e-5), _stash(node)
    shape = _normalised_shape(node, axis)
    if stash is not None:
        y = _standardised(x, axis, stash, epsilon) * scale
        y = y if bias is None else y + bias
    elif shape is None or known_shape(node, 1) is None or (bias is not None and known_shape(node, 2) is None):
        y = _any_layer_norm(x, scale, bias, axis, epsilon)
    elif known_shape(node, 1) == shape and (bias is None or known_shape(node, 2) == shape):
        y = torch.layer_norm(x, shape, scale, bias, epsilon)
    else:
        y = torch.layer_norm(x, shape, None, None, epsilon) * scale
        y = y if bias is None else y + bias
    if not (wants(node, 1) or wants(node, 2)):
        return (y,)
    kind = next((kind for kind in node.output_types[1:3] if kind is not None), None)
    return y, *_moments(x, axis, stash, epsilon, torch.float32 if kind is None else torch_dtype(kind.dtype))


def _moments(
    x: torch.Tensor, axis: int, stash: torch.dtype | None, epsilon: float, dtype: torch.dtype
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return mean and inverse deviation; beside the fused kernel, which does not differentiate its own."""
    found = _mean_and_deviation(x, axis, stash, epsilon)
    return found[0].to(dtype), found[1].to(dtype)


@recorded
def _mean_and_deviation(
    x: torch.Tensor, axis: int, stash: torch.dtype | None, epsilon: float
) -> tuple[torch.Tensor, torch.Tensor]:
    wide = x.to(stash or (torch.float64 if x.dtype == torch.float64 else torch.float32))
    var, mean = torch.var_mean(wide, list(range(axis % x.dim(), x.dim())), correction=0, keepdim=True)
    return mean, torch.rsqrt(var + epsilon)


@recorded
def _any_layer_norm(
    x: torch.Tensor, scale: torch.Tensor, bias: torch.Tensor | None, axis: int, epsilon: float
) -> torch.Tensor:
    """Layer normalisation whose shapes only a run tells."""
    shape = x.shape[axis % x.dim() :]
    if scale.shape == shape and (bias is None or bias.shape == shape):
        return torch.layer_norm(x, shape, scale, bias, epsilon)
    y = torch.layer_norm(x, shape, None, None, epsilon) * scale
    return y if bias is None else y + bias


@lowerings.register("RMSNormalization", since=23)
def rms_normalization(node: OperatorNode, x: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    """``x / sqrt(mean(x^2) + epsilon) scale`` over the axes from ``axis`` on. Source: ONNX RMSNormalization-23."""
    axis, epsilon, stash = node.attributes.get("axis", -1), node.attributes.get("epsilon", 1e-5), _stash(node)
    shape = _normalised_shape(node, axis)
    if known_dtype(node, 0) != known_dtype(node, 1) and known_dtype(node, 1) is not None:
        y = _any_rms_norm(x, None, axis, stash, epsilon)
        return y.to(torch_dtype(str(known_dtype(node, 1)))) * scale
    if stash is None and shape is not None and known_shape(node, 1) == shape:
        return torch.rms_norm(x, shape, scale, epsilon)
    return _any_rms_norm(x, scale, axis, stash, epsilon)


@recorded
def _any_rms_norm(
    x: torch.Tensor, scale: torch.Tensor | None, axis: int, stash: torch.dtype | None, epsilon: float
) -> torch.Tensor:
    """Normalisation whose shapes only a run tells, or whose precision is not PyTorch's."""
    shape = x.shape[axis % x.dim() :]
    if stash is None and (scale is None or scale.shape == shape):
        return torch.rms_norm(x, shape, scale, epsilon)
    if stash is None:
        normal = torch.rms_norm(x, shape, None, epsilon)
    else:
        wide = x.to(stash)
        mean = wide.square().mean(list(range(axis % x.dim(), x.dim())), keepdim=True)
        normal = (wide * torch.rsqrt(mean + epsilon)).to(x.dtype)
    return normal if scale is None else normal * scale


@lowerings.register("LpNormalization", since=1)
def lp_normalization(node: OperatorNode, x: torch.Tensor) -> Any:
    """``x / sum(|x|^p)^(1/p)`` along an axis, 0 where that is 0. Source: ONNX LpNormalization-22."""
    norm = torch.linalg.vector_norm(x, node.attributes.get("p", 2), node.attributes.get("axis", -1), keepdim=True)
    return x / torch.where(norm == 0, 1.0, norm)


@lowerings.register("MeanVarianceNormalization", since=13)
def mean_variance_normalization(node: OperatorNode, x: torch.Tensor) -> torch.Tensor:
    """``(x - mean) / (sqrt(variance) + 1e-9)`` over axes. Source: ONNX MeanVarianceNormalization-13."""
    axes = list(node.attributes.get("axes") or (0, 2, 3))
    deviation, mean = torch.std_mean(x, axes, correction=0, keepdim=True)
    return (x - mean) / (deviation + 1e-9)


@lowerings.register("LRN", since=13)
def lrn(node: OperatorNode, x: torch.Tensor) -> torch.Tensor:
    """``x / (bias + alpha / size sum(x^2))^beta``, summed over ``size`` channels around each. Source: ONNX LRN-13."""
    size = node.attributes["size"]
    before, after = (size - 1) // 2, size // 2
    alpha, beta = node.attributes.get("alpha", 1e-4), node.attributes.get("beta", 0.75)
    return _lrn(x, size, before, after, alpha, beta, node.attributes.get("bias", 1.0))


@recorded
def _lrn(x: torch.Tensor, size: int, before: int, after: int, alpha: float, beta: float, bias: float) -> torch.Tensor:
    rows = x.square().reshape(x.shape[0], 1, x.shape[1], -1) if x.numel() else x.square()
    if not x.numel():
        return rows
    mean = F.avg_pool2d(F.pad(rows, (0, 0, before, after)), (size, 1), 1)
    return x / (bias + alpha * mean.reshape(x.shape)).pow(beta)
