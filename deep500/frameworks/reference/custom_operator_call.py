"""Calls of operators on NumPy's arrays, ready to be measured."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deep500.core.device import Device, parse_device
from deep500.frameworks.reference.custom_operator import custom_op, custom_op_from_native
from deep500.frameworks.reference.device import check_device
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
    """Return a call of an operator, or of a function of arrays, that can be run again and again.

    Args:
        op: The operator, or the function.
        inputs: Its inputs, ``None`` where one is absent; they are copied.
        output_gradients: The gradient of a loss by each output, ``None`` for outputs that it does not depend on. Where
            they are given, each run calls the operator's backward as well.
        device: The processor.

    Raises:
        DeviceError: Another device was named.
        OperatorError: Gradients are asked for of what has no backward, such as NumPy's functions.
        CompileError: The operator cannot be compiled.
    """
    return _Call(op, inputs, output_gradients, parse_device(device))


class _Call(PreparedCall):
    """Arrays, and a function of them."""

    def __init__(
        self,
        op: CustomOp | Callable[..., Any],
        inputs: Sequence[OptionalArray],
        output_gradients: Sequence[OptionalArray] | None,
        device: Device,
    ) -> None:
        check_device(device)
        self.device = device
        self._op = op if isinstance(op, CustomOp) else custom_op_from_native(op)
        self._function = custom_op(op) if isinstance(op, CustomOp) else op
        self._arrays = [None if x is None else np.array(x) for x in inputs]
        self._gradients = output_gradients
        if output_gradients is None:
            self.run = functools.partial(self._function, *self._arrays)
        else:
            self._op.check_differentiable()
            self.run = self._run_and_differentiate

    def synchronize(self) -> None:
        """Return at once: NumPy computes when it is called."""

    def outputs(self) -> list[NDArray[Any]]:
        """Run it once; return the outputs."""
        return [np.asarray(y) for y in listed(self._function(*self._arrays))]

    @property
    def _has_gradients(self) -> bool:
        return self._gradients is not None

    def _gradients_once(self) -> list[NDArray[Any] | None]:
        return list(self._run_and_differentiate())

    def _run_and_differentiate(self) -> tuple[Any, ...]:
        assert self._gradients is not None
        return self._op.run_backward(self._gradients, self._arrays, self._op.run_forward(self._arrays))
