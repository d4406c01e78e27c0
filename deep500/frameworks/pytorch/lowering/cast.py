"""Other element types: by value and by bits."""

from __future__ import annotations

from typing import Any

import torch

from deep500.core.errors import InvalidNetworkError
from deep500.core.tensor_descriptor import STRING
from deep500.frameworks.pytorch._dtypes import HELD_AS, holding_dtype, torch_dtype
from deep500.frameworks.pytorch._recording import recorded, recorded_view
from deep500.frameworks.pytorch.lowering import _casting as casting
from deep500.frameworks.pytorch.lowering import lowerings
from deep500.frameworks.pytorch.lowering._host import run_on_host
from deep500.frameworks.pytorch.lowering._kinds import input_type, is_text, onnx_type, output_type
from deep500.networks.operator_node import OperatorNode

__all__: list[str] = []


@recorded
def _converted(x: torch.Tensor, source: str | None, target: str, saturate: bool, round_mode: str) -> torch.Tensor:
    return casting.cast(x, source, target, saturate, round_mode)


def _cast(node: OperatorNode, x: Any, target: str) -> Any:
    """Cast the first input of a node; what needs no more than PyTorch's own conversion is that, and differentiable."""
    source = input_type(node)
    if source is not None and not _is_special(source) and not _is_special(target):
        return x.to(torch_dtype(target))
    if source == target:
        return x
    saturate, round_mode = bool(node.attributes.get("saturate", 1)), node.attributes.get("round_mode", "up")
    if round_mode not in ("up", "down", "nearest"):
        raise InvalidNetworkError(f"{node.label} has round_mode={round_mode!r}; accepted are up, down and nearest.")
    return _converted(x, source, target, saturate, round_mode)


def _is_special(name: str) -> bool:
    return name in HELD_AS or casting.is_small_float(name)


@lowerings.register("Cast", since=9)
def cast(node: OperatorNode, x: Any) -> Any:
    """The elements in another dtype. Runs on the host where one of them is text.

    Source: ONNX Cast-28.
    """
    target = onnx_type(node.attributes["to"])
    return run_on_host(node, x) if STRING in (target, input_type(node)) else _cast(node, x, target)


@recorded
def _converted_like(x: torch.Tensor, like: torch.Tensor, source: str | None, saturate: bool) -> torch.Tensor:
    return casting.cast(x, source, str(like.dtype).removeprefix("torch."), saturate)


@lowerings.register("CastLike", since=15)
def cast_like(node: OperatorNode, x: Any, like: Any) -> Any:
    """The elements in the dtype of another tensor. Runs on the host where one of them is text.

    Source: ONNX CastLike-25.
    """
    target = input_type(node, 1) or output_type(node)
    if is_text(node) or target == STRING:
        return run_on_host(node, x, like)
    if target is None:
        return _converted_like(x, like, input_type(node), bool(node.attributes.get("saturate", 1)))
    return _cast(node, x, target)


@recorded_view
def _reinterpreted(x: torch.Tensor, target: str) -> torch.Tensor:
    if target not in HELD_AS:
        return x.view(holding_dtype(target))
    bits = 4 if target.startswith("float") else int(target[-1])
    kept = x.view(torch.uint8) & ((1 << bits) - 1)
    if not target.startswith("int"):
        return kept
    sign = 1 << (bits - 1)
    return (kept.to(torch.int8).bitwise_xor(sign) - sign).to(torch.int8)


@lowerings.register("BitCast", since=26)
def bit_cast(node: OperatorNode, x: torch.Tensor) -> torch.Tensor:
    """The bits of the elements, understood as a dtype of the same size.

    Source: ONNX BitCast-26.
    """
    source, target = input_type(node), onnx_type(node.attributes["to"])
    if source is not None and _bit_count(source) != _bit_count(target):
        raise InvalidNetworkError(
            f"{node.label} reads {source} ({_bit_count(source)} bits) as {target} ({_bit_count(target)} bits); "
            f"accepted are types of the same size."
        )
    return _reinterpreted(x, target)


def _bit_count(name: str) -> int:
    if name in HELD_AS:
        return 4 if name.startswith("float") else int(name[-1])
    return 8 * torch_dtype(name).itemsize
