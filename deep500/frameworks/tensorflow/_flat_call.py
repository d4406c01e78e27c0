"""Calls of a graph whose arguments are known to fit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["flat_call"]


def flat_call(function: Any) -> Callable[..., Any]:
    """Return what calls a concrete function with tensors of its types.

    A call of the function itself first binds and checks the arguments anew, which takes as long as a small graph. Here
    they have passed the network's checks, and the graph was chosen by their structure. Where a version of TensorFlow
    has no such entry, the function itself is returned.

    Args:
        function: A ``ConcreteFunction`` whose arguments are tensors, none of them named.
    """
    call = getattr(function, "_call_flat", None)
    if call is None:
        checked: Callable[..., Any] = function
        return checked
    return lambda *tensors: call(list(tensors), function.captured_inputs)
