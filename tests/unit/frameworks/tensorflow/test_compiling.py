from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
import tensorflow as tf
from onnx import TensorProto, helper

from deep500.core.errors import InvalidInputError
from deep500.frameworks.tensorflow import TensorFlowExecutor, _compiling, from_model
from deep500.networks.creation import create_model
from tests.unit.frameworks.tensorflow.support import model_of, random


@pytest.fixture(params=["compiled", "plain"])
def chosen(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Let one form win, however long it takes."""
    monkeypatch.setattr(_compiling, "_PAYS_BELOW", np.inf if request.param == "compiled" else 0.0)
    monkeypatch.setattr(_compiling, "_TRIALS", 2)
    return str(request.param)


def trained(compile: bool) -> TensorFlowExecutor:
    network = create_model("mlp", shape=(1, 4, 4), classes=3)
    network.append_loss("SoftmaxCrossEntropyLoss")
    return from_model(network, compile=compile)


FEEDS = {"input": random(2, 1, 4, 4, dtype="float32"), "label": np.array([0, 2])}


def test_the_result_is_the_same(chosen: str) -> None:
    plain, other = trained(False), trained(True)
    for name in plain.network.parameters:
        other.feed(name, plain.fetch(name))
    moments = {id(e): tf.Variable(0.0) for e in (plain, other)}

    def update(executor: TensorFlowExecutor) -> object:
        def assign(gradients: Mapping[str, tf.Tensor], parameters: Mapping[str, tf.Variable]) -> None:
            moments[id(executor)].assign_add(1.0)
            for name, gradient in gradients.items():
                parameters[name].assign_sub(0.1 * gradient)

        return assign

    for executor in (plain, other):
        executor.inference(FEEDS)
        executor.train(FEEDS, "loss", update(executor))  # type: ignore[arg-type]
        executor.inference_and_backprop(FEEDS)
    for name in plain.network.parameters:
        np.testing.assert_allclose(other.fetch(name), plain.fetch(name), rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(other.fetch(f"{name}.grad"), plain.fetch(f"{name}.grad"), rtol=1e-5, atol=1e-6)
    # What was tried before does not count: an optimizer's own variables have their values back, too.
    assert [float(moment) for moment in moments.values()] == [1.0, 1.0]
    assert set(other.compilation) == {"inference", "training step of 'loss'", "gradient of 'loss'"}
    begin = "compiled: " if chosen == "compiled" else "compiling does not pay: "
    assert all(found.startswith(begin) for found in other.compilation.values())
    assert not plain.compilation


def test_another_batch_size(chosen: str) -> None:
    executor = trained(True)
    executor.inference(FEEDS)
    outputs = executor.inference({"input": random(5, 1, 4, 4, dtype="float32"), "label": np.arange(5) % 3})
    assert all(np.isfinite(value.numpy()).all() for value in outputs.values())


def test_texts_are_not_compiled() -> None:
    nodes = [helper.make_node("Equal", ["x", "x"], ["y"])]
    graph = helper.make_graph(
        nodes,
        "texts",
        [helper.make_tensor_value_info("x", TensorProto.STRING, [2])],
        [helper.make_tensor_value_info("y", TensorProto.BOOL, [2])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=11)
    executor = from_model(model, compile=True)
    assert executor.inference({"x": np.array(["a", "b"], object)})["y"].numpy().all()
    assert executor.compilation["inference"].startswith("not compiled: ")


def test_random_numbers_are_not_compiled() -> None:
    nodes = [helper.make_node("RandomNormalLike", ["x"], ["y"], name="draw")]
    executor = from_model(model_of(nodes, {"x": ("float32", [3])}, ["y"], {}), compile=True)
    executor.inference({"x": np.zeros(3, np.float32)})
    assert executor.compilation["inference"].startswith("not compiled: the network draws random numbers")


def test_compile_is_true_or_false() -> None:
    with pytest.raises(InvalidInputError, match="accepted are True and False"):
        from_model(create_model("mlp", shape=(1, 4, 4)), compile="yes")  # type: ignore[arg-type]
