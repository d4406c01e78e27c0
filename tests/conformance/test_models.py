"""Every model loads, is valid, and computes and learns alike under all frameworks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import onnx
import pytest

from deep500.frameworks import FRAMEWORKS, installed_frameworks
from deep500.networks import MODELS, GraphExecutor, Network
from deep500.networks.flops import count_flops
from deep500.networks.random_inputs import random_inputs
from deep500.networks.validation import validate
from tests.conformance.model_cases import CASES

REFERENCE = FRAMEWORKS.get("reference").from_model

#: Those that add nothing to what another says of gradients: the same blocks, more of them.
DEEPER = ("vgg11", "vgg13", "vgg16", "vgg19", "imagenet_resnet", "resnet34", "resnet50", "resnet101", "resnet152")

#: Those whose translation takes longest; two frameworks compare them.
HEAVY = (
    *("resnet18", "mobilenet_v2", "wide_resnet", "vgg", "resnet_lstm"),
    *("transformer_encoder-sinusoidal", "gpt-shared-heads", "lstm_language_model-tied"),
)

#: Have tests of their own under all frameworks.
OLDER = ("lenet", "mlp", "resnet", "simple_cnn")

TRAINED = [name for name in CASES if name not in DEEPER + OLDER]


def descend(executor: GraphExecutor, feeds: Mapping[str, Any]) -> tuple[float, float, float]:
    """Take a step of gradient descent; return the loss before and after, and what the gradient promised."""
    (before,) = executor.network.fetch_tensors(["loss"])
    names = [gradient for _, gradient in executor.network.gradient("loss")]
    square = sum(float((g.astype(np.float64) ** 2).sum()) for g in executor.network.fetch_tensors(names))
    rate = min(1.0, 0.01 * float(before) / square)
    executor.update_parameters(lambda gradient, parameter, name: parameter - rate * gradient)
    after = executor.value_to_numpy(executor.inference(feeds)["loss"])
    return float(before), float(after), rate * square


@pytest.mark.parametrize("name", CASES)
def test_model_is_valid_and_loads_as_it_was(name: str) -> None:
    case = CASES[name]
    network = case.create()
    onnx.checker.check_model(network.to_proto(), full_check=True)
    loaded = Network.load(network.to_proto())

    assert (loaded.inputs, loaded.outputs) == (network.inputs, network.outputs)
    assert loaded.parameters == network.parameters
    assert (loaded.states, loaded.constants) == (network.states, network.constants)
    assert loaded.weights_hash() == network.weights_hash()
    assert network.outputs["output"].shape[:2] == (
        "batch",
        case.arguments.get("classes", network.outputs["output"].shape[1]),
    )
    count = count_flops(network, 2, sizes=case.sizes)
    assert count.uncounted == {}
    assert count.total > 0


@pytest.mark.parametrize("dtype", ["float64", "float16", "bfloat16"])
@pytest.mark.parametrize("name", TRAINED)
def test_model_of_another_dtype_is_valid(name: str, dtype: str) -> None:
    network = CASES[name].create(dtype=dtype)

    onnx.checker.check_model(network.to_proto(), full_check=True)
    assert network.outputs["output"].dtype == dtype
    assert {d.dtype for d in network.parameters.values()} == {dtype}


@pytest.mark.skipif("onnxruntime" not in installed_frameworks(), reason="onnxruntime is not installed")
@pytest.mark.parametrize("name", CASES)
def test_model_infers_as_in_onnxruntime(name: str) -> None:
    case = CASES[name]
    factories: list[Callable[[Network], GraphExecutor]] = [REFERENCE, FRAMEWORKS.get("onnxruntime").from_model]

    report = validate(case.create(), factories, sizes=case.sizes, alone=False)

    assert report.failures == ()
    assert [str(row) for row in report.outputs if not row.agrees] == []


@pytest.mark.parametrize("name", TRAINED)
def test_model_learns_alike_everywhere(name: str) -> None:
    case = CASES[name]
    network = case.create()
    network.append_loss(case.loss)
    frameworks = ["pytorch"] if name in HEAVY else ["pytorch", "tensorflow"]
    made: list[GraphExecutor] = []

    def factory(framework: str) -> Callable[[Network], GraphExecutor]:
        def make(model: Network) -> GraphExecutor:
            made.append(FRAMEWORKS.get(framework).from_model(model))
            return made[-1]

        return make

    names = ["reference", *(f for f in frameworks if f in installed_frameworks())]
    if len(names) == 1:
        names *= 2
    feeds = random_inputs(network, case.sizes)
    report = validate(network, [factory(f) for f in names], feeds, alone=False)

    assert report.failures == ()
    assert [str(row) for row in report.outputs if not row.agrees] == []
    for executor in made:
        before, after, promised = descend(executor, feeds)
        assert after < before or promised < 1e-5 * before, executor.framework


@pytest.mark.parametrize("name", [name for name in TRAINED if CASES[name].sizes])
def test_length_is_open(name: str) -> None:
    executor = REFERENCE(CASES[name].create())
    classes = executor.network.outputs["output"].shape[1]
    (symbol,) = CASES[name].sizes
    for batch, length in ((1, 1), (3, 4)):
        feeds = random_inputs(executor.network, {"batch": batch, symbol: length})
        (output,) = executor.inference(feeds).values()
        assert output.shape[:2] == (batch, classes)
        assert output.shape[2:] in ((), (length,))
        assert np.isfinite(output).all()


def test_every_model_has_a_case() -> None:
    assert set(MODELS.names()) <= {case.model for case in CASES.values()}
