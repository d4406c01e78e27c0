"""Calls of operators on PyTorch's tensors, ready to be measured."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from deep500.core.device import Device, parse_device
from deep500.frameworks.pytorch._arrays import to_array, to_tensor
from deep500.frameworks.pytorch.custom_operator import custom_op
from deep500.frameworks.pytorch.device import torch_device
from deep500.operators.custom import CustomOp, PreparedCall
from deep500.operators.custom.prepared_call import listed
from deep500.operators.operator import OptionalArray

__all__ = ["prepare_call"]


def prepare_call(
    op: CustomOp | Callable[..., Any],
    inputs: Sequence[OptionalArray],
    *,
    output_gradients: Sequence[OptionalArray] | None = None,
    device: str | Device | None = None,
) -> PreparedCall:
    """Return a call of an operator, or of a function of tensors, that can be run again and again.

    Args:
        op: The operator, or the function.
        inputs: Its inputs, ``None`` where one is absent; they are copied to the device.
        output_gradients: The gradient of a loss by each output, ``None`` for outputs that it does not depend on. Where
            they are given, each run computes the gradients by the inputs too, by autograd.
        device: Where to run; by default on the processor.

    Raises:
        DeviceError: PyTorch does not see the device.
        OperatorError: The operator cannot be one of PyTorch.
        CompileError: It, or the extension that calls it, cannot be compiled.
    """
    return _Call(op, inputs, output_gradients, parse_device(device))


class _Call(PreparedCall):
    """Tensors on a device, and a function of them."""

    def __init__(
        self,
        op: CustomOp | Callable[..., Any],
        inputs: Sequence[OptionalArray],
        output_gradients: Sequence[OptionalArray] | None,
        device: Device,
    ) -> None:
        self.device = device
        self._place = torch_device(device)
        self._function = custom_op(op) if isinstance(op, CustomOp) else op
        self._tensors = [self._placed(x) for x in inputs]
        self._gradients = None if output_gradients is None else [self._placed(g) for g in output_gradients]
        self._leaves: list[torch.Tensor] = []
        if output_gradients is None:
            self.run = functools.partial(self._function, *self._tensors)
        else:
            self._leaves = [x.requires_grad_() for x in self._tensors if x is not None and _is_float(x)]
            self.run = self._run_and_differentiate

    def synchronize(self) -> None:
        """Wait until the GPU has finished; the processor always has."""
        if self._place.type == "cuda":
            torch.cuda.synchronize(self._place)

    def outputs(self) -> list[NDArray[Any]]:
        """Run it once; return the outputs."""
        return [to_array(y).copy() for y in listed(self._function(*self._tensors))]

    @property
    def _has_gradients(self) -> bool:
        return self._gradients is not None

    def _gradients_once(self) -> list[NDArray[Any] | None]:
        found = iter(self._run_and_differentiate())
        return [_gradient(next(found)) if x is not None and x.requires_grad else None for x in self._tensors]

    def _run_and_differentiate(self) -> Sequence[torch.Tensor | None]:
        assert self._gradients is not None
        outputs = listed(self._function(*self._tensors))
        pairs = [(y, g) for y, g in zip(outputs, self._gradients) if g is not None and y.requires_grad]
        if not pairs or not self._leaves:
            return [None] * len(self._leaves)
        found: Sequence[torch.Tensor | None] = torch.autograd.grad(
            [y for y, _ in pairs], self._leaves, [g for _, g in pairs], allow_unused=True
        )
        return found

    def _placed(self, array: OptionalArray) -> torch.Tensor | None:
        return None if array is None else to_tensor(np.array(array)).to(self._place)


def _is_float(tensor: torch.Tensor) -> bool:
    return tensor.is_floating_point() or tensor.is_complex()


def _gradient(tensor: torch.Tensor | None) -> NDArray[Any] | None:
    return None if tensor is None else to_array(tensor).copy()
