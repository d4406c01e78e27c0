"""PyTorch runs a network: translated once to a ``torch.fx.GraphModule``, differentiated by autograd."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import fx

from deep500.core.device import Device
from deep500.core.errors import Deep500Error, InvalidInputError, TrainingError, UnsupportedOperatorError
from deep500.core.stateful import State
from deep500.core.tensor_descriptor import STRING, TensorDescriptor, element_type_name
from deep500.core.value_descriptor import OptionalDescriptor, SequenceDescriptor, ValueDescriptor
from deep500.frameworks.pytorch._arrays import as_texts, element_type, mark, to_array, to_tensor
from deep500.frameworks.pytorch._compiling import choose_form
from deep500.frameworks.pytorch._dtypes import HELD_AS
from deep500.frameworks.pytorch._flat_parameters import FlatParameters
from deep500.frameworks.pytorch._generator import check_generator_state, generator_state, restore_generator
from deep500.frameworks.pytorch._parameter_updates import TorchUpdates
from deep500.frameworks.pytorch.buckets import BucketFiller
from deep500.frameworks.pytorch.data_parallel import DataParallelRuns
from deep500.frameworks.pytorch.determinism import deterministic_operators
from deep500.frameworks.pytorch.device import torch_device
from deep500.frameworks.pytorch.lowering import lowerings
from deep500.frameworks.pytorch.tensor_functions import functions
from deep500.frameworks.pytorch.translation import StoredTensors, translate
from deep500.networks.executor_event import ExecutorEvent
from deep500.networks.graph_executor import GraphExecutor, NetworkSource, UpdateRule
from deep500.networks.network import Network
from deep500.networks.parameter_updates import TrainingRule
from deep500.networks.program import Program
from deep500.networks.tensor_functions import TensorFunctions

if TYPE_CHECKING:
    from deep500.distributed.communicator import Communicator
    from deep500.distributed.flat_buffers import Bucket, FlatBuffers

__all__ = ["PyTorchExecutor", "from_model"]


class PyTorchExecutor(GraphExecutor):
    """Runs a network with PyTorch.

    Attributes:
        stored: The parameters, states and constants on the device, a ``torch.nn.Module``.
    """

    framework = "pytorch"
    stored: StoredTensors
    _filler: BucketFiller | None = None
    _flat: FlatParameters | None = None
    _parallel: DataParallelRuns | None = None

    def graph_module(self, fed: Iterable[str] | None = None) -> fx.GraphModule:
        """Return the ``torch.fx.GraphModule`` that runs in the current mode, for ``torch.compile`` and other tools.

        Args:
            fed: Names of the inputs that will be given, all of them by default. They are the module's arguments, in
                the network's order.
        """
        return self._module(self.network.program(frozenset(self.network.inputs if fed is None else fed)))

    def _place(self, network: Network) -> None:
        self.torch_device = torch_device(self.device)
        self.stored = StoredTensors()
        self._modules: dict[Program, fx.GraphModule] = {}
        self._compiled: dict[tuple[Program, str | None], Callable[..., Any]] = {}
        self._parameter_names = network.get_params()
        # What tensors hold that PyTorch has no dtype for: only the network's own types tell.
        kinds = {**network.outputs, **network.parameters, **network.states, **network.constants}
        types = {name: _element_type(kind) for name, kind in kinds.items()}
        self._held_types = {name: held for name, held in types.items() if held in HELD_AS}
        for name in (*self._parameter_names, *network.states, *network.constants):
            (value,) = network.fetch_tensors([name])
            texts = as_texts(value)
            tensor = to_tensor(value).to(self.torch_device) if texts is None else texts
            self.stored.add(name, tensor, trained=name in self._parameter_names)
        self._trained = list(self.stored.parameters())  # finding them takes a module longer than a small layer

    def _module(self, program: Program) -> fx.GraphModule:
        module = self._modules.get(program)
        if module is None:
            with self.random_streams.in_use():
                module = self._modules[program] = translate(program, self.stored).to(self.torch_device)
        return module

    def _function(self, program: Program, inputs: Sequence[Any], loss: str | None) -> Callable[..., Any]:
        """Return what runs a program: its module, or the compiled form where that is asked for and pays."""
        if self._parallel is not None and loss is not None:
            return self._parallel.function(self._module(program), program, loss)
        if not self.compiles:
            return self._module(program)
        function = self._compiled.get((program, loss))
        if function is None:
            index = None if loss is None else program.outputs.index(loss)
            function, found = choose_form(self._module(program), inputs, index)
            self._compiled[program, loss] = function
            self._note_compilation("inference" if loss is None else f"gradient of {loss!r}", found)
        return function

    def _run(self, program: Program, inputs: Sequence[Any]) -> dict[str, Any]:
        with torch.no_grad(), _explained(self.network.name):
            results = _call(self._function(program, inputs, None), inputs)
            return self._finish(program, results)

    def _run_and_differentiate(self, program: Program, inputs: Sequence[Any], loss: str) -> dict[str, Any]:
        for parameter in self._trained:
            parameter.grad = None
        with _explained(self.network.name):
            results = _call(self._function(program, inputs, loss), inputs)
            scalar = results[program.outputs.index(loss)]
            if self._filler is not None:
                self._filler.begin(program, loss)
            if scalar.requires_grad:  # a loss that no parameter reaches has no gradients
                scalar.backward()
            if self._filler is not None:
                self._filler.end()
            return self._finish(program, [_detached(result) for result in results])

    def gradient_buckets(
        self,
        inputs: Mapping[str, Any],
        loss: str,
        gradients: FlatBuffers,
        buckets: list[Bucket],
        on_bucket: Callable[[Bucket], None],
    ) -> dict[str, Any]:
        """Run the network and differentiate, and hand out gradients meanwhile; see :class:`OverlappingExecutor`.

        On the processor ``on_bucket`` is called in the caller's thread, on a GPU also in autograd's.
        """
        if self._filler is None:
            self._filler = BucketFiller({name: self.stored.tensor(name) for name in self._parameter_names})
        return self._filler.run(gradients, buckets, on_bucket, lambda: self.inference_and_backprop(inputs, loss))

    def take_exchanged(self, gradients: FlatBuffers) -> None:
        """Use the gradients as the exchange left them; see :class:`TakingExecutor`."""
        if self._filler is not None:
            self._filler.take_exchanged(gradients)

    def lay_parameters(self, buffers: FlatBuffers) -> bool:
        """Have the parameters in flat buffers, where these are on the device; see :class:`FlatExecutor`."""
        if self.torch_device.type != "cpu":
            return False
        if self._flat is None or not self._flat.is_of(buffers):
            self._flat = FlatParameters({name: self.stored.tensor(name) for name in self._parameter_names}, buffers)
        self._flat.lay()
        return True

    def data_parallel(self, communicator: Communicator) -> Callable[[Mapping[str, Any], str], dict[str, Any]]:
        """Return ``inference_and_backprop`` through PyTorch's own ``DistributedDataParallel``; see the scheme."""
        runs = DataParallelRuns(communicator, self.torch_device)

        def differentiate(inputs: Mapping[str, Any], loss: str) -> dict[str, Any]:
            self._parallel = runs
            try:
                return self.inference_and_backprop(inputs, loss)
            finally:
                self._parallel = None

        return differentiate

    def _finish(self, program: Program, results: Sequence[Any]) -> dict[str, Any]:
        count = len(program.outputs)
        if program.state_updates:
            states = [self.stored.tensor(name) for name in program.state_updates]
            torch._foreach_copy_(states, list(results[count:]))
        outputs = dict(zip(program.outputs, results))
        for name in self._held_types.keys() & outputs.keys():
            outputs[name] = mark(outputs[name], self._held_types[name])
        return outputs

    def update_parameters(self, rule: UpdateRule) -> None:
        """Replace every parameter that has a gradient; see :meth:`GraphExecutor.update_parameters`."""
        with torch.no_grad():
            for name in self._parameter_names:
                parameter = self.stored.tensor(name)
                if parameter.grad is None:
                    continue
                value = rule(parameter.grad, parameter, name)
                if not isinstance(value, torch.Tensor) or value.shape != parameter.shape:
                    received = tuple(value.shape) if isinstance(value, torch.Tensor) else type(value).__name__
                    raise TrainingError(
                        f"The update rule returned {received} for parameter {name!r}; "
                        f"accepted is a tensor of shape {tuple(parameter.shape)}."
                    )
                parameter.copy_(value)

    def parameter_updates(self, rule: TrainingRule, source: GraphExecutor | None = None) -> TorchUpdates:
        """Return what updates the parameters by an optimizer's rule; see the contract."""
        return TorchUpdates(self, source or self, rule)

    @property
    def tensor_functions(self) -> TensorFunctions:
        """What update rules use besides arithmetic."""
        return functions

    def stored_tensor(self, name: str) -> torch.Tensor:
        """Return a parameter, state or constant; ``KeyError`` when there is none."""
        return self.stored.tensor(name)

    def gradient_tensor(self, name: str) -> torch.Tensor | None:
        """Return the gradient by a parameter, ``None`` when the loss ignores it."""
        return self.stored.tensor(name).grad

    def _taken(self, name: str, value: Any, descriptor: TensorDescriptor, sizes: dict[str, tuple[int, str]]) -> Any:
        if isinstance(value, torch.Tensor) and value.dtype == HELD_AS.get(descriptor.dtype):
            value = mark(value.detach(), descriptor.dtype)  # of which PyTorch has no tensors of its own
        return super()._taken(name, value, descriptor, sizes)

    def to_native(self, value: Any, descriptor: TensorDescriptor) -> Any:
        """Return a value as a tensor on the device; NumPy arrays are shared with the processor, not copied."""
        if descriptor.dtype == STRING:
            return value  # PyTorch has no texts; they stay on the host
        tensor = value if isinstance(value, torch.Tensor) else to_tensor(value)
        return tensor if tensor.device == self.torch_device else tensor.to(self.torch_device, non_blocking=True)

    def from_dlpack(self, value: Any) -> Any:
        """Return another library's tensor as one of PyTorch's, of the same memory where that can be shared."""
        try:
            return torch.utils.dlpack.from_dlpack(value)
        except (BufferError, RuntimeError, TypeError, AttributeError):
            return super().from_dlpack(value)

    def to_numpy(self, tensor: Any) -> NDArray[Any]:
        """Return a tensor as a NumPy array, shared when it lies on the processor."""
        if not isinstance(tensor, torch.Tensor):
            return np.asarray(tensor)
        return to_array(tensor)

    def _stored_to_numpy(self, name: str, tensor: Any) -> NDArray[Any]:
        if isinstance(tensor, torch.Tensor):
            return np.array(to_array(tensor, self._held_types.get(name)))
        return np.array(self.to_numpy(tensor))

    def _store(self, name: str, value: NDArray[Any]) -> None:
        with torch.no_grad():
            self.stored.tensor(name).copy_(to_tensor(value))

    def has_lowering(self, domain: str, op_type: str, version: int) -> bool:
        """Whether there is a lowering for an operator."""
        return lowerings.has(domain, op_type, version)

    def synchronize(self) -> None:
        """Wait until the GPU has finished; the processor always has."""
        if self.torch_device.type == "cuda":
            torch.cuda.synchronize(self.torch_device)

    def random_state(self) -> State:
        """Return a snapshot of the random streams, PyTorch's own on the device among them."""
        return {**super().random_state(), "generator": generator_state(self.torch_device)}

    def restore_random(self, state: Mapping[str, Any]) -> None:
        """Go on from what :meth:`random_state` returned; PyTorch's own stream is that of the whole process."""
        check_generator_state(state.get("generator"), self.torch_device)
        super().restore_random(state)
        restore_generator(state["generator"], self.torch_device)

    def seed_random(self, seed: int) -> None:
        """Seed PyTorch's own stream, which is that of the whole process; see :meth:`GraphExecutor.seed_random`."""
        super().seed_random(seed)
        torch.manual_seed(seed)

    def deterministic(self, seed: int) -> contextlib.AbstractContextManager[dict[str, Any]]:
        """Return a block in which equal runs give equal bits; see :meth:`GraphExecutor.deterministic`."""
        return deterministic_operators(seed)

    def _set_gradient(self, name: str, gradient: torch.Tensor) -> None:
        self.stored.tensor(name).grad = gradient

    def is_native(self, value: Any) -> bool:
        """Whether a value is a ``torch.Tensor``."""
        return isinstance(value, torch.Tensor)

    def dtype_name(self, value: Any) -> str:
        """Return NumPy's name for the dtype of an array or tensor."""
        return element_type(value) if isinstance(value, torch.Tensor) else element_type_name(value.dtype)


def _element_type(kind: ValueDescriptor | None) -> str | None:
    """Return the element type of a tensor, or of the tensors of a sequence or an optional; ``None`` if unknown."""
    while isinstance(kind, (SequenceDescriptor, OptionalDescriptor)):
        kind = kind.element
    return None if kind is None else kind.dtype


def _detached(value: Any) -> Any:
    """Return an output of any kind without what autograd knows of it."""
    if isinstance(value, (list, tuple)):
        return [_detached(entry) for entry in value]
    return value.detach() if isinstance(value, torch.Tensor) else value


def _call(function: Callable[..., Any], inputs: Sequence[Any]) -> tuple[torch.Tensor, ...]:
    """Call a module with its hooks (``GraphModule``'s own call would print what it raises), or its compiled form."""
    results: tuple[torch.Tensor, ...]
    results = torch.nn.Module.__call__(function, *inputs) if isinstance(function, fx.GraphModule) else function(*inputs)
    return results


@contextlib.contextmanager
def _explained(network: str) -> Iterator[None]:
    """Turn what PyTorch finds wrong while it runs into errors of Deep500."""
    try:
        yield
    except Deep500Error:
        raise
    except NotImplementedError as error:
        raise UnsupportedOperatorError(f"PyTorch has no kernel to run {network!r}: {_reason(error)}") from error
    except (RuntimeError, IndexError, ValueError, TypeError, ZeroDivisionError) as error:
        if "not implemented for" in str(error) or "could not infer output dtype" in str(error):
            raise UnsupportedOperatorError(f"PyTorch has no kernel to run {network!r}: {_reason(error)}") from error
        raise InvalidInputError(f"PyTorch cannot run {network!r} on these inputs: {_reason(error)}") from error


def _reason(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__


def from_model(
    network: NetworkSource,
    device: str | Device | None = None,
    events: Iterable[ExecutorEvent] = (),
    compile: bool = False,
) -> PyTorchExecutor:
    """Return an executor that runs a network with PyTorch.

    Args:
        network: A network, a path, the bytes of an ONNX file, or an ``onnx.ModelProto``.
        device: ``CPUDevice()``, ``GPUDevice(index)`` or their names; the processor by default.
        events: Listeners of its runs.
        compile: Whether to run through ``torch.compile`` where that is faster; ``executor.compilation`` tells.

    Raises:
        DeviceError: PyTorch does not see the device.
        InvalidNetworkError: The network cannot be read.
    """
    return PyTorchExecutor(network, device, events, compile)
