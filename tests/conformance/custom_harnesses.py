"""How each adapter's custom operators are called with NumPy arrays, so that one test serves all of them."""

from __future__ import annotations

import abc
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from deep500.frameworks import FRAMEWORKS
from deep500.operators.custom.custom_op import CustomOp

Arrays = Sequence[np.ndarray | None]


class Harness(abc.ABC):
    """How an adapter's operators are called with NumPy arrays."""

    framework: str

    def custom_op(self, op: CustomOp) -> Callable[..., Any]:
        """Return the adapter's function."""
        function: Callable[..., Any] = FRAMEWORKS.get(self.framework).custom_op(op)
        return function

    @abc.abstractmethod
    def forward(self, op: CustomOp, inputs: Arrays) -> list[np.ndarray]:
        """Run an operator."""

    @abc.abstractmethod
    def gradients(self, op: CustomOp, inputs: Arrays, grads: Arrays) -> list[np.ndarray | None]:
        """Return the gradients by all inputs, from those by the outputs; ``None`` leaves an output unused."""


class ReferenceHarness(Harness):
    framework = "reference"

    def forward(self, op: CustomOp, inputs: Arrays) -> list[np.ndarray]:
        return _listed(self.custom_op(op)(*inputs))

    def gradients(self, op: CustomOp, inputs: Arrays, grads: Arrays) -> list[np.ndarray | None]:
        return list(op.run_backward(grads, inputs, self.forward(op, inputs)))


class PyTorchHarness(Harness):
    """Eager calls, and gradients by autograd."""

    framework = "pytorch"

    def forward(self, op: CustomOp, inputs: Arrays) -> list[np.ndarray]:
        from deep500.frameworks.pytorch._arrays import to_array, to_tensor

        outputs = self.custom_op(op)(*[None if x is None else to_tensor(x) for x in inputs])
        return [to_array(y) for y in _listed(outputs)]

    def gradients(self, op: CustomOp, inputs: Arrays, grads: Arrays) -> list[np.ndarray | None]:
        import torch

        from deep500.frameworks.pytorch._arrays import to_array, to_tensor

        tensors = [None if x is None else to_tensor(x) for x in inputs]
        leaves = [x.requires_grad_() for x in tensors if x is not None and x.is_floating_point()]
        outputs = _listed(self.custom_op(op)(*tensors))
        used = [(y, to_tensor(g)) for y, g in zip(outputs, grads) if g is not None]
        found = torch.autograd.grad([y for y, _ in used], leaves, [g for _, g in used], allow_unused=True)
        rest = iter(found)
        everything = [next(rest) if x is not None and x.is_floating_point() else None for x in tensors]
        return [None if g is None else to_array(g) for g in everything]


class TensorFlowHarness(Harness):
    """Eager calls, and gradients by a tape."""

    framework = "tensorflow"

    def forward(self, op: CustomOp, inputs: Arrays) -> list[np.ndarray]:
        import tensorflow as tf

        outputs = self.custom_op(op)(*[None if x is None else tf.constant(x) for x in inputs])
        return [y.numpy() for y in _listed(outputs)]

    def gradients(self, op: CustomOp, inputs: Arrays, grads: Arrays) -> list[np.ndarray | None]:
        import tensorflow as tf

        tensors = [None if x is None else tf.constant(x) for x in inputs]
        leaves = [x for x in tensors if x is not None and x.dtype.is_floating]
        with tf.GradientTape() as tape:
            tape.watch(leaves)
            outputs = _listed(self.custom_op(op)(*tensors))
        used = [(y, tf.constant(g)) for y, g in zip(outputs, grads) if g is not None]
        rest = iter(tape.gradient([y for y, _ in used], leaves, [g for _, g in used]))
        everything = [next(rest) if x is not None and x.dtype.is_floating else None for x in tensors]
        return [None if g is None else g.numpy() for g in everything]


HARNESSES = {harness.framework: harness for harness in (ReferenceHarness(), PyTorchHarness(), TensorFlowHarness())}


def _listed(outputs: Any) -> list[Any]:
    return list(outputs) if isinstance(outputs, tuple) else [outputs]
