"""ONNX Einsum."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from deep500.core.errors import OperatorError
from deep500.operators.library._broadcast import unbroadcast
from deep500.operators.library._equation import Equation, read_equation
from deep500.operators.library._tensors import check_dtypes, compute_dtype, is_float, present, returned
from deep500.operators.operator import Array, Operator, OptionalArray

__all__ = ["Einsum"]


class Einsum(Operator):
    r"""Sum of products over indices, in Einstein's notation: ``"ij,jk->ik"`` is a product of matrices.

    One or more inputs of one dtype, a float or an integer; the output has it, too. An index that is not in the output
    is summed over; one that an input has twice takes its diagonal; the axes of an ellipsis broadcast. 16-bit floats
    are computed in float32.

    Source: ONNX Einsum, version 28.
    """

    def __init__(self, *, equation: str) -> None:
        """Set the attribute.

        Args:
            equation: The indices of each input and, after ``->``, of the output; without that, the output has those
                that are there once, in alphabetic order.

        Raises:
            OperatorError: It is no text.
        """
        if not isinstance(equation, str) or not equation.strip():
            raise OperatorError(f"Einsum: the attribute equation is {equation!r}; accepted is a text such as 'ij,jk'.")
        self.equation = equation

    @np.errstate(all="ignore")
    def forward(self, inputs: Sequence[OptionalArray]) -> tuple[Array, ...]:
        """Compute the sum.

        Raises:
            OperatorError: The equation does not fit the inputs, or their dtypes differ.
        """
        equation, tensors = self._read(inputs)
        dtype = tensors[0].dtype
        y = np.einsum(equation.text, *(x.astype(compute_dtype(dtype), copy=False) for x in tensors))
        return (np.array(y, dtype=dtype),)

    @np.errstate(all="ignore")
    def backward(
        self, grads: Sequence[OptionalArray], fwd_inputs: Sequence[OptionalArray], fwd_outputs: Sequence[OptionalArray]
    ) -> tuple[OptionalArray, ...]:
        """Compute the gradients by the inputs: sums of products of the output's and the other inputs."""
        equation, tensors = self._read(fwd_inputs)
        if grads[0] is None or not is_float(tensors[0].dtype):
            return (None,) * len(tensors)
        wide = compute_dtype(tensors[0].dtype)
        xs = [x.astype(wide, copy=False) for x in tensors]
        gradient = np.asarray(grads[0]).astype(wide, copy=False)
        return returned([_by_input(i, equation, xs, gradient) for i in range(len(xs))], fwd_inputs)

    def _read(self, inputs: Sequence[OptionalArray]) -> tuple[Equation, list[Array]]:
        if not inputs or any(x is None for x in inputs):
            raise OperatorError(
                f"Einsum: received {len(inputs)} inputs; accepted is at least one, none of them absent."
            )
        tensors = [np.asarray(present(x)) for x in inputs]
        check_dtypes("Einsum", [f"input {i}" for i in range(len(tensors))], tensors, "numbers")
        return read_equation(self.equation, [x.shape for x in tensors]), tensors


def _by_input(index: int, equation: Equation, tensors: Sequence[Array], gradient: Array) -> Array:
    """Return the gradient by one input."""
    own = equation.inputs[index]
    labels = list(dict.fromkeys(own))
    # Sizes 1 that broadcast are left out of the products: their labels stand for the whole size.
    terms, operands = [equation.output], [gradient]
    for i, (term, x) in enumerate(zip(equation.inputs, tensors, strict=True)):
        if i != index:
            kept = [axis for axis, label in enumerate(term) if x.shape[axis] == equation.sizes[label]]
            terms.append("".join(term[axis] for axis in kept))
            operands.append(x.reshape([x.shape[axis] for axis in kept]))
    there = [label for label in labels if any(label in term for term in terms)]
    found = np.einsum(f"{','.join(terms)}->{''.join(there)}", *operands)
    # An index that only this input has was summed over: all its elements have one gradient.
    spread = found.reshape([equation.sizes[label] if label in there else 1 for label in labels])
    sizes = [equation.sizes[label] for label in labels]
    x = tensors[index]
    shape = dict(zip(own, x.shape))
    by_labels = unbroadcast(np.broadcast_to(spread, sizes), tuple(shape[label] for label in labels))
    if len(labels) == len(own):
        return by_labels
    result = np.zeros(x.shape, by_labels.dtype)
    diagonal = np.einsum(f"{own}->{''.join(labels)}", result)  # a view that can be written to
    diagonal[...] = by_labels
    return result
