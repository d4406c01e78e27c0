"""ONNX Runtime runs a network; it trains by the network's gradient as a graph."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deep500.core.device import Device
from deep500.core.errors import TrainingError
from deep500.core.stateful import State
from deep500.core.tensor_descriptor import TensorDescriptor
from deep500.frameworks.onnxruntime.determinism import deterministic_operators
from deep500.frameworks.onnxruntime.device import execution_providers
from deep500.frameworks.onnxruntime.tensor_functions import functions
from deep500.frameworks.onnxruntime.translation import Session
from deep500.networks.executor_event import ExecutorEvent
from deep500.networks.gradient_graph import gradient_model
from deep500.networks.graph_executor import GraphExecutor, NetworkSource, UpdateRule
from deep500.networks.network import Network
from deep500.networks.program import Program
from deep500.networks.program_model import program_model
from deep500.networks.tensor_functions import TensorFunctions

__all__ = ["OnnxRuntimeExecutor", "from_model"]

_logger = logging.getLogger(__name__)

#: Operators that draw random numbers in each run.
_DRAWING = (
    "Dropout",
    "Bernoulli",
    "Multinomial",
    "RandomNormal",
    "RandomNormalLike",
    "RandomUniform",
    "RandomUniformLike",
)


class OnnxRuntimeExecutor(GraphExecutor):
    """Runs a network with ONNX Runtime.

    Until a parameter or state is changed, inference runs with them built in, which lets the runtime fold and arrange
    them; afterwards they are inputs. The gradient is a graph of its own.

    Attributes:
        tensors: The parameters, states and constants by name.
    """

    framework = "onnxruntime"
    folds_constants = False  # ONNX Runtime does so itself
    tensors: dict[str, NDArray[Any]]

    def _place(self, network: Network) -> None:
        execution_providers(self.device)
        names = [*network.parameters, *network.states, *network.constants]
        self.tensors = dict(zip(names, network.fetch_tensors(names)))
        self._gradients: dict[str, NDArray[Any]] = {}
        self._sessions: dict[Program, Session] = {}
        self._gradient_sessions: dict[tuple[Program, str], tuple[Session, dict[str, str]]] = {}
        self._are_weights_fixed = True
        self._has_told = False

    def _session(self, program: Program) -> Session:
        if program not in self._sessions:
            names = program.constants
            if self._are_weights_fixed and not program.state_updates:
                names = (*names, *program.parameters, *program.states)
            stored = {name: self.tensors[name] for name in names}
            self._sessions[program] = Session(program_model(self.network, program, stored=stored), self.device)
        return self._sessions[program]

    def _gradient_session(self, program: Program, loss: str) -> tuple[Session, dict[str, str]]:
        """Return what computes the gradient, and the names of its outputs that are gradients, by parameter."""
        key = (program, loss)
        if key not in self._gradient_sessions:
            model, names = gradient_model(self.network, program, loss)
            self._gradient_sessions[key] = Session(model, self.device), names
        return self._gradient_sessions[key]

    def _run(self, program: Program, inputs: Sequence[Any]) -> dict[str, Any]:
        names = (*program.outputs, *program.state_updates.values())
        results = self._session(program).run(self._values(program, inputs), names)
        return self._finish(program, dict(zip(names, results)))

    def _run_and_differentiate(self, program: Program, inputs: Sequence[Any], loss: str) -> dict[str, Any]:
        session, names = self._gradient_session(program, loss)
        results = dict(zip(session.outputs, session.run(self._values(program, inputs), session.outputs)))
        self._gradients = {parameter: results[gradient] for parameter, gradient in names.items()}
        return self._finish(program, results)

    def _values(self, program: Program, inputs: Sequence[Any]) -> dict[str, Any]:
        values = {name: self.tensors[name] for name in (*program.parameters, *program.states)}
        values.update(zip(program.inputs, inputs))
        return values

    def _finish(self, program: Program, values: dict[str, Any]) -> dict[str, Any]:
        for state, name in program.state_updates.items():
            self._replace(state, values[name])
        return {name: values[name] for name in program.outputs}

    def _replace(self, name: str, value: NDArray[Any]) -> None:
        self.tensors[name] = value
        if self._are_weights_fixed:
            self._are_weights_fixed = False
            self._sessions = {}

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
            self._replace(name, np.array(value, dtype=old.dtype))

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

    def to_native(self, value: Any, descriptor: TensorDescriptor) -> Any:
        """Return a value as an array, whose memory ONNX Runtime shares on the processor."""
        return np.asarray(value)

    def to_numpy(self, tensor: Any) -> NDArray[Any]:
        """Return the array itself."""
        return np.asarray(tensor)

    def _stored_to_numpy(self, name: str, tensor: Any) -> NDArray[Any]:
        return np.array(tensor)

    def _store(self, name: str, value: NDArray[Any]) -> None:
        if name in self.network.constants:  # they are part of every session
            self._sessions, self._gradient_sessions = {}, {}
        self._replace(name, np.array(value))

    def random_state(self) -> State:
        """Return a snapshot of the random streams: none, as ONNX Runtime keeps its own to itself, which is told."""
        drawing = sorted({node.op_type for node in self.network.model.graph.all_nodes() if node.op_type in _DRAWING})
        if drawing and not self._has_told:
            self._has_told = True
            _logger.warning(
                "ONNX Runtime does not tell where its random numbers are, so that what goes on from a checkpoint draws "
                "others than the training would have drawn (network %r has %s).",
                self.network.name,
                ", ".join(drawing),
            )
        return super().random_state()

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

    def synchronize(self) -> None:
        """Return at once: a run has ended when ONNX Runtime returns."""


def from_model(
    network: NetworkSource,
    device: str | Device | None = None,
    events: Iterable[ExecutorEvent] = (),
    compile: bool = False,
) -> OnnxRuntimeExecutor:
    """Return an executor that runs a network with ONNX Runtime.

    Args:
        network: A network, a path, the bytes of an ONNX file, or an ``onnx.ModelProto``.
        device: ``CPUDevice()``, ``GPUDevice(index)`` or their names; the processor by default.
        events: Listeners of its runs.
        compile: Changes nothing, which ``executor.compilation`` says: ONNX Runtime optimises every network.

    Raises:
        DeviceError: The installed ONNX Runtime has nothing for the device.
        InvalidNetworkError: The network cannot be read.
    """
    return OnnxRuntimeExecutor(network, device, events, compile)
