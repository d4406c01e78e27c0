"""Nodes that run on the host: what they compute with is nothing that PyTorch can hold, such as texts."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import torch

from deep500.core.tensor_descriptor import STRING
from deep500.frameworks.pytorch._arrays import to_array, to_tensor
from deep500.frameworks.pytorch._recording import call_module, spread
from deep500.frameworks.pytorch.lowering._plain import device_of
from deep500.networks.host_operator import NodeEvaluator
from deep500.networks.operator_node import OperatorNode

__all__ = ["on_host", "texts_on_host"]

_Lowering = TypeVar("_Lowering", bound=Callable[..., Any])


class _HostNode(torch.nn.Module):
    """Runs a node by ONNX' reference implementation."""

    def __init__(self, node: OperatorNode) -> None:
        super().__init__()
        self.evaluate = NodeEvaluator(node)

    @torch.compiler.disable
    def forward(self, *values: Any) -> tuple[Any, ...]:
        device = device_of(values)
        return tuple(_from_host(y, device) for y in self.evaluate([_to_host(x) for x in values]))


def _to_host(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [_to_host(entry) for entry in value]
    return to_array(value) if isinstance(value, torch.Tensor) else value


def _from_host(value: Any, device: torch.device) -> Any:
    if isinstance(value, (list, tuple)):
        return [_from_host(entry, device) for entry in value]
    if not isinstance(value, np.ndarray):
        return value
    return value if value.dtype.kind in "OUS" else to_tensor(value).to(device)


def on_host(node: OperatorNode, *values: Any) -> tuple[Any, ...]:
    """Run a node on the host; its outputs are not differentiable."""
    return spread(call_module(_HostNode(node), values), len(node.outputs))


def texts_on_host(lowering: _Lowering) -> _Lowering:
    """Make a lowering leave nodes that have texts among their tensors to the host."""

    @functools.wraps(lowering)
    def lower(node: OperatorNode, *values: Any) -> Any:
        kinds = (*node.input_types, *node.output_types)
        if any(kind is not None and kind.dtype == STRING for kind in kinds):
            return on_host(node, *values)
        return lowering(node, *values)

    return lower  # type: ignore[return-value]
