from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from deep500.core.errors import Deep500Error, InvalidInputError, InvalidNetworkError, UnknownNameError
from deep500.frameworks.reference.executor import ReferenceExecutor
from deep500.networks.creation import create_model
from deep500.networks.executor_event import ExecutorEvent
from deep500.networks.graph_executor import gradient_name
from deep500.networks.network import Network
from tests.unit.networks.support import relu_model

X = np.random.default_rng(0).standard_normal((4, 3)).astype(np.float32)
LABEL = np.array([0, 1, 1, 0])
FED = {"input": X, "label": LABEL}


@pytest.fixture
def executor() -> ReferenceExecutor:
    network = create_model("mlp", shape=(3,), hidden=(5,), classes=2)
    network.append_loss("SoftmaxCrossEntropyLoss")
    return ReferenceExecutor(network)


def test_executor_takes_what_can_be_loaded() -> None:
    proto = relu_model("N", 2)

    for source in (proto, proto.SerializeToString(), Network.load(proto)):
        assert ReferenceExecutor(source).inference({"x": X[:, :2]})["y"].min() >= 0
    with pytest.raises(InvalidNetworkError, match="given as int"):
        ReferenceExecutor(5)


@pytest.mark.parametrize(
    ("fed", "error", "message"),
    [
        ({}, InvalidInputError, "Input 'input' was not fed"),
        ({"label": LABEL}, InvalidInputError, "Input 'input' was not fed"),
        ({"imput": X}, UnknownNameError, "Did you mean 'input'"),
        ({"input": X.astype(np.float64)}, InvalidInputError, r"given as float64\[4, 3\]; .*astype\('float32'\)"),
        ({"input": X[:, :2]}, InvalidInputError, r"given as float32\[4, 2\]; accepted is float32\[batch, 3\]\.$"),
        ({"input": X[0]}, InvalidInputError, r"given as float32\[3\]"),
        ({"input": [["a"] * 3]}, InvalidInputError, r"Input 'input' was given as string\[1, 3\]"),
        ({"input": [[1.0], [1.0, 2.0]]}, InvalidInputError, "given for 'input' is no tensor"),
        ({"input": None}, InvalidInputError, r"given as object\[\]"),
        ({"input": X, "label": LABEL[:3]}, InvalidInputError, "must agree in 'batch'; received 4 and 3"),
        ({"input": X, "label": LABEL.astype(np.int32)}, InvalidInputError, r"given as int32\[4\]"),
        ([X], InvalidInputError, r"given as list; accepted is a dictionary .* \{'input': x\}"),
        (X, InvalidInputError, "given as ndarray"),
    ],
)
def test_inputs_are_checked_by_name(
    executor: ReferenceExecutor, fed: Any, error: type[Deep500Error], message: str
) -> None:
    for run in (executor.inference, executor.inference_and_backprop):
        with pytest.raises(error, match=message):
            run(fed)


def test_an_accepted_input_does_not_excuse_the_next(executor: ReferenceExecutor) -> None:
    executor.inference(FED)
    executor.inference({"input": X[:2]})

    with pytest.raises(InvalidInputError, match="must agree in 'batch'"):
        executor.inference({"input": X[:2], "label": LABEL})


@pytest.mark.parametrize(
    ("fed", "loss", "error", "message"),
    [
        (FED, "los", UnknownNameError, "no output named 'los'. Did you mean 'loss'"),
        ({"input": X}, "loss", InvalidInputError, "The loss 'loss' needs an input that was not fed, among: label"),
        (
            FED,
            "output",
            InvalidInputError,
            r"Only a scalar can be differentiated; output 'output' is float32\[batch, 2\]",
        ),
    ],
)
def test_loss_is_checked(
    executor: ReferenceExecutor, fed: Mapping[str, Any], loss: str, error: type[Deep500Error], message: str
) -> None:
    with pytest.raises(error, match=message):
        executor.inference_and_backprop(fed, loss)


def test_tensors_by_name(executor: ReferenceExecutor) -> None:
    with pytest.raises(UnknownNameError, match="Call inference_and_backprop"):
        executor.network.gradient()
    with pytest.raises(UnknownNameError, match="gradients after inference_and_backprop"):
        executor.network.fetch_tensors(["layers.0.bias.grad"])

    outputs = executor.inference_and_backprop(FED)
    pairs = executor.network.gradient("loss")

    assert pairs == [(name, gradient_name(name)) for name in executor.network.get_params()]
    for name, gradient in pairs:
        value, slope = executor.network.fetch_tensors([name, gradient])
        assert value.shape == slope.shape
    np.testing.assert_array_equal(executor.network.fetch_tensors(["output"])[0], outputs["output"])
    with pytest.raises(UnknownNameError, match=r"Did you mean 'layers\.0\.bias'"):
        executor.network.fetch_tensors(["layers.0.biass"])
    with pytest.raises(UnknownNameError, match="no parameter or state named 'output'"):
        executor.network.feed_tensor("output", X)
    with pytest.raises(InvalidInputError, match=r"given as float64\[5\]"):
        executor.network.feed_tensor("layers.0.bias", np.zeros(5))


def test_network_that_an_executor_was_made_from_keeps_its_tensors_and_mode() -> None:
    network = create_model("mlp", shape=(3,), hidden=())
    before = network.weights_hash()
    executor = ReferenceExecutor(network.train())
    executor.network.eval().feed_tensor("layers.0.bias", np.ones(10, np.float32))

    assert (network.mode, executor.network.mode) == ("train", "eval")
    assert network.weights_hash() == before != executor.network.weights_hash()


def test_events_are_told_in_order() -> None:
    heard: list[str] = []

    class Recorder(ExecutorEvent):
        def before_executor(self, inputs: Mapping[str, Any]) -> None:
            heard.append(f"before {sorted(inputs)}")

        def after_inference(self, outputs: Mapping[str, Any]) -> None:
            heard.append(f"inference {sorted(outputs)}")

        def after_backprop(self, outputs: Mapping[str, Any]) -> None:
            heard.append(f"backprop {sorted(outputs)}")

    network = create_model("mlp", shape=(3,), hidden=(), classes=2)
    network.append_loss("SoftmaxCrossEntropyLoss")
    executor = ReferenceExecutor(network, "cpu", [Recorder()])
    executor.inference({"input": X})
    executor.inference_and_backprop(FED)

    assert heard == [
        "before ['input']",
        "inference ['output']",
        "before ['input', 'label']",
        "backprop ['loss', 'output']",
    ]
