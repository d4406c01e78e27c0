"""Networks run and differentiated by TensorFlow."""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Callable, Iterable, Mapping, MutableMapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

# TensorFlow reports on its own start on stderr; who wants to read it sets the variable.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import tensorflow as tf

from deep500.core.device import Device
from deep500.core.tensor_descriptor import STRING, TensorDescriptor
from deep500.distributed.flat_buffers import Bucket, FlatBuffers
from deep500.frameworks.tensorflow._compiling import choose_form
from deep500.frameworks.tensorflow._dtypes import held_array, hold, is_held, released_array, to_array
from deep500.frameworks.tensorflow._errors import explain_run
from deep500.frameworks.tensorflow._function import (
    ParameterUpdate,
    ProgramFunction,
    flattened,
    frozen,
    input_structure,
)
from deep500.frameworks.tensorflow._generator import TensorFlowStreams
from deep500.frameworks.tensorflow._known import StaticShapesNeededError
from deep500.frameworks.tensorflow._layout import Layout, kernel_order
from deep500.frameworks.tensorflow._parameter_updates import TensorFlowUpdates, checked_value
from deep500.frameworks.tensorflow.buckets import BucketNames, ExchangedGradients, HandOver
from deep500.frameworks.tensorflow.determinism import deterministic_operators
from deep500.frameworks.tensorflow.device import device_name, synchronize
from deep500.frameworks.tensorflow.lowering import lowerings
from deep500.frameworks.tensorflow.tensor_functions import functions
from deep500.frameworks.tensorflow.translation import Translation
from deep500.networks.executor_event import ExecutorEvent
from deep500.networks.graph_executor import GraphExecutor, NetworkSource, UpdateRule
from deep500.networks.network import Network
from deep500.networks.parameter_updates import ParameterUpdates, TrainingRule
from deep500.networks.program import Program
from deep500.networks.tensor_functions import TensorFunctions

__all__ = ["ParameterUpdate", "TensorFlowExecutor", "from_model"]


class TensorFlowExecutor(GraphExecutor):
    """Runs a network in TensorFlow.

    Each program becomes one ``tf.function`` a purpose (inference; inference and gradients; a whole training step),
    traced once for all batch sizes. There are more where the graph depends on what is fed: on the length of a sequence,
    on the absence of a value, on inputs without elements (TensorFlow's kernels abort on some of them, so the lowerings
    have to know), on the values of small inputs that decide what the graph looks like.

    Parameters and states are ``tf.Variable``s on the device. The kernels of convolutions are held as TensorFlow
    computes with them, ``[spatial..., I, O]``; they are fetched and fed as ONNX declares them.
    """

    framework = "tensorflow"

    def _place(self, network: Network) -> None:
        self.tensorflow_device = device_name(self.device)
        self._is_only_device = len(tf.config.list_logical_devices()) == 1
        self._layouts = dict.fromkeys(_kernels(network), Layout.KERNEL)
        self._variables: dict[str, tf.Variable] = {}
        self._held: dict[str, str] = {}  # element types of variables that TensorFlow holds in another type
        self._constants: dict[str, NDArray[Any]] = {}
        self._gradients: MutableMapping[str, tf.Tensor] = {}
        self._hand_overs: dict[BucketNames, HandOver] = {}
        self._functions: dict[_Key, list[ProgramFunction]] = {}
        self._fixed: set[Program] = set()  # programs whose graphs depend on the shapes of the inputs
        self._update: ParameterUpdate | None = None
        with tf.device(self.tensorflow_device):
            for name in (*network.parameters, *network.states):
                fetched = network.fetch_tensors([name])[0]
                if is_held(fetched.dtype.name):
                    self._held[name] = fetched.dtype.name
                value = self._to_layout(name, fetched)
                self._variables[name] = tf.Variable(value, trainable=name in network.parameters, shape=value.shape)
        for name in network.constants:
            self._constants[name] = network.fetch_tensors([name])[0]

    def _run(self, program: Program, inputs: Sequence[Any]) -> dict[str, Any]:
        return self._call(self._function(program, inputs), inputs)[0]

    def _run_and_differentiate(self, program: Program, inputs: Sequence[Any], loss: str) -> dict[str, Any]:
        update, self._update = self._update, None
        try:
            function = self._function(program, inputs, loss, update)
        except Exception as error:
            refuse = getattr(update, "refuse", None)
            if refuse is None or not refuse(error):
                raise
            function = self._function(program, inputs, loss)
        call = functools.partial(self._call, function, inputs)
        outputs, self._gradients = update.call(call) if isinstance(update, HandOver) else call()
        return outputs

    def parameter_updates(self, rule: TrainingRule, source: GraphExecutor | None = None) -> TensorFlowUpdates:
        """Return what updates the parameters by an optimizer's rule; see the contract."""
        return TensorFlowUpdates(self, source or self, rule)

    def training_step(self, inputs: Mapping[str, Any], loss: str, updates: ParameterUpdates) -> dict[str, Any]:
        """Run the network, compute gradients and update the parameters, in one ``tf.function`` if the rule allows."""
        if isinstance(updates, TensorFlowUpdates) and updates.executor is self:
            return updates.train(inputs, loss)
        return super().training_step(inputs, loss, updates)

    def train(self, inputs: Mapping[str, Any], loss: str, update: ParameterUpdate) -> dict[str, Any]:
        """Run the network, compute the gradients of a loss and update the parameters, all in one ``tf.function``.

        Args:
            inputs: A tensor for every input that the loss depends on.
            loss: Name of a scalar output.
            update: Assigns the next values; it is traced once, and must be the same object at each call.

        Returns:
            Outputs and losses from before the update; the gradients can be fetched.

        Raises:
            InvalidInputError: As :meth:`inference_and_backprop`.
        """
        self._update = update
        try:
            return self.inference_and_backprop(inputs, loss)
        finally:
            self._update = None

    def gradient_buckets(
        self,
        inputs: Mapping[str, Any],
        loss: str,
        gradients: FlatBuffers,
        buckets: list[Bucket],
        on_bucket: Callable[[Bucket], None],
    ) -> dict[str, Any]:
        """Run the network and differentiate, handing gradients out on the way; see :class:`OverlappingExecutor`."""
        names = tuple(bucket.names for bucket in buckets)
        if names not in self._hand_overs:
            streams = len(names) > 1 and not self.compiles
            self._hand_overs[names] = HandOver(names, self.declared_layout, self.held_layout, streams=streams)
        hand_over = self._hand_overs[names]
        with hand_over.aimed(gradients, buckets, on_bucket):
            outputs = self.train(inputs, loss, hand_over)
        self._gradients = ExchangedGradients(gradients, list(self._gradients), self.held_layout)
        return outputs

    def exchanged_gradients(self) -> ExchangedGradients | None:
        """Return the gradients where they stand in flat buffers, as :meth:`gradient_buckets` left them."""
        found = self._gradients
        return found if isinstance(found, ExchangedGradients) and found.are_in_buffers else None

    def update_parameters(self, rule: UpdateRule) -> None:
        """Replace every parameter that has a gradient by ``rule(gradient, parameter, name)``; see the contract.

        The kernels of convolutions, and their gradients, are given as they are held: ``[spatial..., I, O]``.
        """
        with tf.device(self.tensorflow_device):
            for name, gradient in self._gradients.items():
                variable = self._variables[name]
                variable.assign(checked_value(rule(gradient, tf.convert_to_tensor(variable), name), variable, name))

    @property
    def tensor_functions(self) -> TensorFunctions:
        """What update rules use besides arithmetic."""
        return functions

    def stored_tensor(self, name: str) -> Any:
        """Return a parameter, state (``tf.Variable``) or constant (NumPy array) as it is held."""
        return self._variables[name] if name in self._variables else self._constants[name]

    def declared_layout(self, name: str, tensor: Any) -> Any:
        """Return a tensor like a parameter, held as that one, in the layout that the network declares."""
        if self._layouts.get(name) is not Layout.KERNEL:
            return tf.convert_to_tensor(tensor) if isinstance(tensor, tf.Variable) else tensor
        return tf.transpose(tensor, np.argsort(kernel_order(self._variables[name].shape.rank)))

    def held_layout(self, name: str, tensor: Any) -> Any:
        """Return a tensor like a parameter, in the layout that the network declares, as that one is held."""
        rank = self._variables[name].shape.rank
        if self._layouts.get(name) is not Layout.KERNEL or len(getattr(tensor, "shape", ())) != rank:
            return tensor
        return tf.transpose(tensor, kernel_order(rank))

    def gradient_tensor(self, name: str) -> Any | None:
        """Return the gradient by a parameter as it is held; ``None`` when the loss ignores it."""
        return self._gradients.get(name)

    def deterministic(self, seed: int) -> contextlib.AbstractContextManager[dict[str, Any]]:
        """Return a block in which equal runs give equal bits; see :meth:`GraphExecutor.deterministic`."""
        return deterministic_operators(seed)

    def _set_gradient(self, name: str, gradient: Any) -> None:
        if gradient is None:
            del self._gradients[name]
        else:
            self._gradients[name] = gradient

    def is_native(self, value: Any) -> bool:
        """Return whether a value is one of TensorFlow's tensors."""
        return isinstance(value, (tf.Tensor, tf.Variable))

    def to_native(self, value: Any, descriptor: TensorDescriptor) -> Any:
        """Return a value as a ``tf.Tensor`` on the device; texts stay on the processor."""
        if type(value) is not np.ndarray and isinstance(value, tf.Tensor) and not is_held(descriptor.dtype):
            return value
        if self._is_only_device:  # naming it takes as long as a small tensor
            return hold(value)
        with tf.device("/CPU:0" if descriptor.dtype == STRING else self.tensorflow_device):
            return hold(value)

    def to_numpy(self, tensor: Any) -> NDArray[Any]:
        """Return an output as a NumPy array; texts as objects of ``str``."""
        return to_array(tensor)

    def dtype_name(self, value: Any) -> str:
        """Return NumPy's name for the dtype of an array or tensor."""
        return str(value.dtype.name) if self.is_native(value) else super().dtype_name(value)

    def has_lowering(self, domain: str, op_type: str, version: int) -> bool:
        """Whether there is a lowering for an operator."""
        return lowerings.has(domain, op_type, version)

    def _new_random_streams(self) -> TensorFlowStreams:
        return TensorFlowStreams()

    def synchronize(self) -> None:
        """Wait until the device has finished what was asked of it."""
        synchronize(self.device)

    def trace_count(self) -> int:
        """Return how many graphs were traced so far: one for each program and purpose."""
        return sum(function.function.experimental_get_tracing_count() for function in self._traced())

    def graphs(self) -> list[tf.Graph]:
        """Return the graphs that were traced so far, to look at."""
        return [function.graph for function in self._traced()]

    def _traced(self) -> list[ProgramFunction]:
        return [function for functions in self._functions.values() for function in functions]

    def _stored_to_numpy(self, name: str, tensor: Any) -> NDArray[Any]:
        array = np.array(self.to_numpy(tensor))
        if name in self._held:
            array = np.array(released_array(array, self._held[name]))
        if self._layouts.get(name) is Layout.KERNEL:
            array = np.ascontiguousarray(array.transpose(np.argsort(kernel_order(array.ndim))))
        return array

    def _store(self, name: str, value: NDArray[Any]) -> None:
        if name in self._variables:
            self._variables[name].assign(self._to_layout(name, value))
            return
        self._constants[name] = np.array(value)
        # Constants are part of the graphs that read them.
        self._functions = {key: f for key, f in self._functions.items() if name not in key[0].constants}

    def _to_layout(self, name: str, value: NDArray[Any]) -> NDArray[Any]:
        if self._layouts.get(name) is Layout.KERNEL:
            return np.ascontiguousarray(value.transpose(kernel_order(value.ndim)))
        return held_array(value)

    def _function(
        self, program: Program, inputs: Sequence[Any], loss: str | None = None, update: ParameterUpdate | None = None
    ) -> ProgramFunction:
        structure = None
        is_fixed = program in self._fixed
        if is_fixed or not _has_one_structure(program) or any(tensor.shape.num_elements() == 0 for tensor in inputs):
            structure = input_structure(program, inputs, is_fixed)
        key = (program, loss, update, frozen(structure))
        found = self._functions.setdefault(key, [])
        for function in found:
            if not function.assumptions.values or function.assumptions.hold_for(list(flattened(inputs))):
                return function
        translation = Translation(program, self._layouts, self._constants)
        declared = {**self.network.outputs, **self.network.losses}
        structure = structure or input_structure(program, inputs)
        trace = functools.partial(
            ProgramFunction,
            translation,
            self._variables,
            inputs,
            structure,
            declared,
            self.tensorflow_device,
            loss,
            update,
        )
        try:
            with explain_run(self.network.name), self.random_streams.in_use():
                function = trace()
                if self.compiles:
                    compile_it = functools.partial(trace, compiled=True)
                    function, outcome = choose_form(function, compile_it, list(flattened(inputs)), self.synchronize)
                    self._note_compilation(_purpose(loss, update), outcome)
        except StaticShapesNeededError:
            self._fixed.add(program)
            return self._function(program, inputs, loss, update)
        found.append(function)
        return function

    def _call(self, function: ProgramFunction, inputs: Sequence[Any]) -> tuple[dict[str, Any], dict[str, tf.Tensor]]:
        with explain_run(self.network.name):
            outputs, gradients = function(*flattened(inputs))
        # Without a loss there are no gradients.
        named = zip(function.program.parameters, gradients, strict=False)
        return (
            dict(zip(function.program.outputs, outputs, strict=True)),
            {name: gradient for name, gradient in named if gradient is not None},
        )


def from_model(
    network: NetworkSource,
    device: str | Device | None = None,
    events: Iterable[ExecutorEvent] = (),
    compile: bool = False,
) -> TensorFlowExecutor:
    """Return an executor that runs a network in TensorFlow.

    Args:
        network: A network, or anything that :meth:`Network.load` takes.
        device: A device or its name, the processor by default.
        events: Listeners of the runs.
        compile: Whether to run through XLA (``jit_compile=True``) where that is faster; ``executor.compilation`` tells.
            XLA compiles anew for each size of the inputs, and leaves out the checks that are made as a graph runs.

    Raises:
        DeviceError: TensorFlow does not find the device.
        InvalidNetworkError: The network cannot be read.
    """
    return TensorFlowExecutor(network, device, events, compile)


#: A program, its loss, its update, and the structure of its inputs where they have more than one.
_Key: TypeAlias = tuple[Program, str | None, ParameterUpdate | None, Any]


def _purpose(loss: str | None, update: ParameterUpdate | None) -> str:
    """Return what a function is for, as ``executor.compilation`` names it."""
    if loss is None:
        return "inference"
    return f"gradient of {loss!r}" if update is None or isinstance(update, HandOver) else f"training step of {loss!r}"


def _has_one_structure(program: Program) -> bool:
    """Return whether all inputs of a program are tensors of a declared rank."""
    return all(isinstance(kind, TensorDescriptor) and kind.shape is not None for kind in program.input_types)


#: Operators whose second input is a kernel.
_CONVOLUTIONS = ("Conv", "ConvTranspose")


def _kernels(network: Network) -> list[str]:
    """Return the names of the stored tensors that are kernels of convolutions and nothing else."""
    names = []
    for name, value in network.model.graph.initializers.items():
        uses = value.uses()
        only_kernel = all(node.op_type in _CONVOLUTIONS and node.domain == "" and index == 1 for node, index in uses)
        if uses and only_kernel and not value.is_graph_output():
            names.append(name)
    return names
