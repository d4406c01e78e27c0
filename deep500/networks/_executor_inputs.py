"""What an executor takes as inputs: checks of names, dtypes and shapes, and the way to the framework's tensors."""

from __future__ import annotations

import abc
from collections.abc import Mapping
from typing import Any

import numpy as np

from deep500.core.errors import InvalidInputError, UnknownNameError, near_miss
from deep500.core.tensor_descriptor import STRING, TensorDescriptor
from deep500.core.texts import shown
from deep500.core.value_descriptor import OptionalDescriptor, SequenceDescriptor, ValueDescriptor
from deep500.networks.executor_event import ExecutorEvent
from deep500.networks.network import Network
from deep500.networks.program import Program
from deep500.networks.tensor_store import as_array

__all__ = ["InputTaker"]


class InputTaker(abc.ABC):
    """The part of a :class:`deep500.networks.graph_executor.GraphExecutor` that takes inputs."""

    network: Network
    events: list[ExecutorEvent]
    _accepted: set[tuple[str, Any, tuple[int, ...]]]
    _accepted_batches: set[tuple[Any, ...]]  # programs with dtypes and shapes of all their inputs, as plain arrays

    @abc.abstractmethod
    def to_native(self, value: Any, descriptor: TensorDescriptor) -> Any:
        """Return a value as a tensor on the device, without a copy where the framework allows."""

    @abc.abstractmethod
    def from_dlpack(self, value: Any) -> Any:
        """Return another library's tensor as an array or native tensor."""

    @abc.abstractmethod
    def is_native(self, value: Any) -> bool:
        """Whether a value is one of the framework's own tensors."""

    @abc.abstractmethod
    def dtype_name(self, value: Any) -> str:
        """Return NumPy's name for the dtype of an array or tensor."""

    def _prepare(self, inputs: Mapping[str, Any]) -> tuple[Program, list[Any]]:
        if not isinstance(inputs, Mapping):
            raise InvalidInputError(
                f"Inputs were given as {type(inputs).__name__}; accepted is a dictionary of tensors by name, such as "
                f"{{{next(iter(self.network.inputs), 'input')!r}: x}}."
            )
        program = self.network.program(frozenset(inputs))
        for event in self.events:
            event.before_executor(inputs)
        values = [inputs[name] for name in program.inputs]
        arrays = [(value.dtype, value.shape) for value in values if type(value) is np.ndarray]
        batch = (program, *arrays)
        if batch in self._accepted_batches and len(arrays) == len(values):
            kinds: Any = program.input_types  # they are tensors, or the batch had not been noted
            return program, [self.to_native(value, kind) for value, kind in zip(values, kinds)]
        tensors = self._checked_inputs(program, inputs)
        is_plain = all(isinstance(kind, TensorDescriptor) for kind in program.input_types)
        if is_plain and len(arrays) == len(values) and all(dtype.isnative for dtype, _ in arrays):
            self._accepted_batches.add(batch)
        return program, tensors

    def _checked_inputs(self, program: Program, inputs: Mapping[str, Any]) -> list[Any]:
        """Return the tensors that a program reads, checked."""
        tensors = []
        sizes: dict[str, tuple[int, str]] = {}
        for name, descriptor in zip(program.inputs, program.input_types):
            if isinstance(descriptor, TensorDescriptor):
                tensors.append(self._taken(name, inputs[name], descriptor, sizes))
            else:
                tensors.append(self._taken_value(name, inputs[name], descriptor))
        return tensors

    def _taken(self, name: str, value: Any, descriptor: TensorDescriptor, sizes: dict[str, tuple[int, str]]) -> Any:
        """Return a tensor that was fed as the framework's own, checked."""
        if isinstance(value, np.ndarray):
            value = value if value.dtype.isnative else as_array(name, value)
        elif not self.is_native(value):
            value = self.from_dlpack(value) if hasattr(value, "__dlpack__") else value
            if not isinstance(value, np.ndarray) and not self.is_native(value):
                value = as_array(name, value)
        self._check_input(name, value, descriptor, sizes)
        return self.to_native(value, descriptor)

    def _taken_value(self, name: str, value: Any, descriptor: ValueDescriptor) -> Any:
        """Return a value of any kind that was fed in the framework's tensors: a list of them for a sequence."""
        if isinstance(descriptor, OptionalDescriptor):
            return None if value is None else self._taken_value(name, value, descriptor.element)
        if isinstance(descriptor, SequenceDescriptor):
            if not isinstance(value, (list, tuple)):
                raise InvalidInputError(
                    f"Input {name!r} was given as {shown(value)}; accepted is a list: {descriptor}."
                )
            return [self._taken_value(f"{name}[{i}]", entry, descriptor.element) for i, entry in enumerate(value)]
        if value is None:
            raise InvalidInputError(f"Input {name!r} was given as None; accepted is {descriptor}.")
        return self._taken(name, value, descriptor, {})

    def _check_input(
        self, name: str, value: Any, expected: TensorDescriptor, sizes: dict[str, tuple[int, str]]
    ) -> None:
        shape = tuple(value.shape)
        key = (name, value.dtype, shape)
        if key not in self._accepted:
            dtype = self.dtype_name(value)
            if expected.dtype == STRING and dtype == "object":
                dtype = STRING
            received = f"Input {name!r} was given as {dtype}{list(shape)}; accepted is {expected}"
            if dtype != expected.dtype:
                raise InvalidInputError(
                    f"{received}. Convert it first, for example with value.astype({expected.dtype!r})."
                )
            if not expected.accepts_shape(shape):
                raise InvalidInputError(f"{received}.")
            self._accepted.add(key)
        for symbol, size in zip(expected.shape or (), shape):
            if isinstance(symbol, str):
                first_size, first_name = sizes.setdefault(symbol, (size, name))
                if first_size != size:
                    raise InvalidInputError(
                        f"Inputs {first_name!r} and {name!r} must agree in {symbol!r}; "
                        f"received {first_size} and {size}."
                    )

    def _check_loss(self, program: Program, loss: str) -> None:
        known = [*self.network.losses, *self.network.outputs]
        if loss not in known:  # a list, so that a name of any type may be asked for
            raise UnknownNameError(
                f"The network has no output named {loss!r}.{near_miss(loss, known)} Its outputs: {', '.join(known)}. "
                f"network.append_loss('SoftmaxCrossEntropyLoss') adds a loss."
            )
        if loss not in program.outputs:
            missing = [name for name in self.network.inputs if name not in program.inputs]
            raise InvalidInputError(
                f"The loss {loss!r} needs an input that was not fed, among: {', '.join(missing)}. "
                f"Fed: {', '.join(program.inputs) or 'nothing'}."
            )
        descriptor = (self.network.losses | self.network.outputs)[loss]
        if not isinstance(descriptor, TensorDescriptor) or descriptor.rank not in (0, None):
            raise InvalidInputError(f"Only a scalar can be differentiated; output {loss!r} is {descriptor}.")
