"""Running a network in parts of a batch: less memory, the same outputs and gradients."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deep500.core.counts import check_count
from deep500.core.errors import InvalidInputError, InvalidNetworkError
from deep500.core.stateful import State
from deep500.core.tensor_descriptor import TensorDescriptor
from deep500.core.texts import shown
from deep500.networks.batch_separability import Batching, LossReduction, Reduction, analyse_batching
from deep500.networks.graph_executor import GraphExecutor, UpdateRule
from deep500.networks.network import Network
from deep500.networks.parameter_updates import ParameterUpdates, TrainingRule
from deep500.networks.program import Program
from deep500.networks.tensor_functions import TensorFunctions

__all__ = ["MicroBatchedExecutor"]


class MicroBatchedExecutor(GraphExecutor):
    r"""Runs an executor on parts of a batch, one after another.

    Activations of one part are alive at a time. Gradients are summed up weighted, so that for a loss that is a mean
    over :math:`N` samples in parts of :math:`n_i`

    .. math:: \nabla L = \sum_i \frac{n_i}{N} \nabla L_i

    is exactly the gradient of the whole batch; where samples count by their class (``ignore_index``, class weights),
    the parts' weights are sums of what their samples count. It takes the place of the executor under any optimizer:
    ``AdamOptimizer(MicroBatchedExecutor(executor, 32))``.

    BatchNormalization in training mode couples the samples of a batch, and networks with it are refused;
    ``frozen_statistics`` trains with the running statistics as they are. Dropout draws anew for every part.

    Source: Y. Oyama et al., "Accelerating deep learning frameworks with micro-batches", CLUSTER 2018; gradients of
    parts are summed up as in Y. Huang et al., "GPipe", NeurIPS 2019.

    Attributes:
        inner: What runs the parts.
        size: Largest number of samples in a part.
    """

    framework = "micro-batched"

    def __init__(self, inner: GraphExecutor, size: int, *, frozen_statistics: bool = False) -> None:
        """Wrap an executor; its tensors are shared.

        Args:
            inner: What runs the parts. While it is wrapped, it is not to be used otherwise.
            size: Largest number of samples in a part.
            frozen_statistics: Keep BatchNormalization in evaluation mode when the network trains.

        Raises:
            InvalidInputError: An argument is not accepted.
            InvalidNetworkError: Statistics are to be frozen in a network with Dropout, which would not train either.
        """
        if not isinstance(inner, GraphExecutor):
            raise InvalidInputError(f"MicroBatchedExecutor was given {shown(inner)}; accepted is an executor.")
        self.size = check_count("size", size, least=1)
        if frozen_statistics and any(n.op_type == "Dropout" for n in inner.network.model.graph):
            raise InvalidNetworkError(
                f"Network {inner.network.name!r} has Dropout, which frozen_statistics=True would turn off."
            )
        self.inner, self.frozen_statistics = inner, frozen_statistics
        self.device, self.events = inner.device, []
        self.random_streams = inner.random_streams
        self.network: Network = inner.network.bind(self)
        self._hold(self.network)
        self._outputs: Mapping[str, Any] = {}
        self._differentiated: tuple[str, tuple[str, ...]] | None = None
        self._gradients: dict[str, Any] = {}
        self._batchings: dict[Program, Batching] = {}

    def inference(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Run the network on one part after another; see :meth:`GraphExecutor.inference`.

        Raises:
            InvalidNetworkError: The network makes samples depend on each other.
        """
        return self._in_parts(inputs, None)

    def inference_and_backprop(self, inputs: Mapping[str, Any], loss: str = "loss") -> dict[str, Any]:
        """Run and differentiate one part after another; see :meth:`GraphExecutor.inference_and_backprop`.

        Raises:
            InvalidNetworkError: The network makes samples depend on each other, or the loss is no mean or sum of them.
        """
        return self._in_parts(inputs, loss)

    def random_state(self) -> State:
        """Return a snapshot of where the random numbers come from; see :meth:`GraphExecutor.random_state`."""
        return self.inner.random_state()

    def restore_random(self, state: Mapping[str, Any]) -> None:
        """Go on from what :meth:`random_state` returned; see :meth:`GraphExecutor.restore_random`."""
        self.inner.restore_random(state)

    def seed_random(self, seed: int) -> None:
        """Seed the operators that have no seed; see :meth:`GraphExecutor.seed_random`."""
        self.inner.seed_random(seed)

    def deterministic(self, seed: int) -> contextlib.AbstractContextManager[dict[str, Any]]:
        """Return the wrapped executor's block; see :meth:`GraphExecutor.deterministic`."""
        return self.inner.deterministic(seed)

    def _set_gradient(self, name: str, gradient: Any) -> None:
        if gradient is None:
            self._gradients.pop(name, None)
        else:
            self._gradients[name] = gradient

    def part_weights(
        self, reduction: LossReduction, parts: Sequence[Mapping[str, Any]], counts: Sequence[int]
    ) -> list[float]:
        """Return what the value of each part is multiplied by when they are summed up."""
        if reduction.kind is Reduction.SUM:
            return [1.0] * len(parts)
        weights = [reduction.weight(self._host(part.get(reduction.label)), n) for part, n in zip(parts, counts)]
        total = sum(weights)
        # Where nothing counts, the whole batch has the loss 0 / 0 as well.
        return [weight / total for weight in weights] if total else [1.0] * len(parts)

    def _in_parts(self, inputs: Mapping[str, Any], loss: str | None) -> dict[str, Any]:
        program, batching = self._checked(inputs, loss)
        parts, counts = self._split(inputs, batching)
        for event in self.events:
            event.before_executor(inputs)
        weights = {
            name: self.part_weights(r, parts, counts) for name, r in batching.reduced.items() if name in program.outputs
        }
        collected: dict[str, list[Any]] = {name: [] for name in program.outputs}
        self._gradients = {}
        first = 0.0
        for index, part in enumerate(parts):
            weight = weights[loss][index] if loss is not None else 0.0
            if loss is None or not weight:
                outputs = self.inner.inference(part)
            else:
                outputs = self.inner.inference_and_backprop(part, loss)
                first = first or weight
                self._accumulate(program, weight / first)
            for name in program.outputs:
                # Copied: an executor may use the memory of its results again.
                collected[name].append(np.array(self.inner.to_numpy(outputs[name])))
        if loss is not None:
            self._finish_gradients(first)
            self._differentiated = (loss, program.parameters)
        self._outputs = {name: self._joined(name, values, batching, weights) for name, values in collected.items()}
        for event in self.events:
            (event.after_inference if loss is None else event.after_backprop)(self._outputs)
        return dict(self._outputs)

    def _checked(self, inputs: Mapping[str, Any], loss: str | None) -> tuple[Program, Batching]:
        if not isinstance(inputs, Mapping):
            raise InvalidInputError(f"Inputs were given as {type(inputs).__name__}; accepted is a dictionary by name.")
        mode = "eval" if self.frozen_statistics else self.network.mode
        network = self.inner.network
        {"train": network.train, "eval": network.eval}.get(mode, network.as_declared)()
        program = network.program(frozenset(inputs))
        if program not in self._batchings:
            self._batchings[program] = analyse_batching(program, f"network {network.name!r}")
        batching = self._batchings[program]
        if loss is not None:
            self._check_loss(program, loss)
            if loss not in batching.reduced:
                raise InvalidNetworkError(
                    f"Output {loss!r} of network {network.name!r} does not sum up the batch, so it is no loss of it."
                )
        return program, batching

    def _split(self, inputs: Mapping[str, Any], batching: Batching) -> tuple[list[dict[str, Any]], list[int]]:
        """Return the inputs of every part, and its number of samples."""
        whole = {n: v if self.inner.is_native(v) or hasattr(v, "shape") else np.asarray(v) for n, v in inputs.items()}
        sizes = {name: int(whole[name].shape[0]) if len(whole[name].shape) else 0 for name in batching.inputs}
        count = next(iter(sizes.values()), 0)
        if len(set(sizes.values())) != 1 or not count:
            listed = ", ".join(f"{name!r}: {size}" for name, size in sizes.items())
            raise InvalidInputError(f"The inputs must agree in the number of samples, from 1; received {listed}.")
        starts = range(0, count, self.size)
        parts = [{n: v[a : a + self.size] if n in batching.inputs else v for n, v in whole.items()} for a in starts]
        return parts, [min(self.size, count - a) for a in starts]

    def _accumulate(self, program: Program, factor: float) -> None:
        """Add the gradients of a part, relative to those of the first: parts of one size are added as they are."""
        for name in program.parameters:
            gradient = self.inner.gradient_tensor(name)
            if gradient is None:
                continue
            if name not in self._gradients:
                # NumPy arrays may be shared; the frameworks make new tensors in every run.
                self._gradients[name] = np.array(gradient) if isinstance(gradient, np.ndarray) else gradient
            else:
                self._gradients[name] += gradient if factor == 1 else gradient * factor

    def _finish_gradients(self, first: float) -> None:
        if first not in (0.0, 1.0):
            for name in self._gradients:
                self._gradients[name] *= first

    def _joined(
        self, name: str, values: list[NDArray[Any]], batching: Batching, weights: Mapping[str, Sequence[float]]
    ) -> Any:
        """Return an output of the whole batch."""
        if name in batching.batched:
            whole = np.concatenate(values)
        elif name in weights:
            total = sum(
                (w * v.astype(np.float64) for w, v in zip(weights[name], values, strict=True) if w), np.float64(0)
            )
            whole = np.asarray(total).astype(values[0].dtype)
        else:
            whole = values[-1]
        return self.inner.to_native(whole, TensorDescriptor(whole.dtype, whole.shape))

    def _host(self, value: Any) -> Any:
        return self.inner.to_numpy(value) if self.inner.is_native(value) else value

    # What the wrapped executor does.

    def update_parameters(self, rule: UpdateRule) -> None:
        """Replace every parameter by the rule, given the gradients of the whole batch."""
        self.inner.update_parameters(lambda grad, param, name: rule(self._gradients.get(name, grad), param, name))

    @property
    def tensor_functions(self) -> TensorFunctions:
        """What update rules use, as in the wrapped executor."""
        return self.inner.tensor_functions

    def parameter_updates(self, rule: TrainingRule, source: GraphExecutor | None = None) -> ParameterUpdates:
        """Return what the wrapped executor updates parameters with, from the gradients of the whole batch."""
        return self.inner.parameter_updates(rule, source or self)

    def declared_layout(self, name: str, tensor: Any) -> Any:
        """Return a tensor like a parameter in the layout that the network declares."""
        return self.inner.declared_layout(name, tensor)

    def held_layout(self, name: str, tensor: Any) -> Any:
        """Return a tensor like a parameter as the wrapped executor holds it."""
        return self.inner.held_layout(name, tensor)

    def stored_tensor(self, name: str) -> Any:
        """Return a parameter, state or constant of the wrapped executor."""
        return self.inner.stored_tensor(name)

    def gradient_tensor(self, name: str) -> Any | None:
        """Return the gradient of the whole batch."""
        return self._gradients.get(name)

    def to_native(self, value: Any, descriptor: TensorDescriptor) -> Any:
        """Return a value as the framework's tensor."""
        return self.inner.to_native(value, descriptor)

    def to_numpy(self, tensor: Any) -> NDArray[Any]:
        """Return a tensor as a NumPy array."""
        return self.inner.to_numpy(tensor)

    def is_native(self, value: Any) -> bool:
        """Whether a value is one of the framework's tensors."""
        return self.inner.is_native(value)

    def dtype_name(self, value: Any) -> str:
        """Return NumPy's name for the dtype of a tensor."""
        return self.inner.dtype_name(value)

    def has_lowering(self, domain: str, op_type: str, version: int) -> bool:
        """Whether the wrapped executor runs an operator."""
        return self.inner.has_lowering(domain, op_type, version)

    def synchronize(self) -> None:
        """Wait until the device has finished."""
        self.inner.synchronize()

    def _stored_to_numpy(self, name: str, tensor: Any) -> NDArray[Any]:
        return self.inner._stored_to_numpy(name, tensor)

    def _store(self, name: str, value: NDArray[Any]) -> None:
        self.inner._store(name, value)

    def _place(self, network: Network) -> None:
        """Do nothing: the wrapped executor holds the tensors."""

    def _run(self, program: Program, inputs: Sequence[Any]) -> dict[str, Any]:
        return self._in_parts(dict(zip(program.inputs, inputs)), None)

    def _run_and_differentiate(self, program: Program, inputs: Sequence[Any], loss: str) -> dict[str, Any]:
        return self._in_parts(dict(zip(program.inputs, inputs)), loss)
