"""The tables of LabelEncoder, as modules."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from deep500.core.errors import InvalidNetworkError
from deep500.frameworks.pytorch._arrays import as_texts, to_array, to_tensor
from deep500.frameworks.pytorch.lowering._host import HostModule
from deep500.networks.operator_node import OperatorNode

__all__ = ["label_table"]

#: Dtype of what a list attribute holds, by the end of its name.
_TYPES: dict[str, Any] = {"floats": np.float32, "int64s": np.int64, "strings": object}


class _NumberTable(torch.nn.Module):
    """Numbers for numbers, looked up on the device."""

    keys: torch.Tensor
    values: torch.Tensor
    default: torch.Tensor
    nan_value: torch.Tensor

    def __init__(self, keys: NDArray[Any], values: NDArray[Any], default: NDArray[Any]) -> None:
        super().__init__()
        order = np.argsort(keys, kind="stable")  # what is not a number comes last
        keys, values = keys[order], values[order]
        count = keys.size - int(np.isnan(keys).sum()) if keys.dtype.kind == "f" else keys.size
        # Of equal keys the last one counts: the one before the next greater key.
        self.register_buffer("keys", to_tensor(keys[:count]), persistent=False)
        self.register_buffer("values", to_tensor(np.append(default, values[:count])), persistent=False)
        self.register_buffer("nan_value", to_tensor(values[-1:] if count < keys.size else default), persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        after = torch.searchsorted(self.keys, x.contiguous(), right=True)
        found = torch.zeros_like(x, dtype=torch.bool)
        if self.keys.numel():
            found = (after > 0) & (self.keys[(after - 1).clamp(min=0)] == x)
        result = self.values[torch.where(found, after, 0)]
        return torch.where(torch.isnan(x), self.nan_value, result) if x.dtype.is_floating_point else result


class _TextTable(HostModule):
    """A table whose keys or values are texts. Runs on the host."""

    def __init__(self, keys: NDArray[Any], values: NDArray[Any], default: NDArray[Any]) -> None:
        super().__init__()
        self.table = {_key(key): value for key, value in zip(keys.tolist(), values)}
        self.default = default.reshape(-1)[0]
        self.dtype = values.dtype

    def forward(self, x: Any) -> Any:
        array = to_array(x) if isinstance(x, torch.Tensor) else np.asarray(x, object)
        found = [self.table.get(_key(key), self.default) for key in array.reshape(-1).tolist()]
        result = np.empty(array.size, self.dtype)
        result[:] = found
        return self.returned(result.reshape(array.shape))


def _key(key: Any) -> Any:
    """Return a key that equals itself: NaN does not, and here it stands for all of its kind."""
    return None if isinstance(key, float) and math.isnan(key) else key


def label_table(node: OperatorNode) -> torch.nn.Module:
    """Return the table of a LabelEncoder as a module.

    Raises:
        InvalidNetworkError: The node has no keys or no values.
    """
    keys, values = _column(node, "keys"), _column(node, "values")
    if keys is None or values is None:
        classes = node.attributes.get("classes_strings")
        if classes is None:
            raise InvalidNetworkError(f"{node.label} has no table; accepted are the attributes keys_* and values_*.")
        # Version 1: texts for their positions, or the other way.
        texts, positions = np.array(classes, object), np.arange(len(classes))
        first = node.input_types[0]
        keys, values = (positions, texts) if first is not None and first.dtype == "int64" else (texts, positions)
    table = _TextTable if "O" in (keys.dtype.kind, values.dtype.kind) else _NumberTable
    return table(keys, values, _default(node, values.dtype))


def _column(node: OperatorNode, name: str) -> NDArray[Any] | None:
    for suffix, dtype in _TYPES.items():
        if node.attributes.get(f"{name}_{suffix}") is not None:
            return np.array(node.attributes[f"{name}_{suffix}"], dtype)
    tensor = node.attributes.get(f"{name}_tensor")
    return None if tensor is None else _vector(tensor)


def _vector(tensor: Any) -> NDArray[Any]:
    texts = as_texts(np.asarray(tensor))
    return np.asarray(tensor if texts is None else texts).reshape(-1)


def _default(node: OperatorNode, dtype: np.dtype[Any]) -> NDArray[Any]:
    given = node.attributes.get("default_tensor")
    if given is not None:
        return _vector(given)
    name, usual = {"f": ("default_float", -0.0), "i": ("default_int64", -1)}.get(
        dtype.kind, ("default_string", "_Unused")
    )
    return np.array([node.attributes.get(name, usual)], dtype)
