"""Models of one depth, made from the function of all depths."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable

from onnxscript import nn

__all__ = ["of_depth"]


def of_depth(model: Callable[..., nn.Module], name: str, depth: int) -> Callable[..., nn.Module]:
    """Return a model's function with its depth set; the other arguments and their defaults stay.

    Args:
        model: The function of all depths.
        name: What the model of this depth is called.
        depth: Number of layers.
    """

    @functools.wraps(model)
    def made(**arguments: object) -> nn.Module:
        return model(depth=depth, **arguments)

    signature = inspect.signature(model)
    made.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[parameter for parameter in signature.parameters.values() if parameter.name != "depth"]
    )
    made.__name__ = made.__qualname__ = name
    made.__doc__ = f"Return {model.__name__} of {depth} layers; its arguments are those of ``{model.__name__}``."
    return made
