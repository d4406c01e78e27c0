"""Calls of operators on TensorFlow's tensors, ready to be measured."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf
from numpy.typing import NDArray

from deep500.core.device import CPUDevice, Device, parse_device
from deep500.frameworks.tensorflow.custom_operator import custom_op
from deep500.frameworks.tensorflow.device import device_name, synchronize
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
    """Return a call of an operator, or of a function of tensors, that can be run again and again, eagerly.

    Args:
        op: The operator, or the function.
        inputs: Its inputs, ``None`` where one is absent; they are copied to the device.
        output_gradients: The gradient of a loss by each output, ``None`` for outputs that it does not depend on. Where
            they are given, each run computes the gradients by the inputs too, on a ``tf.GradientTape``.
        device: Where to run; by default on the processor.

    Raises:
        DeviceError: TensorFlow does not find the device.
        OperatorError: The operator cannot be one of TensorFlow.
        CompileError: It, or the adapter, cannot be compiled.
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
        self._function = custom_op(op) if isinstance(op, CustomOp) else op
        self._place = device_name(device)
        self._tensors = self._placed(inputs)
        self._gradients = None if output_gradients is None else self._placed(output_gradients)
        self._sources = [x for x in self._tensors if x is not None and _is_float(x)]
        once: Callable[[], Any] = functools.partial(self._function, *self._tensors)
        if output_gradients is not None:
            once = self._run_and_differentiate
        # TensorFlow prefers a GPU where there is one; without one, nothing has to be said.
        has_choice = isinstance(device, CPUDevice) and bool(tf.config.list_logical_devices("GPU"))
        self.run = functools.partial(self._run_at, once) if has_choice or not isinstance(device, CPUDevice) else once

    def synchronize(self) -> None:
        """Wait until the device has finished what was asked of it."""
        synchronize(self.device)

    def outputs(self) -> list[NDArray[Any]]:
        """Run it once; return the outputs."""
        with tf.device(self._place):
            return [y.numpy() for y in listed(self._function(*self._tensors))]

    @property
    def _has_gradients(self) -> bool:
        return self._gradients is not None

    def _gradients_once(self) -> list[NDArray[Any] | None]:
        with tf.device(self._place):
            found = iter(self._run_and_differentiate())
        everything = [next(found) if x is not None and _is_float(x) else None for x in self._tensors]
        return [None if g is None else tf.convert_to_tensor(g).numpy() for g in everything]

    def _run_and_differentiate(self) -> Sequence[Any]:
        assert self._gradients is not None
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(self._sources)
            outputs = listed(self._function(*self._tensors))
        pairs = [(y, g) for y, g in zip(outputs, self._gradients) if g is not None]
        if not pairs or not self._sources:
            return [None] * len(self._sources)
        found: Sequence[Any] = tape.gradient([y for y, _ in pairs], self._sources, [g for _, g in pairs])
        return found

    def _run_at(self, once: Callable[[], Any]) -> Any:
        with tf.device(self._place):
            return once()

    def _placed(self, arrays: Sequence[OptionalArray]) -> list[Any]:
        with tf.device(self._place):
            return [None if x is None else tf.identity(tf.constant(x)) for x in arrays]


def _is_float(tensor: Any) -> bool:
    return bool(tensor.dtype.is_floating or tensor.dtype.is_complex)
