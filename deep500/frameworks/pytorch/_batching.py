"""``torch.vmap`` of operators: one call for each entry of the batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from deep500.core.errors import OperatorError

__all__ = ["make_batched"]


def make_batched(entry: Callable[..., Any], name: str) -> Callable[..., Any]:
    """Return what ``torch.library.register_vmap`` asks for: the operator over one dimension of its arguments.

    Args:
        entry: The operator in the dispatcher.
        name: Its name, for messages.
    """

    def batched(info: Any, in_dims: tuple[Any, ...], *arguments: Any) -> tuple[Any, Any]:
        if info.batch_size == 0:
            raise OperatorError(f"{name} cannot be batched by torch.vmap over no entries.")
        found = [
            entry(*(_entry_of(value, dim, index) for value, dim in zip(arguments, in_dims)))
            for index in range(info.batch_size)
        ]
        if isinstance(found[0], torch.Tensor):
            return torch.stack(found), 0
        stacked = [torch.stack(entries) for entries in zip(*found)]
        return type(found[0])(stacked), type(found[0])([0] * len(stacked))

    return batched


def _entry_of(value: Any, dim: Any, index: int) -> Any:
    if isinstance(dim, (list, tuple)):
        return [_entry_of(one, its_dim, index) for one, its_dim in zip(value, dim)]
    return value if dim is None else value.select(dim, index)
