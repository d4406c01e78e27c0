"""Recording calls that fx proxies do not intercept by themselves."""

from __future__ import annotations

import operator
from typing import Any

from torch import fx

__all__ = ["choose"]


def choose(index: Any, *values: Any) -> Any:
    """Return ``values[index]``, chosen when the graph runs if the index is only known then.

    Args:
        index: A number, or a proxy for one.
        *values: Tensors or proxies.
    """
    if not isinstance(index, fx.Proxy):
        return values[index]
    return index.tracer.create_proxy("call_function", operator.getitem, (values, index), {})
