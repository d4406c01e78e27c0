"""What the outputs of an operator are like, from descriptors of its inputs and outputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from deep500.core.errors import OperatorError
from deep500.core.tensor_descriptor import TensorDescriptor
from deep500.core.texts import shown

__all__ = ["DescribedTypes"]


class DescribedTypes:
    """Descriptors of inputs and outputs; a symbolic size of an output is that of the input which has the symbol."""

    def __init__(
        self,
        name: str,
        inputs: Sequence[TensorDescriptor] | None,
        outputs: Sequence[TensorDescriptor] | None,
        counts: tuple[int, int],
    ) -> None:
        """Check the descriptors.

        Args:
            name: Name of the operator, for messages.
            inputs: One an input; ``None`` accepts all inputs.
            outputs: One an output; ``None`` makes the outputs like the first input.
            counts: Number of inputs and of outputs that the operator has.

        Raises:
            OperatorError: Their number is wrong, or the size of an output cannot be told.
        """
        self.name, self.counts = name, counts
        self.inputs = _checked(name, "input", inputs, counts[0])
        self.outputs = _checked(name, "output", outputs, counts[1])
        symbols = {size for d in self.inputs or () for size in d.shape or () if isinstance(size, str)}
        for index, descriptor in enumerate(self.outputs or ()):
            for size in descriptor.shape or ():
                if not isinstance(size, int) and size not in symbols:
                    raise OperatorError(
                        f"{name}: output {index} is described as {descriptor}, and no input tells the size {size!r}. "
                        f"Give a number, or a name that the shape of an input has too; or give infer= instead."
                    )

    def infer(self, shapes: Sequence[Any], dtypes: Sequence[Any]) -> tuple[Any, Any]:
        """Return shapes and dtypes of the outputs; see :meth:`CustomOp.infer`.

        Raises:
            OperatorError: An input does not fit its descriptor.
        """
        bound: dict[str, Any] = {}
        for index, descriptor in enumerate(self.inputs or ()):
            if shapes[index] is not None and not _fits(descriptor, shapes[index], dtypes[index], bound):
                raise OperatorError(
                    f"{self.name} was given {dtypes[index]} of shape {tuple(shapes[index])} as input {index}; accepted "
                    f"is {descriptor}."
                )
        outputs = self.outputs or [TensorDescriptor(dtypes[0])] * self.counts[1]
        found = [
            shapes[0] if d.shape is None else tuple(bound[size] if isinstance(size, str) else size for size in d.shape)
            for d in outputs
        ]
        return found, [descriptor.dtype for descriptor in outputs]


def _checked(
    name: str, kind: str, descriptors: Sequence[TensorDescriptor] | None, count: int
) -> list[TensorDescriptor] | None:
    if descriptors is None:
        return None
    listed = list(descriptors)
    if not all(isinstance(descriptor, TensorDescriptor) for descriptor in listed):
        raise OperatorError(
            f"{name}: the {kind}s are described by {shown(listed)}; accepted are d5.tensordesc('float32', (4, 3)) and "
            f"the like."
        )
    if len(listed) != count:
        raise OperatorError(f"{name}: {len(listed)} {kind}s are described; the C++ code has {count}.")
    return listed


def _fits(descriptor: TensorDescriptor, shape: Sequence[Any], dtype: str, bound: dict[str, Any]) -> bool:
    """Whether a tensor fits a descriptor, whose symbols are bound; sizes that are symbolic in a framework fit."""
    if dtype != descriptor.dtype:
        return False
    if descriptor.shape is None:
        return True
    if len(shape) != len(descriptor.shape):
        return False
    for accepted, size in zip(descriptor.shape, shape):
        expected = bound.setdefault(accepted, size) if isinstance(accepted, str) else accepted
        if isinstance(expected, int) and isinstance(size, int) and expected != size:
            return False
    return True
