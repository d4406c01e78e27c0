"""What the operators' classes share: comparisons of sizes that a framework may not know yet, and texts of shapes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from deep500.core.errors import OperatorError

__all__ = ["check_shape", "differs", "shape_text"]


def differs(size: Any, other: Any) -> bool:
    """Whether two sizes are known to differ. Symbolic ones may be equal; the C++ code compares them when it runs."""
    return isinstance(size, int) and isinstance(other, int) and size != other


def shape_text(shape: Sequence[Any]) -> str:
    """Return a shape as messages show it, such as ``[2, 3]``, with ``?`` for symbolic sizes."""
    return "[" + ", ".join(str(size) if isinstance(size, int) else "?" for size in shape) + "]"


def check_shape(operator: str, name: str, shape: Sequence[Any], accepted: Sequence[Any], meaning: str = "") -> None:
    """Check that a tensor has a certain shape, as far as sizes are known.

    Args:
        operator: Name of the operator, for the message.
        name: Name of the tensor, for the message.
        shape: Its shape.
        accepted: The shape it must have.
        meaning: What that is, such as ``", one entry a channel"``, for the message.

    Raises:
        OperatorError: The ranks differ, or two sizes.
    """
    if len(shape) != len(accepted) or any(map(differs, shape, accepted)):
        raise OperatorError(
            f"{operator}: {name} has the shape {shape_text(shape)}; accepted is {shape_text(accepted)}{meaning}."
        )
