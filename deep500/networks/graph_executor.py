"""The contract of an executor: one network, run and differentiated by one framework on one device."""

from __future__ import annotations

import abc
import contextlib
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from os import PathLike
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from deep500.core.device import Device, parse_device
from deep500.core.errors import InvalidInputError, UnknownNameError, near_miss
from deep500.core.stateful import State
from deep500.core.tensor_descriptor import TensorDescriptor, element_type_name
from deep500.core.texts import shown
from deep500.networks._executor_inputs import InputTaker
from deep500.networks._executor_state import executor_state, restore_executor
from deep500.networks.executor_event import ExecutorEvent
from deep500.networks.network import Network
from deep500.networks.numpy_functions import NumpyFunctions
from deep500.networks.parameter_updates import ParameterUpdates, TrainingRule
from deep500.networks.program import Program
from deep500.networks.random_streams import RandomStreams
from deep500.networks.tensor_functions import TensorFunctions
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


class GraphExecutor(InputTaker):
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
        state_names: Names of the network's states, such as running statistics.
        random_streams: From where the network's operators draw random numbers on the host.
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
        self.random_streams = self._new_random_streams()
        self.events = list(events)
        for event in self.events:
            if not isinstance(event, ExecutorEvent):
                raise InvalidInputError(f"An event was given as {event!r}; accepted are instances of ExecutorEvent.")
        source = network if isinstance(network, Network) else Network.load(network)
        source = source.expanded(self.has_lowering)
        source = source.folded() if self.folds_constants else source
        self.network = source.bind(self)
        self._accepted: set[tuple[str, Any, tuple[int, ...]]] = set()
        self._accepted_batches: set[tuple[Any, ...]] = set()
        self._outputs: Mapping[str, Any] = {}
        self._differentiated: tuple[str, tuple[str, ...]] | None = None
        self._hold(source)
        self._place(source)

    def _hold(self, network: Network) -> None:
        """Note what the network stores, which it takes its time to describe."""
        self.state_names = tuple(network.states)
        self._stored = network.parameters | network.states | network.constants

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

    # What training asks for; an adapter overrides it where it can do better.

    @property
    def tensor_functions(self) -> TensorFunctions:
        """What update rules use besides arithmetic on this framework's tensors."""
        return NumpyFunctions()

    def parameter_updates(self, rule: TrainingRule, source: GraphExecutor | None = None) -> ParameterUpdates:
        """Return what updates the parameters by an optimizer's rule.

        Args:
            rule: The optimizer.
            source: The executor that has the gradients; one that wraps this one, or this one.
        """
        return ParameterUpdates(source or self, rule)

    def training_step(self, inputs: Mapping[str, Any], loss: str, updates: ParameterUpdates) -> dict[str, Any]:
        """Run the network, compute the gradients of a loss, and update the parameters.

        Args:
            inputs: A tensor for every input that the loss depends on.
            loss: Name of a scalar output.
            updates: What :meth:`parameter_updates` returned.

        Returns:
            Outputs and losses from before the update; the gradients can be fetched.
        """
        outputs = self.inference_and_backprop(inputs, loss)
        updates.apply()
        return outputs

    def declared_layout(self, name: str, tensor: Any) -> Any:
        """Return a tensor like a parameter, held as that one, in the layout that the network declares."""
        return tensor

    def held_layout(self, name: str, tensor: Any) -> Any:
        """Return a tensor like a parameter, in the layout that the network declares, as that one is held."""
        return tensor

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

        What cannot be shared, such as a tensor that requires a gradient or lies on another device, is returned as it
        is, to be taken like any other value.
        """
        try:
            return np.from_dlpack(value)
        except (BufferError, RuntimeError, TypeError, ValueError, AttributeError):
            return value

    def is_native(self, value: Any) -> bool:
        """Whether a value is one of the framework's own tensors; anything else is taken through NumPy."""
        return isinstance(value, np.ndarray)

    def dtype_name(self, value: Any) -> str:
        """Return NumPy's name for the dtype of a NumPy array or of one of the framework's tensors."""
        return element_type_name(value.dtype)

    # What does not depend on the framework.

    def state(self) -> State:
        """Return a snapshot of parameters, states and random streams; see :class:`deep500.core.stateful.Stateful`."""
        return executor_state(self)

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a snapshot.

        Raises:
            CheckpointError: It is of another network; nothing is changed then.
        """
        restore_executor(self, state)

    def random_state(self) -> State:
        """Return a snapshot of where the random numbers of the network's operators come from."""
        return self.random_streams.state()

    def restore_random(self, state: Mapping[str, Any]) -> None:
        """Go on from what :meth:`random_state` returned.

        Raises:
            CheckpointError: It is no such snapshot; nothing is changed then.
        """
        self.random_streams.restore(state)

    def seed_random(self, seed: int) -> None:
        """Let the operators that have no seed draw what follows from this one; call it before the network is run."""
        self.random_streams.seed(seed)

    def deterministic(self, seed: int) -> contextlib.AbstractContextManager[dict[str, Any]]:
        """Return a block in which equal runs give equal bits; it gives what is switched to what, in JSON's types.

        Args:
            seed: For switches that need one; :meth:`seed_random` seeds the operators.
        """
        return contextlib.nullcontext({})

    def replace_gradients(self, rule: Callable[[Any, str], Any]) -> None:
        """Replace the gradient by every parameter that has one by ``rule(gradient, name)``, before it is used.

        The tensors that the rule is given, and returns, are the framework's own, as they are held. Where
        it returns ``None``, the parameter has no gradient any more, and is not updated.
        """
        for name in self._differentiated[1] if self._differentiated else ():
            gradient = self.gradient_tensor(name)
            if gradient is not None:
                self._set_gradient(name, rule(gradient, name))

    def _set_gradient(self, name: str, gradient: Any) -> None:
        """Take a tensor for the gradient by a parameter."""
        raise NotImplementedError(f"{type(self).__name__} lets nobody replace its gradients")

    def _new_random_streams(self) -> RandomStreams:
        return RandomStreams()

    def fetch(self, name: str) -> NDArray[Any]:
        """Return a copy of a tensor by name: stored tensor, gradient, or output of the last run."""
        if name in self._stored:
            return self._stored_to_numpy(name, self.stored_tensor(name))
        for parameter in self._differentiated[1] if self._differentiated else ():
            if self._gradient_name(parameter) == name:
                gradient = self.gradient_tensor(parameter)
                if gradient is None:
                    return np.zeros_like(self.fetch(parameter))
                return self._stored_to_numpy(parameter, gradient)
        if name in self._outputs:
            return np.array(self.to_numpy(self._outputs[name]))
        known = [*self._stored, *self._outputs]
        raise UnknownNameError(
            f"There is no tensor named {name!r} to fetch.{near_miss(name, known)} There are: {', '.join(known)}"
            + ("." if self._differentiated else "; gradients after inference_and_backprop.")
        )

    def feed(self, name: str, value: Any) -> None:
        """Replace the value of a parameter, state or constant; see :meth:`Network.feed_tensor`."""
        if name not in self._stored:
            raise UnknownNameError(
                f"There is no parameter or state named {name!r}.{near_miss(name, self._stored)} "
                f"There are: {', '.join(self._stored) or 'none'}."
            )
        array = as_array(name, self.to_numpy(value) if self.is_native(value) else value)
        check_fed_tensor(name, array.dtype.name, array.shape, self._stored[name])
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
        while name in self._stored:
            name += "_"
        return name

    def _note_compilation(self, purpose: str, found: str) -> None:
        """Write down, and tell, what came of compiling."""
        self.compilation[purpose] = found
        _logger.info("%s of network %r in %s: %s", purpose, self.network.name, self.framework, found)
