"""The gradient modifier in one form, and the check of what it returns."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from deep500.core.errors import TrainingError

__all__ = ["GradientModifier", "check_like", "three_arguments"]

#: Changes a gradient before it is used: ``modifier(gradient)``, ``modifier(gradient, parameter)`` or
#: ``modifier(gradient, parameter, name)`` returns the gradient to use, on the framework's own tensors.
GradientModifier = Callable[..., Any]


def check_like(changed: Any, grad: Any, param_name: str) -> None:
    """Check that a modifier returned a gradient: a number or a smaller tensor would train something, but not that.

    Raises:
        TrainingError: It did not.
    """
    if not hasattr(grad, "shape") or (
        type(changed) is type(grad) and changed.shape == grad.shape and changed.dtype == grad.dtype
    ):
        return  # the usual case, which must cost a step next to nothing; or a rule that is tried on plain numbers
    if _kind(changed) != _kind(grad):
        received = _kind(changed) or f"a {type(changed).__name__}"
        raise TrainingError(
            f"gradient_modifier returned {received} for the parameter {param_name!r}; it must return a tensor like the "
            f"gradient, {_kind(grad)}. Python's own numbers, as in gradient * 0.5, keep the dtype."
        )


def _kind(tensor: Any) -> str:
    """Return dtype and shape, such as ``"float32[3, 4]"``; an empty text for what is no tensor."""
    if not hasattr(tensor, "shape") or not hasattr(tensor, "dtype"):
        return ""
    dtype = getattr(tensor.dtype, "name", None) or str(tensor.dtype)
    return f"{dtype}[{', '.join(map(str, tensor.shape))}]"


def three_arguments(modifier: GradientModifier | None) -> GradientModifier | None:
    """Return the modifier in the form that takes gradient, parameter and name.

    Raises:
        TrainingError: It takes other arguments.
    """
    if modifier is None:
        return None
    if not callable(modifier):
        raise TrainingError(
            f"gradient_modifier was given as {modifier!r}; accepted is a function of (gradient), "
            f"(gradient, parameter) or (gradient, parameter, name)."
        )
    try:
        parameters = inspect.signature(modifier).parameters.values()
    except (TypeError, ValueError):  # a built-in without a signature
        return lambda grad, param, name: modifier(grad)
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    required = [p for p in positional if p.default is p.empty]
    variadic = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    count = 3 if variadic else len(required) if required else min(len(positional), 3)
    if not 1 <= count <= 3 or any(p.kind is p.KEYWORD_ONLY and p.default is p.empty for p in parameters):
        raise TrainingError(
            f"gradient_modifier takes {count} arguments; accepted is a function of (gradient), "
            f"(gradient, parameter) or (gradient, parameter, name)."
        )
    return lambda grad, param, name: modifier(*(grad, param, name)[:count])
