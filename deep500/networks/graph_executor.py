"""The contract of an executor: one network, run and differentiated by one framework on one device."""

from __future__ import annotations

import abc
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from os import PathLike
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from deep500.core.device import Device, parse_device
from deep500.core.errors import InvalidInputError, UnknownNameError, near_miss
from deep500.core.tensor_descriptor import STRING, TensorDescriptor, element_type_name
from deep500.core.texts import shown
from deep500.core.value_descriptor import OptionalDescriptor, SequenceDescriptor, ValueDescriptor
from deep500.networks.executor_event import ExecutorEvent
from deep500.networks.network import Network
from deep500.networks.program import Program
from deep500.networks.tensor_store import as_array, check_fed_tensor

__all__ = ["GraphExecutor", "NetworkSource", "UpdateRule", "gradient_name"]

_logger = logging.getLogger(__name__)

#: What an executor can be made from.
NetworkSource: TypeAlias = Network | str | PathLike[str] | bytes | Any

#: ``rule(gradient, parameter, name)`` returns the parameter's next value; all are the framework's own tensors.
UpdateRule = Callable[[Any, Any, str], Any]


def gradient_name(parameter: str) -> str:
    """Return the name under which the gradient of a parameter is fetched, unless a stored tensor has that name."""
    return f"{parameter}.grad"


class GraphExecutor(abc.ABC):
    """Runs a network in a framework.

    Inputs may be NumPy arrays or the framework's tensors; outputs are the framework's tensors, on the executor's
    device. ``executor.network`` is the network bound to this executor: its parameters are those on the device, its
    mode decides how the executor runs.

    An adapter implements the abstract methods; everything that does not depend on the framework (checks, programs,
    events, fetching by name) is here.

    Attributes:
        framework: Name of the framework, as ``deep500 list frameworks`` shows it.
        network: The network, bound to this executor.
        device: Where it runs.
        events: Listeners of the runs.
        compiles: Whether the framework's compiler is used where it pays.
        compilation: What came of compiling, by what was compiled: that it pays, or why it is not done. Empty before the
            first run.
    """

    framework: ClassVar[str]

    #: Whether what follows from constants alone is computed once, before the network is translated.
    folds_constants: ClassVar[bool] = True

    def __init__(
        self,
        network: NetworkSource,
        device: str | Device | None = None,
        events: Iterable[ExecutorEvent] = (),
        compile: bool = False,
    ) -> None:
        """Bind a network to a device.

        Args:
            network: A network, or anything that :meth:`Network.load` takes.
            device: A device or its name, the processor by default.
            events: Listeners of the runs.
            compile: Whether to use the framework's compiler where it pays; :attr:`compilation` says where it did not.

        Raises:
            DeviceError: The framework does not find the device.
            InvalidInputError: An event is none.
        """
        if not isinstance(compile, bool):
            raise InvalidInputError(f"compile was given as {shown(compile)}; accepted are True and False.")
        self.device = parse_device(device)
        self.compiles = compile
        self.compilation: dict[str, str] = {}
        self.events = list(events)
        for event in self.events:
            if not isinstance(event, ExecutorEvent):
                raise InvalidInputError(f"An event was given as {event!r}; accepted are instances of ExecutorEvent.")
        source = network if isinstance(network, Network) else Network.load(network)
        source = source.expanded(self.has_lowering)
        source = source.folded() if self.folds_constants else source
        self.network = source.bind(self)
        self._accepted: set[tuple[str, Any, tuple[int, ...]]] = set()
        self._outputs: Mapping[str, Any] = {}
        self._differentiated: tuple[str, tuple[str, ...]] | None = None
        self._stored_names = frozenset((*source.parameters, *source.states, *source.constants))
        self._place(source)

    def inference(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Run the network.

        Args:
            inputs: A tensor for every input. Labels may be left out; then the losses are not computed.

        Returns:
            The outputs, and the losses whose labels were fed, by name.

        Raises:
            InvalidInputError: An input is missing or has the wrong dtype or shape.
            UnknownNameError: A name is not an input of the network.
            UnsupportedOperatorError: The framework cannot run an operator of the network.
        """
        program, tensors = self._prepare(inputs)
        outputs = self._run(program, tensors)
        self._outputs = outputs
        for event in self.events:
            event.after_inference(outputs)
        return outputs

    def inference_and_backprop(self, inputs: Mapping[str, Any], loss: str = "loss") -> dict[str, Any]:
        """Run the network and compute the gradient of a loss by every parameter.

        Args:
            inputs: A tensor for every input that the loss depends on.
            loss: Name of a scalar output.

        Returns:
            The outputs and losses by name; the gradients are fetched through ``network.gradient(loss)``.

        Raises:
            InvalidInputError: As :meth:`inference`; or the loss is not a scalar.
            UnknownNameError: As :meth:`inference`; or there is no such loss.
            UnsupportedOperatorError: As :meth:`inference`.
        """
        program, tensors = self._prepare(inputs)
        if loss not in program.losses:
            self._check_loss(program, loss)
        outputs = self._run_and_differentiate(program, tensors, loss)
        self._outputs = outputs
        self._differentiated = (loss, program.parameters)
        for event in self.events:
            event.after_backprop(outputs)
        return outputs

    # What an adapter implements.

    @abc.abstractmethod
    def _place(self, network: Network) -> None:
        """Copy the tensors of the network to the device.

        Raises:
            DeviceError: The framework does not find the device.
        """

    @abc.abstractmethod
    def _run(self, program: Program, inputs: Sequence[Any]) -> dict[str, Any]:
        """Run a program and apply its state updates; inputs are native, in the order of ``program.inputs``."""

    @abc.abstractmethod
    def _run_and_differentiate(self, program: Program, inputs: Sequence[Any], loss: str) -> dict[str, Any]:
        """Like :meth:`_run`, and keep the gradient of ``loss`` by every parameter of the program."""

    @abc.abstractmethod
    def update_parameters(self, rule: UpdateRule) -> None:
        """Replace every parameter that has a gradient by ``rule(gradient, parameter, name)``.

        The tensors that the rule is given are the framework's own, on the device.

        Raises:
            TrainingError: The rule returned nothing, or something of another shape.
        """

    @abc.abstractmethod
    def stored_tensor(self, name: str) -> Any:
        """Return a parameter, state or constant as the framework holds it (not a copy).

        Raises:
            KeyError: There is none of this name.
        """

    @abc.abstractmethod
    def gradient_tensor(self, name: str) -> Any | None:
        """Return the gradient by a parameter as the framework holds it; ``None`` when the loss ignores it."""

    @abc.abstractmethod
    def to_native(self, value: Any, descriptor: TensorDescriptor) -> Any:
        """Return a value as a tensor on the device, without a copy where the framework allows."""

    @abc.abstractmethod
    def to_numpy(self, tensor: Any) -> NDArray[Any]:
        """Return an output as a NumPy array, without a copy where the framework allows."""

    @abc.abstractmethod
    def _stored_to_numpy(self, name: str, tensor: Any) -> NDArray[Any]:
        """Return a copy of a stored tensor, or of its gradient, in the layout that the network declares."""

    @abc.abstractmethod
    def _store(self, name: str, value: NDArray[Any]) -> None:
        """Replace the value of a stored tensor."""

    @abc.abstractmethod
    def synchronize(self) -> None:
        """Wait until the device has finished what was asked of it."""

    def has_lowering(self, domain: str, op_type: str, version: int) -> bool:
        """Whether the adapter itself runs an operator, as it does by default.

        If not, the operator is replaced by its definition in terms of others, where ONNX has one.
        """
        return True

    def value_to_numpy(self, value: Any) -> Any:
        """Return an output of any kind: an array, a list of them for a sequence, ``None`` for an absent optional."""
        if isinstance(value, (list, tuple)):
            return [self.value_to_numpy(entry) for entry in value]
        return None if value is None else self.to_numpy(value)

    def from_dlpack(self, value: Any) -> Any:
        """Return another library's tensor (one with ``__dlpack__``) as an array or native tensor of the same memory.

        What cannot be shared, such as a tensor that requires a gradient or lies on another device, is taken as any
        other value.
        """
        try:
            return np.from_dlpack(value)
        except (BufferError, RuntimeError, TypeError, ValueError, AttributeError):
            return as_array("x", value)

    def is_native(self, value: Any) -> bool:
        """Whether a value is one of the framework's own tensors; anything else is taken through NumPy."""
        return isinstance(value, np.ndarray)

    def dtype_name(self, value: Any) -> str:
        """Return NumPy's name for the dtype of a NumPy array or of one of the framework's tensors."""
        return element_type_name(value.dtype)

    # What does not depend on the framework.

    def fetch(self, name: str) -> NDArray[Any]:
        """Return a copy of a tensor by name: stored tensor, gradient, or output of the last run."""
        if name in self._stored_names:
            return self._stored_to_numpy(name, self.stored_tensor(name))
        for parameter in self._differentiated[1] if self._differentiated else ():
            if self._gradient_name(parameter) == name:
                gradient = self.gradient_tensor(parameter)
                if gradient is None:
                    return np.zeros_like(self.fetch(parameter))
                return self._stored_to_numpy(parameter, gradient)
        if name in self._outputs:
            return np.array(self.to_numpy(self._outputs[name]))
        known = [*self.network.parameters, *self.network.states, *self._outputs]
        raise UnknownNameError(
            f"There is no tensor named {name!r} to fetch.{near_miss(name, known)} There are: {', '.join(known)}"
            + ("." if self._differentiated else "; gradients after inference_and_backprop.")
        )

    def feed(self, name: str, value: Any) -> None:
        """Replace the value of a parameter, state or constant; see :meth:`Network.feed_tensor`."""
        descriptors = self.network.parameters | self.network.states | self.network.constants
        if name not in descriptors:
            raise UnknownNameError(
                f"There is no parameter or state named {name!r}.{near_miss(name, descriptors)} "
                f"There are: {', '.join(descriptors) or 'none'}."
            )
        array = as_array(name, self.to_numpy(value) if self.is_native(value) else value)
        check_fed_tensor(name, array.dtype.name, array.shape, descriptors[name])
        self._store(name, array)

    def gradient_names(self, loss: str) -> list[tuple[str, str]]:
        """Return parameter and gradient names after :meth:`inference_and_backprop`."""
        if self._differentiated is None or self._differentiated[0] != loss:
            raise UnknownNameError(
                f"The gradient of {loss!r} was not computed yet. Call inference_and_backprop(inputs, {loss!r}) first."
            )
        return [(name, self._gradient_name(name)) for name in self._differentiated[1]]

    def _gradient_name(self, parameter: str) -> str:
        """Return the name of a gradient, made longer while a stored tensor has it."""
        name = gradient_name(parameter)
        while name in self._stored_names:
            name += "_"
        return name

    def _prepare(self, inputs: Mapping[str, Any]) -> tuple[Program, list[Any]]:
        if not isinstance(inputs, Mapping):
            raise InvalidInputError(
                f"Inputs were given as {type(inputs).__name__}; accepted is a dictionary of tensors by name, such as "
                f"{{{next(iter(self.network.inputs), 'input')!r}: x}}."
            )
        program = self.network.program(frozenset(inputs))
        for event in self.events:
            event.before_executor(inputs)
        tensors = []
        sizes: dict[str, tuple[int, str]] = {}
        for name, descriptor in zip(program.inputs, program.input_types):
            if isinstance(descriptor, TensorDescriptor):
                tensors.append(self._taken(name, inputs[name], descriptor, sizes))
            else:
                tensors.append(self._taken_value(name, inputs[name], descriptor))
        return program, tensors

    def _taken(self, name: str, value: Any, descriptor: TensorDescriptor, sizes: dict[str, tuple[int, str]]) -> Any:
        """Return a tensor that was fed as the framework's own, checked."""
        if isinstance(value, np.ndarray):
            value = value if value.dtype.isnative else as_array(name, value)
        elif not self.is_native(value):
            value = self.from_dlpack(value) if hasattr(value, "__dlpack__") else as_array(name, value)
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

    def _note_compilation(self, purpose: str, found: str) -> None:
        """Write down, and tell, what came of compiling."""
        self.compilation[purpose] = found
        _logger.info("%s of network %r in %s: %s", purpose, self.network.name, self.framework, found)

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
