"""Attributes of any object in a checkpoint: what a user's optimizer keeps from step to step."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from deep500.core.errors import CheckpointError
from deep500.core.tensor_descriptor import TensorDescriptor
from deep500.networks.graph_executor import GraphExecutor

__all__ = ["restored_value", "saved_value"]

_PLAIN = (bool, int, float, str, type(None))


def saved_value(where: str, value: Any, executor: GraphExecutor) -> Any:
    """Return an attribute as JSON values and NumPy arrays that say what they were.

    Args:
        where: Name of the attribute, for messages.
        value: A number, text, ``None``, NumPy array or number, tensor of the executor's framework, or a dictionary,
            list, tuple or set of these.
        executor: Whose tensors they are.

    Raises:
        CheckpointError: It is something else.
    """
    if type(value) in _PLAIN:
        return value
    if isinstance(value, np.generic):
        return {"kind": "numpy number", "value": np.array(value)}
    if isinstance(value, np.ndarray) and not value.dtype.hasobject:
        return {"kind": "array", "value": np.array(value)}
    if not isinstance(value, np.ndarray) and executor.is_native(value):
        return {"kind": "tensor", "value": np.array(executor.to_numpy(value))}
    if type(value) is dict:
        pairs = [[saved_value(f"{where} key", k, executor), value[k]] for k in value]
        return {"kind": "dict", "items": [[k, saved_value(f"{where}[{k!r}]", v, executor)] for k, v in pairs]}
    if type(value) in (list, tuple):
        return {
            "kind": type(value).__name__,
            "items": [saved_value(f"{where}[{i}]", v, executor) for i, v in enumerate(value)],
        }
    if type(value) in (set, frozenset):
        items = sorted(value, key=repr)
        return {"kind": type(value).__name__, "items": [saved_value(f"{where} member", v, executor) for v in items]}
    raise CheckpointError(
        f"The optimizer's attribute {where} is a {type(value).__name__}, which cannot be saved; accepted are numbers, "
        f"texts, tensors, and dictionaries, lists, tuples and sets of them. Override state() and restore() of the "
        f"optimizer, or keep it in such values."
    )


def restored_value(where: str, saved: Any, executor: GraphExecutor) -> Any:
    """Return what :func:`saved_value` was given.

    Raises:
        CheckpointError: It is nothing that was saved so.
    """
    if type(saved) in _PLAIN:
        return saved
    kind = saved.get("kind") if isinstance(saved, Mapping) else None
    if kind in ("array", "tensor", "numpy number") and isinstance(saved.get("value"), np.ndarray):
        value = np.array(saved["value"])
        if kind == "tensor":
            return executor.to_native(value, TensorDescriptor(value.dtype, value.shape))
        return value if kind == "array" else value[()]
    items = saved.get("items") if isinstance(saved, Mapping) else None
    if kind == "dict" and isinstance(items, list):
        pairs = [(restored_value(f"{where} key", k, executor), v) for k, v in items]
        return {key: restored_value(f"{where}[{key!r}]", v, executor) for key, v in pairs}
    makers: dict[Any, Callable[[Any], Any]] = {"list": list, "tuple": tuple, "set": set, "frozenset": frozenset}
    if kind in makers and isinstance(items, list):
        return makers[kind](restored_value(f"{where}[{i}]", v, executor) for i, v in enumerate(items))
    raise CheckpointError(f"The checkpoint holds nothing that was saved for the optimizer's attribute {where}.")
