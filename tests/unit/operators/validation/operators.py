"""Operators that are right, and operators with a bug each, that the validation has to tell apart."""

from __future__ import annotations

from typing import Any

import numpy as np

from deep500.operators.custom.custom_op import CustomPythonOp
from deep500.operators.operator import Operator


class Cube(CustomPythonOp):
    """x**3; the factor of its gradient can be wrong."""

    input_count = 1

    def __init__(self, factor: float = 1.0) -> None:
        super().__init__()
        self.input_count, self.output_count = 1, 1
        self.factor = factor

    def forward(self, x: Any) -> Any:
        return x**3

    def backward(self, grads: Any, fwd_inputs: Any, fwd_outputs: Any) -> Any:
        return self.factor * 3 * grads[0] * fwd_inputs[0] ** 2


class Product(Operator):
    """a @ b; subclasses break one thing each."""

    def forward(self, inputs: Any) -> Any:
        return (inputs[0] @ inputs[1],)

    def backward(self, grads: Any, fwd_inputs: Any, fwd_outputs: Any) -> Any:
        g, (a, b) = grads[0], fwd_inputs
        return (g @ b.T, a.T @ g)


class TransposedGradient(Product):
    def backward(self, grads: Any, fwd_inputs: Any, fwd_outputs: Any) -> Any:
        by_a, by_b = super().backward(grads, fwd_inputs, fwd_outputs)
        return (by_a, np.ascontiguousarray(by_b.T))


class NarrowGradient(Product):
    def backward(self, grads: Any, fwd_inputs: Any, fwd_outputs: Any) -> Any:
        return tuple(g.astype(np.float32) for g in super().backward(grads, fwd_inputs, fwd_outputs))


class ModifiesInput(Product):
    def forward(self, inputs: Any) -> Any:
        result = inputs[0] @ inputs[1]
        inputs[0][0, 1] += 1
        return (result,)


class ModifiesGradient(Product):
    def backward(self, grads: Any, fwd_inputs: Any, fwd_outputs: Any) -> Any:
        result = super().backward(grads, fwd_inputs, fwd_outputs)
        grads[0][...] = 0
        return result


class IgnoresGradient(Operator):
    """The sum of squares; its gradient is that for a gradient of 1."""

    def forward(self, inputs: Any) -> Any:
        return (np.asarray(np.sum(inputs[0] ** 2)),)

    def backward(self, grads: Any, fwd_inputs: Any, fwd_outputs: Any) -> Any:
        return (2 * fwd_inputs[0],)


class Blur(Operator):
    """Mean of three neighbours, with zeros outside; backward may forget the border."""

    def __init__(self, forgets: bool = False) -> None:
        self.forgets = forgets

    def forward(self, inputs: Any) -> Any:
        return (self._blurred(inputs[0]),)

    def backward(self, grads: Any, fwd_inputs: Any, fwd_outputs: Any) -> Any:
        gradient = self._blurred(grads[0])
        if self.forgets:
            gradient[-1] = grads[0][-1] / 3
        return (gradient,)

    @staticmethod
    def _blurred(x: Any) -> Any:
        padded = np.pad(x, [(1, 1), *[(0, 0)] * (x.ndim - 1)])
        return (padded[:-2] + padded[1:-1] + padded[2:]) / 3


class WritesNan(Cube):
    """NaN at one place of the output, or of the gradient."""

    def __init__(self, where: str) -> None:
        super().__init__()
        self.where = where

    def forward(self, x: Any) -> Any:
        return self._spoiled(x**3, "forward")

    def backward(self, grads: Any, fwd_inputs: Any, fwd_outputs: Any) -> Any:
        return self._spoiled(3 * grads[0] * fwd_inputs[0] ** 2, "backward")

    def _spoiled(self, result: Any, where: str) -> Any:
        if self.where == where:
            result[0, 1] = np.nan
        return result


class Noisy(Cube):
    """Returns something else each time, by a relative amount."""

    def __init__(self, amount: float) -> None:
        super().__init__()
        self.amount = amount
        self.stream = np.random.default_rng(0)

    def forward(self, x: Any) -> Any:
        return x**3 * (1 + self.amount * self.stream.standard_normal(x.shape))


class NarrowInside(Cube):
    """Computes in float32 whatever it is given."""

    def forward(self, x: Any) -> Any:
        return (x.astype(np.float32) ** 3).astype(x.dtype)


class Clipped(Operator):
    """max(0, x): a kink at 0."""

    def forward(self, inputs: Any) -> Any:
        return (np.maximum(inputs[0], 0),)

    def backward(self, grads: Any, fwd_inputs: Any, fwd_outputs: Any) -> Any:
        return (grads[0] * (fwd_inputs[0] > 0),)


class ClippedSum(Clipped):
    """The sum of max(0, x): one output with as many kinks as inputs."""

    def forward(self, inputs: Any) -> Any:
        return (np.asarray(np.sum(np.maximum(inputs[0], 0))),)
