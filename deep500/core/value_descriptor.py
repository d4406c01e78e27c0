"""What is known of values that are no tensors: sequences of values, and values that may be absent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from deep500.core.tensor_descriptor import TensorDescriptor

__all__ = ["OptionalDescriptor", "SequenceDescriptor", "ValueDescriptor"]


@dataclass(frozen=True)
class SequenceDescriptor:
    """A list of values of one kind, of any length.

    Attributes:
        element: What each of them is.
    """

    element: ValueDescriptor

    def __str__(self) -> str:
        """Return a readable form such as ``sequence of float32[?]``."""
        return f"sequence of {self.element}"


@dataclass(frozen=True)
class OptionalDescriptor:
    """A value that may be absent.

    Attributes:
        element: What it is where it is there.
    """

    element: ValueDescriptor

    def __str__(self) -> str:
        """Return a readable form such as ``optional float32[?]``."""
        return f"optional {self.element}"


ValueDescriptor: TypeAlias = TensorDescriptor | SequenceDescriptor | OptionalDescriptor
