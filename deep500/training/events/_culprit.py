"""Finding the first tensor that is not finite: the steps of a training are run again, one by one."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from deep500.core.stateful import State
from deep500.networks.graph_executor import GraphExecutor
from deep500.networks.network import Network
from deep500.networks.operator_node import OperatorNode
from deep500.networks.validation._single_node import with_intermediates
from deep500.training.finiteness import finite_elements, is_finite
from deep500.training.sampler import Batch, Sampler

if TYPE_CHECKING:
    from deep500.training.trainer import Trainer

__all__ = ["Culprit", "Replay", "ReplayedStep", "bad_parameter", "search_test"]


@dataclass(frozen=True)
class Culprit:
    """The first tensor that is not finite.

    Attributes:
        kind: ``"input"``, ``"tensor"`` (of the network, between its inputs and the loss), ``"loss"``, ``"gradient"`` or
            ``"parameter"``.
        name: Its name in the network.
        message: What to tell: what it is and when it was.
        node: The node that computed it, where it is a tensor of the network.
    """

    kind: str
    name: str
    message: str
    node: str | None = None


@dataclass(frozen=True)
class ReplayedStep:
    """What a step was run with, besides what the steps before it left.

    Attributes:
        position: Number of its minibatch in the epoch.
        hyperparameters: The optimizer's, by name.
    """

    position: int
    hyperparameters: Mapping[str, Any]


class Replay:
    """Steps that are run again from a snapshot; listeners are told of none of it."""

    def __init__(
        self, runner: Trainer, snapshot: tuple[State, State], steps: Sequence[ReplayedStep], first: int
    ) -> None:
        """Prepare.

        Args:
            runner: What trained.
            snapshot: States of executor and optimizer before the first of the steps.
            steps: The steps.
            first: Number of the first one over the whole training, from 0.
        """
        self._runner = runner
        self._executor, self._optimizer = runner.executor, runner.optimizer
        self._snapshot = snapshot
        self._steps = steps
        self._first = first

    def search(self, bad: int | None) -> Culprit | None:
        """Return the first tensor that is not finite; ``None`` where the steps run again are all finite.

        Executor and optimizer are left as they were before the step in which it is.

        Args:
            bad: Index of the step whose loss was not finite; ``None`` where a parameter was not after the last one.
        """
        with _unheard(self._executor), _mode(self._executor.network, "train"):
            self._restore(self._snapshot)
            spoilt = self._bad_parameter()
            if spoilt is not None:
                message = f"the parameter {spoilt!r} is not finite before step {self._first + 1}"
                return Culprit("parameter", spoilt, message)
            for index in range(len(self._steps) if bad is None else bad + 1):
                before = self._executor.state(), self._optimizer.state()
                step = self._steps[index]
                batch = self._runner.train_sampler.batch_at(step.position)
                for name, value in step.hyperparameters.items():
                    if getattr(self._optimizer, name) != value:
                        setattr(self._optimizer, name, value)
                found = self._of_step(index, batch, before, is_bad=index == bad)
                if found is not None:
                    self._restore(before)
                    return found
        return None

    def _of_step(self, index: int, batch: Batch, before: tuple[State, State], *, is_bad: bool) -> Culprit | None:
        when = f"in step {self._first + index + 1}"
        sampler, position = self._runner.train_sampler, self._steps[index].position
        if is_bad:
            return _of_input(sampler, position, batch, when) or _of_forward_run(self._executor, batch, when)
        self._optimizer.step(batch)
        bad = self._bad_parameter()
        if bad is None:
            return None
        # The loss was finite: it hides an input, or the gradient is not, or the update that was made of it.
        self._restore(before)
        found = _of_input(sampler, position, batch, when) or self._of_gradient(batch, when)
        return found or Culprit("parameter", bad, f"the parameter {bad!r} is not finite after the update {when}")

    def _of_gradient(self, batch: Batch, when: str) -> Culprit | None:
        self._executor.inference_and_backprop(batch, self._optimizer.loss)
        network = self._executor.network
        # Backpropagation goes from the last parameter to the first.
        for parameter, gradient in reversed(network.gradient(self._optimizer.loss)):
            (value,) = network.fetch_tensors([gradient])
            if not is_finite(value):
                message = f"the gradient by {parameter!r} is {_word(value)} {when}, and the loss is finite"
                return Culprit("gradient", parameter, message)
        return None

    def _bad_parameter(self) -> str | None:
        network = self._executor.network
        names = [*network.parameters, *network.states]
        return next((name for name in names if not is_finite(network.fetch_tensors([name])[0])), None)

    def _restore(self, states: tuple[State, State]) -> None:
        self._executor.restore(states[0])
        self._optimizer.restore(states[1])


def bad_parameter(state: State, steps: int) -> Culprit | None:
    """Return the first parameter of an executor's snapshot that is not finite; ``None`` when all are.

    Args:
        state: The snapshot.
        steps: Number of steps that were done.
    """
    for kind in ("parameters", "states"):
        for name, value in state[kind].items():
            if not is_finite(value):
                return Culprit("parameter", name, f"the parameter {name!r} is {_word(value)} after step {steps}")
    return None


def search_test(runner: Trainer, sampler: Sampler) -> Culprit | None:
    """Return the first tensor of a test that is not finite; ``None`` when all are."""
    executor = runner.executor
    with _unheard(executor), _mode(executor.network, "eval"):
        for position in range(len(sampler)):
            batch = sampler.batch_at(position)
            when = f"in minibatch {position + 1} of a test"
            found = _of_input(sampler, position, batch, when)
            if found is not None:
                return found
            outputs = executor.inference(batch)
            if all(is_finite(_array(executor.value_to_numpy(value))) for value in outputs.values()):
                continue
            found = _of_forward_run(executor, batch, when)
            if found is not None:
                return found
    return None


def _of_input(sampler: Sampler, position: int, batch: Batch, when: str) -> Culprit | None:
    for name, value in batch.items():
        array = np.asarray(value)
        good = finite_elements(array)
        if not good.all():
            row = int(np.flatnonzero(~good.reshape(len(array), -1).all(axis=1))[0])
            sample = int(sampler.order(sampler.epoch)[position * sampler.batch_size + row])
            message = f"the input {name!r} of sample {sample} of the data set is {_word(array[row])} {when}"
            return Culprit("input", name, message)
    return None


def _of_forward_run(executor: GraphExecutor, batch: Batch, when: str) -> Culprit | None:
    """Run the network with all that its nodes compute among the outputs, and return the first that is not finite."""
    inner = getattr(executor, "inner", executor)  # a wrapper runs parts of the minibatch
    network = executor.network
    probed = with_intermediates(network)
    getattr(probed, network.mode)()
    probe = type(inner)(probed, inner.device)
    computed = {name: _array(probe.value_to_numpy(value)) for name, value in probe.inference(batch).items()}
    program = network.program(frozenset(batch))
    bad = [
        (name, node, computed[name])
        for node in program.nodes
        for name in node.outputs
        if name in computed and not is_finite(computed[name])
    ]
    if not bad:
        return None
    name, node, value = bad[0]
    message = f"{_tensor(name, network)} is {_word(value)} {when}, computed by {_label(node)} from what is finite"
    # Infinities may be meant, such as those of a mask; the first NaN is told besides.
    nan = next(((n, at) for n, at, v in bad if np.isnan(_known(v)).any()), None)
    if nan is not None and nan[0] != name:
        message += f"; the first NaN is in {nan[0]!r}, computed by {_label(nan[1])}"
    kind = "loss" if name in network.losses else "tensor"
    return Culprit(kind, name, message, node.name)


def _tensor(name: str, network: Network) -> str:
    if name in network.losses:
        return f"the loss {name!r}"
    return f"the output {name!r}" if name in network.outputs else f"the tensor {name!r}"


def _label(node: OperatorNode) -> str:
    domain = f"{node.domain}::" if node.domain else ""
    return f"node {node.name!r} ({domain}{node.op_type})"


def _array(value: Any) -> NDArray[Any]:
    return value if isinstance(value, np.ndarray) else np.zeros(0)


def _known(array: NDArray[Any]) -> NDArray[Any]:
    return array if array.dtype.kind in "fc" else array.astype(np.float32)


def _word(array: NDArray[Any]) -> str:
    bad = int(np.count_nonzero(~finite_elements(array)))
    kind = "NaN" if np.isnan(_known(array)).any() else "infinite"
    return kind if array.ndim == 0 else f"{kind} ({bad} of {array.size} elements)"


@contextlib.contextmanager
def _unheard(executor: GraphExecutor) -> Iterator[None]:
    """Tell no listener of what is run in the block."""
    events, executor.events = executor.events, []
    try:
        yield
    finally:
        executor.events = events


@contextlib.contextmanager
def _mode(network: Network, mode: str) -> Iterator[None]:
    before = network.mode
    getattr(network, mode)()
    try:
        yield
    finally:
        if before in ("train", "eval"):
            getattr(network, before)()
