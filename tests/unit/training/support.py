"""A linear network that NumPy runs here, in float64, so that the training level is tested without an adapter."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from deep500.core.tensor_descriptor import TensorDescriptor
from deep500.datasets.numpy_dataset import NumpyDataset
from deep500.networks.creation import create_model
from deep500.networks.graph_executor import GraphExecutor, UpdateRule
from deep500.networks.network import Network
from deep500.networks.program import Program
from deep500.training.optimizer import UpdateRuleOptimizer
from deep500.training.samplers.ordered import OrderedSampler
from deep500.training.samplers.shuffle import ShuffleSampler
from deep500.training.trainer import Trainer

CLASSES = 3
FEATURES = 4


def linear_network() -> Network:
    """Return one linear layer with a cross-entropy loss, float64."""
    network = create_model("mlp", classes=CLASSES, shape=(FEATURES,), dtype="float64", hidden=())
    network.append_loss("SoftmaxCrossEntropyLoss")
    return network


class LinearExecutor(GraphExecutor):
    """Computes scores ``x @ w.T + b``, their cross-entropy and its gradient."""

    framework = "numpy-linear"

    def __init__(self, network: Network | None = None) -> None:
        self.tensors: dict[str, np.ndarray] = {}
        self.gradients: dict[str, np.ndarray] = {}
        self.modes: list[str] = []
        self.scalars_read = 0
        super().__init__(network or linear_network())
        names = self.network.get_params()
        self.weight = next(name for name in names if self.tensors[name].ndim == 2)
        self.bias = next(name for name in names if self.tensors[name].ndim == 1)

    def _place(self, network: Network) -> None:
        names = network.get_params()
        self.tensors = dict(zip(names, network.fetch_tensors(names), strict=True))

    def _run(self, program: Program, inputs: Sequence[Any]) -> dict[str, Any]:
        self.modes.append(self.network.mode)
        fed = dict(zip(program.inputs, inputs, strict=True))
        scores = fed["input"] @ self.tensors[self.weight].T + self.tensors[self.bias]
        outputs: dict[str, Any] = {"output": scores}
        if "label" in fed:
            shifted = scores - scores.max(axis=1, keepdims=True)
            logarithms = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
            outputs["loss"] = -logarithms[np.arange(len(scores)), fed["label"]].mean()
        return outputs

    def _run_and_differentiate(self, program: Program, inputs: Sequence[Any], loss: str) -> dict[str, Any]:
        outputs = self._run(program, inputs)
        fed = dict(zip(program.inputs, inputs, strict=True))
        shifted = np.exp(outputs["output"] - outputs["output"].max(axis=1, keepdims=True))
        slope = shifted / shifted.sum(axis=1, keepdims=True)
        slope[np.arange(len(slope)), fed["label"]] -= 1
        slope /= len(slope)
        self.gradients = {self.weight: slope.T @ fed["input"], self.bias: slope.sum(axis=0)}
        return outputs

    def update_parameters(self, rule: UpdateRule) -> None:
        for name, gradient in self.gradients.items():
            self.tensors[name] = rule(gradient, self.tensors[name], name)
            gradient[...] = np.nan  # an executor may use the gradient's memory again

    def stored_tensor(self, name: str) -> Any:
        return self.tensors[name]

    def gradient_tensor(self, name: str) -> Any | None:
        return self.gradients.get(name)

    def to_native(self, value: Any, descriptor: TensorDescriptor) -> Any:
        return np.asarray(value)

    def to_numpy(self, tensor: Any) -> np.ndarray:
        self.scalars_read += np.ndim(tensor) == 0
        return np.asarray(tensor)

    def _stored_to_numpy(self, name: str, tensor: Any) -> np.ndarray:
        return np.array(tensor)

    def _store(self, name: str, value: np.ndarray) -> None:
        self.tensors[name] = np.array(value)

    def synchronize(self) -> None:
        pass


def clusters(count: int = 30, seed: int = 0) -> NumpyDataset:
    """Return points around one centre a class, easy to tell apart."""
    random = np.random.default_rng(seed)
    labels = np.arange(count) % CLASSES
    centres = 4.0 * np.eye(CLASSES, FEATURES)
    return NumpyDataset(centres[labels] + random.normal(0, 0.3, (count, FEATURES)), "input", labels, "label", CLASSES)


def make_trainer(
    optimizer: Callable[[GraphExecutor], UpdateRuleOptimizer],
    *,
    batch_size: int = 7,
    executor: LinearExecutor | None = None,
    tested: bool = True,
) -> Trainer:
    """Return a trainer over 30 training and 11 test samples."""
    executor = executor or LinearExecutor()
    test = OrderedSampler(clusters(11, seed=1), batch_size) if tested else None
    return Trainer(ShuffleSampler(clusters(), batch_size, seed=5), test, executor, optimizer(executor))


def follow(optimizer: UpdateRuleOptimizer, gradients: Sequence[Any], start: Any) -> list[Any]:
    """Return the values that the update rule gives one parameter after each gradient."""
    values = []
    parameter = start
    for gradient in gradients:
        optimizer.new_input()
        parameter = optimizer.update_rule(gradient, parameter, "parameter")
        values.append(parameter)
    return values


def batch_of(dataset: NumpyDataset) -> Mapping[str, np.ndarray]:
    """Return a whole data set as one minibatch."""
    return dataset[:]
