"""Networks run and differentiated by TensorFlow."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

# TensorFlow reports on its own start on stderr; who wants to read it sets the variable.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import tensorflow as tf

from deep500.core.device import Device
from deep500.core.errors import InvalidNetworkError, TrainingError
from deep500.core.tensor_descriptor import TensorDescriptor
from deep500.frameworks.tensorflow._errors import explain_run, explain_trace
from deep500.frameworks.tensorflow._layout import Layout, kernel_order
from deep500.frameworks.tensorflow.device import device_name, synchronize
from deep500.frameworks.tensorflow.lowering import lowerings
from deep500.frameworks.tensorflow.translation import Translation
from deep500.networks.executor_event import ExecutorEvent
from deep500.networks.graph_executor import GraphExecutor, NetworkSource, UpdateRule
from deep500.networks.network import Network
from deep500.networks.program import Program

__all__ = ["ParameterUpdate", "TensorFlowExecutor", "from_model"]

#: ``update(gradients, parameters)``, by name, assigns the parameters' next values; it is traced.
ParameterUpdate = Callable[[Mapping[str, tf.Tensor], Mapping[str, tf.Variable]], None]


class TensorFlowExecutor(GraphExecutor):
    """Runs a network in TensorFlow.

    Each program becomes one ``tf.function`` a purpose (inference; inference and gradients; a whole training step),
    traced once for all batch sizes (for inputs without elements once more: TensorFlow's kernels abort on some of them,
    so the lowerings have to know). Parameters and states are ``tf.Variable``s on the device. The kernels of
    convolutions are held as TensorFlow computes with them, ``[spatial..., I, O]``; they are fetched and fed as ONNX
    declares them.
    """

    framework = "tensorflow"

    def _place(self, network: Network) -> None:
        self.tensorflow_device = device_name(self.device)
        self._layouts = dict.fromkeys(_kernels(network), Layout.KERNEL)
        self._variables: dict[str, tf.Variable] = {}
        self._constants: dict[str, NDArray[Any]] = {}
        self._gradients: dict[str, tf.Tensor] = {}
        self._functions: dict[_Key, _Function] = {}
        self._update: ParameterUpdate | None = None
        with tf.device(self.tensorflow_device):
            for name in (*network.parameters, *network.states):
                value = self._to_layout(name, network.fetch_tensors([name])[0])
                self._variables[name] = tf.Variable(value, trainable=name in network.parameters, shape=value.shape)
        for name in network.constants:
            self._constants[name] = network.fetch_tensors([name])[0]

    def _run(self, program: Program, inputs: Sequence[Any]) -> dict[str, Any]:
        return self._call(self._function(program, inputs), inputs)[0]

    def _run_and_differentiate(self, program: Program, inputs: Sequence[Any], loss: str) -> dict[str, Any]:
        update, self._update = self._update, None
        outputs, self._gradients = self._call(self._function(program, inputs, loss, update), inputs)
        return outputs

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

    def update_parameters(self, rule: UpdateRule) -> None:
        """Replace every parameter that has a gradient by ``rule(gradient, parameter, name)``; see the contract.

        The kernels of convolutions, and their gradients, are given as they are held: ``[spatial..., I, O]``.
        """
        with tf.device(self.tensorflow_device):
            for name, gradient in self._gradients.items():
                variable = self._variables[name]
                variable.assign(_checked(rule(gradient, tf.convert_to_tensor(variable), name), variable, name))

    def stored_tensor(self, name: str) -> Any:
        """Return a parameter, state (``tf.Variable``) or constant (NumPy array) as it is held."""
        return self._variables[name] if name in self._variables else self._constants[name]

    def gradient_tensor(self, name: str) -> Any | None:
        """Return the gradient by a parameter as it is held; ``None`` when the loss ignores it."""
        return self._gradients.get(name)

    def is_native(self, value: Any) -> bool:
        """Return whether a value is one of TensorFlow's tensors."""
        return isinstance(value, (tf.Tensor, tf.Variable))

    def to_native(self, value: Any, descriptor: TensorDescriptor) -> Any:
        """Return a value as a ``tf.Tensor`` on the device."""
        if isinstance(value, tf.Tensor):
            return value
        with tf.device(self.tensorflow_device):
            return tf.convert_to_tensor(value)

    def to_numpy(self, tensor: Any) -> NDArray[Any]:
        """Return an output as a NumPy array."""
        array: NDArray[Any] = tensor.numpy() if hasattr(tensor, "numpy") else np.asarray(tensor)
        return array

    def dtype_name(self, value: Any) -> str:
        """Return NumPy's name for the dtype of an array or tensor."""
        return str(value.dtype.name) if self.is_native(value) else super().dtype_name(value)

    def has_lowering(self, domain: str, op_type: str, version: int) -> bool:
        """Whether there is a lowering for an operator."""
        return lowerings.has(domain, op_type, version)

    def synchronize(self) -> None:
        """Wait until the device has finished what was asked of it."""
        synchronize(self.device)

    def trace_count(self) -> int:
        """Return how many graphs were traced so far: one for each program and purpose."""
        return sum(function.function.experimental_get_tracing_count() for function in self._functions.values())

    def graphs(self) -> list[tf.Graph]:
        """Return the graphs that were traced so far, to look at."""
        return [function.graph for function in self._functions.values()]

    def _stored_to_numpy(self, name: str, tensor: Any) -> NDArray[Any]:
        array = np.array(self.to_numpy(tensor))
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
        return value

    def _function(
        self,
        program: Program,
        inputs: Sequence[tf.Tensor],
        loss: str | None = None,
        update: ParameterUpdate | None = None,
    ) -> _Function:
        shapes = None
        if any(tensor.shape.num_elements() == 0 for tensor in inputs):
            shapes = tuple(tuple(tensor.shape) for tensor in inputs)
        key = (program, loss, update, shapes)
        function = self._functions.get(key)
        if function is None:
            translation = Translation(program, self._layouts, self._constants)
            declared = self.network.inputs
            signature = [_specification(name, declared[name]) for name in program.inputs]
            if shapes:
                signature = [tf.TensorSpec(s, own.dtype) for s, own in zip(shapes, signature, strict=True)]
            with explain_run(self.network.name):
                function = _Function(translation, self._variables, signature, self.tensorflow_device, loss, update)
            self._functions[key] = function
        return function

    def _call(self, function: _Function, inputs: Sequence[Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        with explain_run(self.network.name):
            outputs, gradients = function(*inputs)
        # Without a loss there are no gradients.
        named = zip(function.program.parameters, gradients, strict=False)
        return (
            dict(zip(function.program.outputs, outputs, strict=True)),
            {name: gradient for name, gradient in named if gradient is not None},
        )


def from_model(
    network: NetworkSource, device: str | Device | None = None, events: Iterable[ExecutorEvent] = ()
) -> TensorFlowExecutor:
    """Return an executor that runs a network in TensorFlow.

    Args:
        network: A network, or anything that :meth:`Network.load` takes.
        device: A device or its name, the processor by default.
        events: Listeners of the runs.

    Raises:
        DeviceError: TensorFlow does not find the device.
        InvalidNetworkError: The network cannot be read.
    """
    return TensorFlowExecutor(network, device, events)


#: A program, its loss, its update, and the shapes of its inputs where one of them has no elements.
_Key: TypeAlias = tuple[Program, str | None, ParameterUpdate | None, tuple[tuple[int, ...], ...] | None]


class _Function:
    """One ``tf.function``: a program's outputs and, for a loss, its gradients and an update of the parameters.

    Attributes:
        program: The program.
        function: The function, of the program's inputs, returning outputs and gradients.
        graph: Its graph.
    """

    def __init__(
        self,
        translation: Translation,
        variables: Mapping[str, tf.Variable],
        signature: Sequence[tf.TensorSpec],
        device: str,
        loss: str | None,
        update: ParameterUpdate | None,
    ) -> None:
        self.program = program = translation.program

        def run(*inputs: tf.Tensor) -> tuple[list[tf.Tensor], list[tf.Tensor | None]]:
            gradients: list[tf.Tensor | None] = []
            with tf.device(device):
                with tf.GradientTape(watch_accessed_variables=False) as tape:
                    trained = [variables[name] for name in program.parameters] if loss else []
                    tape.watch(trained)
                    values = translation.trace(inputs, variables)
                for state, name in program.state_updates.items():
                    variables[state].assign(values[name])
                if loss:
                    with explain_trace(loss):
                        gradients = [_dense(g) for g in tape.gradient(values[loss], trained)]
                if update:
                    named = {n: g for n, g in zip(program.parameters, gradients, strict=True) if g is not None}
                    update(named, {name: variables[name] for name in named})
                return [values[name] for name in program.outputs], gradients

        self.function = tf.function(run, input_signature=signature, autograph=False)
        # Called directly, the only graph saves the search for one that fits the inputs.
        self._concrete = self.function.get_concrete_function()
        self.graph: tf.Graph = self._concrete.graph

    def __call__(self, *inputs: tf.Tensor) -> tuple[list[tf.Tensor], list[tf.Tensor | None]]:
        """Return outputs and gradients."""
        results: tuple[list[tf.Tensor], list[tf.Tensor | None]] = self._concrete(*inputs)
        return results


def _dense(gradient: Any) -> tf.Tensor | None:
    """Return a gradient as a tensor; one of a few rows comes as tf.IndexedSlices."""
    return None if gradient is None else tf.convert_to_tensor(gradient)


def _specification(name: str, descriptor: TensorDescriptor) -> tf.TensorSpec:
    shape = None
    if descriptor.shape is not None:
        shape = [d if isinstance(d, int) else None for d in descriptor.shape]
    try:
        return tf.TensorSpec(shape, tf.as_dtype(descriptor.numpy_dtype))
    except TypeError as error:
        raise InvalidNetworkError(f"TensorFlow has no dtype for input {name!r}, {descriptor}.") from error


def _kernels(network: Network) -> list[str]:
    """Return the names of the stored tensors that are kernels of convolutions and nothing else."""
    names = []
    for name, value in network.model.graph.initializers.items():
        uses = value.uses()
        only_kernel = all(node.op_type == "Conv" and node.domain == "" and index == 1 for node, index in uses)
        if uses and only_kernel and not value.is_graph_output():
            names.append(name)
    return names


def _checked(value: Any, variable: tf.Variable, name: str) -> tf.Tensor:
    """Return what an update rule returned as a tensor that can be assigned.

    Raises:
        TrainingError: It is none, or of another dtype or shape.
    """
    expected = f"a tensor {variable.dtype.name}{variable.shape.as_list()}"
    if value is None:
        raise TrainingError(f"The update rule returned nothing for parameter {name!r}; it must return {expected}.")
    try:
        tensor = tf.convert_to_tensor(value, variable.dtype)
    except (TypeError, ValueError, tf.errors.OpError) as error:
        raise TrainingError(f"The update rule must return {expected} for parameter {name!r}: {error}") from error
    if tensor.shape != variable.shape:
        raise TrainingError(
            f"The update rule returned shape {tensor.shape.as_list()} for parameter {name!r}; "
            f"it must return {expected}."
        )
    return tensor
