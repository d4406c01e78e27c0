"""Operators of tensors that may hold texts, which stay on the host."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from deep500.core.tensor_descriptor import STRING
from deep500.frameworks.pytorch.lowering._host import run_on_host
from deep500.networks.operator_node import OperatorNode

__all__ = ["texts_on_host"]

_Lowering = TypeVar("_Lowering", bound=Callable[..., Any])


def texts_on_host(lowering: _Lowering) -> _Lowering:
    """Make a lowering leave nodes that have texts among their tensors to the host."""

    @functools.wraps(lowering)
    def lower(node: OperatorNode, *values: Any) -> Any:
        kinds = (*node.input_types, *node.output_types)
        if any(kind is not None and kind.dtype == STRING for kind in kinds):
            return run_on_host(node, *values)
        return lowering(node, *values)

    return lower  # type: ignore[return-value]
