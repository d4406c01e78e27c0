"""The frame of operators of one or more tensors that broadcast."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from typing import Literal

import numpy as np

from deep500.core.errors import OperatorError
from deep500.operators.library._broadcast import broadcast_shape, unbroadcast
from deep500.operators.library._tensors import check_dtypes, compute_dtype, is_float, present, returned
from deep500.operators.operator import Array, Operator, OptionalArray

__all__ = ["ExtremeOperator", "VariadicOperator"]


class VariadicOperator(Operator):
    r"""An operator :math:`y = f(x_0, x_1, \dots)` on every tuple of elements, after broadcasting.

    16-bit floats are computed in float32 and rounded once. Infinities and NaN follow IEEE 754, without warnings.
    """

    #: Which dtypes the specification accepts.
    accepts: Literal["floats", "signed", "numbers"] = "floats"

    @abc.abstractmethod
    def value(self, tensors: Sequence[Array]) -> Array:
        """Return the values, of the broadcast shape."""

    @abc.abstractmethod
    def slopes_times(self, gradient: Array, tensors: Sequence[Array], y: Array) -> Sequence[Array]:
        """Return the gradient times the slope by each tensor, in the broadcast shape."""

    @np.errstate(all="ignore")
    def forward(self, inputs: Sequence[OptionalArray]) -> tuple[Array, ...]:
        """Compute the values in the broadcast shape and the dtype of the inputs.

        Raises:
            OperatorError: There is no input, the dtypes differ or are not accepted, or the shapes do not broadcast.
        """
        name = type(self).__name__
        if not inputs or any(x is None for x in inputs):
            raise OperatorError(
                f"{name}: received {len(inputs)} inputs; accepted is at least one, none of them absent."
            )
        tensors = [np.asarray(present(x)) for x in inputs]
        check_dtypes(name, [f"data_{i}" for i in range(len(tensors))], tensors, self.accepts)
        broadcast_shape(name, *(x.shape for x in tensors))
        dtype = tensors[0].dtype
        y = self.value([x.astype(compute_dtype(dtype), copy=False) for x in tensors])
        return (np.array(y, dtype=dtype),)

    @np.errstate(all="ignore")
    def backward(
        self, grads: Sequence[OptionalArray], fwd_inputs: Sequence[OptionalArray], fwd_outputs: Sequence[OptionalArray]
    ) -> tuple[OptionalArray, ...]:
        """Compute the gradients by the inputs, summed over repeated axes; ``None`` for integers."""
        tensors = [np.asarray(x) for x in fwd_inputs]
        if grads[0] is None or not is_float(tensors[0].dtype):
            return (None,) * len(fwd_inputs)
        wide = compute_dtype(tensors[0].dtype)
        g, y, *xs = (np.asarray(t).astype(wide, copy=False) for t in (grads[0], fwd_outputs[0], *tensors))
        slopes = self.slopes_times(g, xs, y)
        by = [unbroadcast(np.broadcast_to(s, g.shape), x.shape) for s, x in zip(slopes, tensors, strict=True)]
        return returned(by, fwd_inputs)


class ExtremeOperator(VariadicOperator):
    """The largest or the smallest of several tensors; where several are equal to it, they share the gradient evenly."""

    accepts = "numbers"

    def slopes_times(self, gradient: Array, tensors: Sequence[Array], y: Array) -> Sequence[Array]:
        """Return the gradient where the tensor is what the result is."""
        chosen = [np.broadcast_to(x == y, y.shape) for x in tensors]
        share = np.asarray(gradient / np.sum(chosen, axis=0, dtype=gradient.dtype))
        return [np.where(is_it, share, gradient.dtype.type(0)) for is_it in chosen]
