"""The frames of elementwise operators: one tensor, or two that broadcast."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from typing import Literal

import numpy as np

from deep500.operators.library._broadcast import broadcast_shape, unbroadcast
from deep500.operators.library._tensors import check_dtypes, compute_dtype, is_float, present, returned, take_inputs
from deep500.operators.operator import Array, Operator, OptionalArray

__all__ = ["BinaryOperator", "UnaryOperator"]


class UnaryOperator(Operator):
    r"""An operator :math:`y = f(x)` on every element by itself.

    16-bit floats are computed in float32 and rounded once. Infinities and NaN follow IEEE 754, without warnings.
    """

    #: Which dtypes the specification accepts.
    accepts: Literal["floats", "signed", "numbers"] = "floats"

    @abc.abstractmethod
    def value(self, x: Array) -> Array:
        """Return :math:`f(x)`."""

    @abc.abstractmethod
    def slope_times(self, gradient: Array, x: Array, y: Array) -> Array:
        """Return :math:`g f'(x)`, given :math:`g`, :math:`x` and :math:`y = f(x)`."""

    @np.errstate(all="ignore")
    def forward(self, inputs: Sequence[OptionalArray]) -> tuple[Array, ...]:
        """Compute :math:`f(x)` in the dtype and shape of ``x``."""
        name = type(self).__name__
        x = present(take_inputs(name, inputs, ["X"])[0])
        check_dtypes(name, ["X"], [x], self.accepts)
        y = self.value(x.astype(compute_dtype(x.dtype), copy=False))
        return (np.asarray(y, dtype=x.dtype),)

    @np.errstate(all="ignore")
    def backward(
        self, grads: Sequence[OptionalArray], fwd_inputs: Sequence[OptionalArray], fwd_outputs: Sequence[OptionalArray]
    ) -> tuple[OptionalArray, ...]:
        """Compute the gradient by ``x``; ``None`` for integers."""
        gradient, x = grads[0], np.asarray(fwd_inputs[0])
        if gradient is None or not is_float(x.dtype):
            return (None,)
        wide = compute_dtype(x.dtype)
        g, x_wide, y = (np.asarray(t).astype(wide, copy=False) for t in (gradient, x, fwd_outputs[0]))
        return returned([self.slope_times(g, x_wide, y)], fwd_inputs)


class BinaryOperator(Operator):
    r"""An operator :math:`c = f(a, b)` on every pair of elements, after broadcasting.

    16-bit floats are computed in float32 and rounded once. Infinities and NaN follow IEEE 754, integers wrap around;
    both without warnings.
    """

    #: Names of the inputs in the specification.
    input_names = ("A", "B")
    #: Whether both inputs have one dtype.
    one_dtype = True

    @abc.abstractmethod
    def value(self, a: Array, b: Array) -> Array:
        """Return :math:`f(a, b)`."""

    @abc.abstractmethod
    def slopes_times(self, gradient: Array, a: Array, b: Array, c: Array) -> tuple[Array, Array]:
        r"""Return :math:`g\,\partial f/\partial a` and :math:`g\,\partial f/\partial b` in the broadcast shape."""

    @np.errstate(all="ignore")
    def forward(self, inputs: Sequence[OptionalArray]) -> tuple[Array, ...]:
        """Compute :math:`f(a, b)` in the broadcast shape and the dtype of ``a``.

        Raises:
            OperatorError: The dtypes differ or are not numbers, or the shapes do not broadcast.
        """
        name = type(self).__name__
        a, b = map(present, take_inputs(name, inputs, self.input_names))
        if self.one_dtype:
            check_dtypes(name, self.input_names, [a, b], "numbers")
        else:
            check_dtypes(name, self.input_names[:1], [a], "numbers")
            check_dtypes(name, self.input_names[1:], [b], "numbers")
        broadcast_shape(name, a.shape, b.shape)
        c = self.value(a.astype(compute_dtype(a.dtype), copy=False), b.astype(compute_dtype(b.dtype), copy=False))
        return (np.asarray(c).astype(a.dtype, copy=False),)

    @np.errstate(all="ignore")
    def backward(
        self, grads: Sequence[OptionalArray], fwd_inputs: Sequence[OptionalArray], fwd_outputs: Sequence[OptionalArray]
    ) -> tuple[OptionalArray, ...]:
        """Compute the gradients by ``a`` and ``b``, summed over repeated axes; ``None`` for integers."""
        gradient = grads[0]
        a, b = (np.asarray(x) for x in fwd_inputs)
        if gradient is None or not is_float(a.dtype):
            return (None, None)
        wide = compute_dtype(a.dtype)
        g, c = (np.asarray(t).astype(wide, copy=False) for t in (gradient, fwd_outputs[0]))
        a_wide, b_wide = (x.astype(compute_dtype(x.dtype), copy=False) for x in (a, b))
        by_a, by_b = self.slopes_times(g, a_wide, b_wide, c)
        return returned(
            [unbroadcast(by_a, a.shape), unbroadcast(by_b, b.shape) if is_float(b.dtype) else None], fwd_inputs
        )
