"""Reductions over axes, and sums and products of what comes before."""

from __future__ import annotations

import torch

from deep500.frameworks.pytorch._recording import recorded
from deep500.frameworks.pytorch.lowering import _reducing as reducing
from deep500.frameworks.pytorch.lowering import lowerings
from deep500.frameworks.pytorch.lowering._integers import narrowed, ordered, wider
from deep500.frameworks.pytorch.lowering._kinds import input_type, is_integer
from deep500.networks.operator_node import OperatorNode

__all__: list[str] = []


def _reduce(name: str, node: OperatorNode, x: torch.Tensor, axes: torch.Tensor | None) -> torch.Tensor:
    """Reduce over the axes that the second input names; over all of them, or none, when it is absent or empty."""
    keepdims, noop = bool(node.attributes.get("keepdims", 1)), bool(node.attributes.get("noop_with_empty_axes", 0))
    known: list[int] | None = []
    if axes is not None:
        known = [int(axis) for axis in node.constants[1].reshape(-1)] if 1 in node.constants else None
    kind = node.input_types[0]
    rank = None if kind is None else kind.rank
    if known is None or (not known and not noop and rank is None):
        return _reduced_at_run_time(name, x, axes, keepdims, noop)
    if not known and not noop:
        known = list(range(rank or 0))
    direct = reducing.DIRECT.get(name)
    if direct is None or input_type(node) is None or is_integer(node):
        return _reduced(name, x, known, keepdims)
    result: torch.Tensor = direct(x, known, keepdims)
    return result


@recorded
def _reduced(name: str, x: torch.Tensor, axes: list[int], keepdims: bool) -> torch.Tensor:
    return reducing.reduce(name, x, axes, keepdims)


@recorded
def _reduced_at_run_time(
    name: str, x: torch.Tensor, axes: torch.Tensor | None, keepdims: bool, noop: bool
) -> torch.Tensor:
    names = [] if axes is None else [int(axis) for axis in axes.reshape(-1).tolist()]
    if not names and not noop:
        names = list(range(x.dim()))
    return reducing.reduce(name, x, names, keepdims)


@lowerings.register("ReduceSum", since=13)
def reduce_sum(node: OperatorNode, x: torch.Tensor, axes: torch.Tensor | None = None) -> torch.Tensor:
    """Sum over axes, in the dtype of the input.

    Source: ONNX ReduceSum-13.
    """
    return _reduce("sum", node, x, axes)


@lowerings.register("ReduceMean", since=18)
def reduce_mean(node: OperatorNode, x: torch.Tensor, axes: torch.Tensor | None = None) -> torch.Tensor:
    """Mean over axes; that of integers is truncated.

    Source: ONNX ReduceMean-18.
    """
    return _reduce("mean", node, x, axes)


@lowerings.register("ReduceMax", since=18)
def reduce_max(node: OperatorNode, x: torch.Tensor, axes: torch.Tensor | None = None) -> torch.Tensor:
    """Greatest element over axes; of none, the least number of the dtype.

    Source: ONNX ReduceMax-20.
    """
    return _reduce("max", node, x, axes)


@lowerings.register("ReduceMin", since=18)
def reduce_min(node: OperatorNode, x: torch.Tensor, axes: torch.Tensor | None = None) -> torch.Tensor:
    """Least element over axes; of none, the greatest number of the dtype.

    Source: ONNX ReduceMin-20.
    """
    return _reduce("min", node, x, axes)


@lowerings.register("ReduceProd", since=18)
def reduce_prod(node: OperatorNode, x: torch.Tensor, axes: torch.Tensor | None = None) -> torch.Tensor:
    """Product over axes, in the dtype of the input.

    Source: ONNX ReduceProd-18.
    """
    return _reduce("prod", node, x, axes)


@lowerings.register("ReduceL1", since=18)
def reduce_l1(node: OperatorNode, x: torch.Tensor, axes: torch.Tensor | None = None) -> torch.Tensor:
    """Sum of absolute values over axes.

    Source: ONNX ReduceL1-18.
    """
    return _reduce("l1", node, x, axes)


@lowerings.register("ReduceL2", since=18)
def reduce_l2(node: OperatorNode, x: torch.Tensor, axes: torch.Tensor | None = None) -> torch.Tensor:
    """Root of the sum of squares over axes; that of integers is truncated.

    Source: ONNX ReduceL2-18.
    """
    return _reduce("l2", node, x, axes)


@lowerings.register("ReduceLogSum", since=18)
def reduce_log_sum(node: OperatorNode, x: torch.Tensor, axes: torch.Tensor | None = None) -> torch.Tensor:
    """Logarithm of the sum over axes.

    Source: ONNX ReduceLogSum-28.
    """
    return _reduce("log_sum", node, x, axes)


@lowerings.register("ReduceLogSumExp", since=18)
def reduce_log_sum_exp(node: OperatorNode, x: torch.Tensor, axes: torch.Tensor | None = None) -> torch.Tensor:
    """Logarithm of the sum of exponentials over axes.

    Source: ONNX ReduceLogSumExp-28.
    """
    return _reduce("log_sum_exp", node, x, axes)


@lowerings.register("ReduceSumSquare", since=18)
def reduce_sum_square(node: OperatorNode, x: torch.Tensor, axes: torch.Tensor | None = None) -> torch.Tensor:
    """Sum of squares over axes.

    Source: ONNX ReduceSumSquare-18.
    """
    return _reduce("sum_square", node, x, axes)


@recorded
def _position(x: torch.Tensor, axis: int, keepdims: bool, takes_last: bool, takes_least: bool) -> torch.Tensor:
    x = ordered(x)
    find = torch.argmin if takes_least else torch.argmax
    if not takes_last:
        return find(x, axis, keepdim=keepdims)
    return x.size(axis) - 1 - find(torch.flip(x, [axis]), axis, keepdim=keepdims) if x.dim() else find(x)


def _extreme_position(node: OperatorNode, x: torch.Tensor, takes_least: bool) -> torch.Tensor:
    axis, keepdims = node.attributes.get("axis", 0), bool(node.attributes.get("keepdims", 1))
    return _position(x, axis, keepdims, bool(node.attributes.get("select_last_index", 0)), takes_least)


@lowerings.register("ArgMax", since=12)
def arg_max(node: OperatorNode, x: torch.Tensor) -> torch.Tensor:
    """Position of the greatest element along an axis: of equal ones the first, or the last.

    Source: ONNX ArgMax-13.
    """
    return _extreme_position(node, x, False)


@lowerings.register("ArgMin", since=12)
def arg_min(node: OperatorNode, x: torch.Tensor) -> torch.Tensor:
    """Position of the least element along an axis: of equal ones the first, or the last.

    Source: ONNX ArgMin-13.
    """
    return _extreme_position(node, x, True)


@recorded
def _accumulated(
    x: torch.Tensor, axis: int | torch.Tensor, multiplies: bool, exclusive: bool, reverse: bool
) -> torch.Tensor:
    along = int(axis)
    wide = wider(x)
    if reverse:
        wide = torch.flip(wide, [along])
    if exclusive and x.size(along):
        first = torch.full_like(wide.narrow(along, 0, 1), 1 if multiplies else 0)
        wide = torch.cat([first, wide.narrow(along, 0, x.size(along) - 1)], along)
    result = torch.cumprod(wide, along) if multiplies else torch.cumsum(wide, along)
    if reverse:
        result = torch.flip(result, [along])
    return narrowed(result, x.dtype)


def _accumulate(node: OperatorNode, x: torch.Tensor, axis: torch.Tensor, multiplies: bool) -> torch.Tensor:
    known = int(node.constants[1].reshape(())) if 1 in node.constants else axis
    exclusive, reverse = bool(node.attributes.get("exclusive", 0)), bool(node.attributes.get("reverse", 0))
    return _accumulated(x, known, multiplies, exclusive, reverse)


@lowerings.register("CumSum", since=11)
def cum_sum(node: OperatorNode, x: torch.Tensor, axis: torch.Tensor) -> torch.Tensor:
    """Sum of all elements up to each one along an axis, itself included or not, from either end.

    Source: ONNX CumSum-14.
    """
    return _accumulate(node, x, axis, False)


@lowerings.register("CumProd", since=26)
def cum_prod(node: OperatorNode, x: torch.Tensor, axis: torch.Tensor) -> torch.Tensor:
    """Product of all elements up to each one along an axis, itself included or not, from either end.

    Source: ONNX CumProd-26.
    """
    return _accumulate(node, x, axis, True)
