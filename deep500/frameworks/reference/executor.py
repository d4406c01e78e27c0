"""NumPy runs a network: the oracle with which the other frameworks are compared."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping, MutableMapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deep500.core.device import Device
from deep500.core.errors import TrainingError
from deep500.core.tensor_descriptor import TensorDescriptor
from deep500.distributed.flat_buffers import Bucket, FlatBuffers
from deep500.frameworks.reference.buckets import BufferGradients, HandOver
from deep500.frameworks.reference.determinism import deterministic_operators
from deep500.frameworks.reference.device import check_device
from deep500.frameworks.reference.lowering import lowerings
from deep500.frameworks.reference.tensor_functions import functions
from deep500.frameworks.reference.translation import Translation, Values
from deep500.networks.executor_event import ExecutorEvent
from deep500.networks.graph_executor import GraphExecutor, NetworkSource, UpdateRule
from deep500.networks.network import Network
from deep500.networks.program import Program
from deep500.networks.tensor_functions import TensorFunctions

__all__ = ["ReferenceExecutor", "from_model"]


class ReferenceExecutor(GraphExecutor):
    """Runs a network with NumPy, each operator's gradient written by hand.

    Attributes:
        tensors: The parameters, states and constants by name.
    """

    framework = "reference"
    folds_constants = False  # the oracle computes what is written
    tensors: Values

    def _place(self, network: Network) -> None:
        check_device(self.device)
        names = [*network.parameters, *network.states, *network.constants]
        self.tensors = dict(zip(names, network.fetch_tensors(names)))
        self._gradients: MutableMapping[str, NDArray[Any]] = {}
        self._hand_over: HandOver | None = None
        self._updated: list[str] = []
        self._translations: dict[Program, Translation] = {}

    def _translation(self, program: Program) -> Translation:
        if program not in self._translations:
            with self.random_streams.in_use():
                self._translations[program] = Translation(program)
        return self._translations[program]

    def _values(self, program: Program, inputs: Sequence[Any]) -> Values:
        values = {name: self.tensors[name] for name in (*program.parameters, *program.states, *program.constants)}
        values.update(zip(program.inputs, inputs))
        return self._translation(program).forward(values)

    def _finish(self, program: Program, values: Values) -> dict[str, Any]:
        for state, name in program.state_updates.items():
            self.tensors[state] = values[name]
        return {name: values[name] for name in program.outputs}

    def _prepare(self, inputs: Mapping[str, Any]) -> tuple[Program, list[Any]]:
        if self.compiles and not self.compilation:
            self._note_compilation("inference", "not compiled: NumPy has no compiler")
        return super()._prepare(inputs)

    def _run(self, program: Program, inputs: Sequence[Any]) -> dict[str, Any]:
        return self._finish(program, self._values(program, inputs))

    def _run_and_differentiate(self, program: Program, inputs: Sequence[Any], loss: str) -> dict[str, Any]:
        values, translation, hand_over = self._values(program, inputs), self._translation(program), self._hand_over
        if hand_over is None:
            self._gradients = translation.backward(values, loss)
        else:
            course = translation.course(loss)

            def after_call(count: int, found: Mapping[str, Any]) -> None:
                hand_over.after_call(count, course, found)

            self._gradients = translation.backward(values, loss, after_call)
            self._updated = hand_over.updated(course, self._gradients)
        return self._finish(program, values)

    def gradient_buckets(
        self,
        inputs: Mapping[str, Any],
        loss: str,
        gradients: FlatBuffers,
        buckets: list[Bucket],
        on_bucket: Callable[[Bucket], None],
    ) -> dict[str, Any]:
        """Run the network and differentiate, handing gradients out on the way; see :class:`OverlappingExecutor`."""
        self._hand_over = HandOver(gradients, buckets, on_bucket)
        try:
            outputs = self.inference_and_backprop(inputs, loss)
        finally:
            self._hand_over = None
        self._gradients = BufferGradients(gradients, self._updated)
        return outputs

    def update_parameters(self, rule: UpdateRule) -> None:
        """Replace every parameter that has a gradient; see :meth:`GraphExecutor.update_parameters`."""
        for name, gradient in self._gradients.items():
            old = self.tensors[name]
            value = rule(gradient, old, name)
            if value is None or np.shape(value) != old.shape:
                received = "nothing" if value is None else f"an array of shape {np.shape(value)}"
                raise TrainingError(
                    f"The update rule returned {received} for parameter {name!r}; "
                    f"accepted is an array of shape {old.shape}."
                )
            self.tensors[name] = np.array(value, dtype=old.dtype)

    @property
    def tensor_functions(self) -> TensorFunctions:
        """What update rules use besides arithmetic."""
        return functions

    def stored_tensor(self, name: str) -> NDArray[Any]:
        """Return a parameter, state or constant; ``KeyError`` when there is none."""
        return self.tensors[name]

    def gradient_tensor(self, name: str) -> NDArray[Any] | None:
        """Return the gradient by a parameter, ``None`` when the loss ignores it."""
        return self._gradients.get(name)

    def to_native(self, value: Any, descriptor: TensorDescriptor) -> NDArray[Any]:
        """Return a value as an array."""
        return np.asarray(value)

    def to_numpy(self, tensor: Any) -> NDArray[Any]:
        """Return the array itself."""
        return np.asarray(tensor)

    def _stored_to_numpy(self, name: str, tensor: Any) -> NDArray[Any]:
        return np.array(tensor)

    def _store(self, name: str, value: NDArray[Any]) -> None:
        self.tensors[name] = np.array(value)

    def deterministic(self, seed: int) -> contextlib.AbstractContextManager[dict[str, Any]]:
        """Return a block in which equal runs give equal bits; see :meth:`GraphExecutor.deterministic`."""
        return deterministic_operators(seed)

    def _set_gradient(self, name: str, gradient: Any) -> None:
        if gradient is None:
            del self._gradients[name]
        else:
            self._gradients[name] = gradient

    def is_native(self, value: Any) -> bool:
        """Whether a value is a NumPy array."""
        return isinstance(value, np.ndarray)

    def has_lowering(self, domain: str, op_type: str, version: int) -> bool:
        """Whether there is a lowering for an operator."""
        return lowerings.has(domain, op_type, version)

    def synchronize(self) -> None:
        """Return at once: NumPy computes when it is called."""


def from_model(
    network: NetworkSource,
    device: str | Device | None = None,
    events: Iterable[ExecutorEvent] = (),
    compile: bool = False,
) -> ReferenceExecutor:
    """Return an executor that runs a network with NumPy.

    Args:
        network: A network, a path, the bytes of an ONNX file, or an ``onnx.ModelProto``.
        device: The processor.
        events: Listeners of its runs.
        compile: Changes nothing, which ``executor.compilation`` says: NumPy has no compiler.

    Raises:
        DeviceError: The device is not the processor.
        InvalidNetworkError: The network cannot be read.
    """
    return ReferenceExecutor(network, device, events, compile)
