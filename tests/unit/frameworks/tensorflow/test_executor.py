from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from onnx import helper

from deep500.core.errors import InvalidInputError, TrainingError, UnknownNameError
from deep500.frameworks.tensorflow import TensorFlowExecutor, from_model
from deep500.networks.creation import create_model
from deep500.networks.executor_event import ExecutorEvent
from tests.unit.frameworks.tensorflow.support import check_executor_gradients, model_of, random


def classifier(model: str = "lenet", shape: tuple[int, ...] = (1, 8, 8), **arguments: Any) -> TensorFlowExecutor:
    network = create_model(model, shape=shape, **arguments)
    network.append_loss("SoftmaxCrossEntropyLoss")
    return from_model(network)


def batch(size: int = 4, shape: tuple[int, ...] = (1, 8, 8), dtype: str = "float32") -> dict[str, np.ndarray]:
    return {"input": random(size, *shape, dtype=dtype), "label": np.arange(size) % 10}


def test_outputs_are_tensors_of_tensorflow() -> None:
    executor = classifier()
    outputs = executor.inference(batch())
    assert list(outputs) == ["output", "loss"]
    assert all(isinstance(tensor, tf.Tensor) for tensor in outputs.values())
    assert list(executor.inference({"input": batch()["input"]})) == ["output"]
    assert executor.framework == "tensorflow"


def test_inputs_may_be_tensors_of_tensorflow() -> None:
    executor = classifier()
    arrays = batch()
    expected = executor.inference(arrays)["output"].numpy()
    received = executor.inference({name: tf.constant(value) for name, value in arrays.items()})["output"].numpy()
    np.testing.assert_array_equal(received, expected)
    with pytest.raises(InvalidInputError, match="float64"):
        executor.inference({"input": tf.constant(arrays["input"], tf.float64)})


@pytest.mark.parametrize(
    ("model", "shape", "arguments"),
    [("lenet", (1, 4, 4), {}), ("mlp", (1, 2, 2), {"hidden": (3,)}), ("resnet", (2, 4, 4), {"depth": 8, "width": 1})],
)
def test_gradients_of_models(model: str, shape: tuple[int, ...], arguments: dict[str, Any]) -> None:
    executor = classifier(model, shape, dtype="float64", classes=3, **arguments)
    executor.network.train()
    inputs = {"input": random(3, *shape), "label": np.array([0, 2, 1])}
    skip = [name for name in executor.network.parameters if np.prod(executor.stored_tensor(name).shape) > 100]
    check_executor_gradients(executor, inputs, 1e-4, skip=skip)


def test_one_graph_for_every_batch_size() -> None:
    executor = classifier("resnet", (3, 8, 8), depth=8)
    executor.network.train()
    for size in (4, 4, 3, 1):
        executor.inference_and_backprop(batch(size, (3, 8, 8)))
    assert executor.trace_count() == 1
    executor.inference(batch(2, (3, 8, 8)))
    assert executor.trace_count() == 2
    executor.network.eval()
    for size in (2, 5):
        executor.inference(batch(size, (3, 8, 8)))
    assert executor.trace_count() == 3


def test_declared_sizes_stay_static() -> None:
    executor = classifier()
    executor.inference(batch())
    (graph,) = executor.graphs()
    shapes = [o.outputs[0].shape.as_list() for o in graph.get_operations() if o.type == "Conv2D"]
    assert shapes == [[None, 8, 8, 6], [None, 4, 4, 16]]


def test_weights_go_round() -> None:
    """The kernels are held as [H, W, I, O], and nobody sees it."""
    executor = classifier()
    source = create_model("lenet", shape=(1, 8, 8))
    network = executor.network
    assert executor.stored_tensor("conv1.weight").shape == (5, 5, 1, 6)
    names = network.get_params()
    for name, received, expected in zip(names, network.fetch_tensors(names), source.fetch_tensors(names), strict=True):
        np.testing.assert_array_equal(received, expected, err_msg=name)
        assert received.flags.c_contiguous
    assert network.weights_hash() == source.weights_hash()
    value = random(6, 1, 5, 5, dtype="float32")
    network.feed_tensor("conv1.weight", value)
    (received,) = network.fetch_tensors(["conv1.weight"])
    np.testing.assert_array_equal(received, value)
    received[:] = 0  # a copy
    np.testing.assert_array_equal(network.fetch_tensors(["conv1.weight"])[0], value)
    with pytest.raises(InvalidInputError, match="accepted is float32"):
        network.feed_tensor("conv1.weight", value.transpose(2, 3, 1, 0))


def test_gradients_have_the_declared_shape() -> None:
    executor = classifier()
    executor.inference_and_backprop(batch())
    for parameter, gradient in executor.network.gradient("loss"):
        value, derivative = executor.network.fetch_tensors([parameter, gradient])
        assert derivative.shape == value.shape
        assert derivative.any()
    assert executor.gradient_tensor("conv1.weight").shape == (5, 5, 1, 6)


def test_parameter_without_influence() -> None:
    nodes = [
        helper.make_node("Mul", ["x", "a"], ["p"], name="mul"),
        helper.make_node("ReduceSum", ["p"], ["loss"], name="sum", keepdims=0),
        helper.make_node("Mul", ["x", "b"], ["other"], name="other"),
    ]
    model = model_of(
        nodes, {"x": ("float32", [2])}, ["loss", "other"], {"a": np.ones(2, "float32"), "b": np.ones(2, "float32")}
    )
    executor = from_model(model)
    executor.inference_and_backprop({"x": np.array([1, 2], "float32")})
    assert executor.gradient_tensor("b") is None
    gradients = executor.network.fetch_tensors([gradient for _, gradient in executor.network.gradient("loss")])
    np.testing.assert_array_equal(gradients, [[1, 2], [0, 0]])
    executor.update_parameters(lambda gradient, parameter, name: parameter - gradient)
    np.testing.assert_array_equal(executor.network.fetch_tensors(["a", "b"]), [[0, -1], [1, 1]])


def test_states_are_updated_in_training_only() -> None:
    executor = classifier("simple_cnn", (3, 8, 8))
    network = executor.network
    states = list(network.states)
    before = network.fetch_tensors(states)
    executor.inference(batch(4, (3, 8, 8)))
    for a, b in zip(before, network.fetch_tensors(states), strict=True):
        np.testing.assert_array_equal(a, b)
    network.train()
    executor.inference_and_backprop(batch(4, (3, 8, 8)))
    assert all((a != b).any() for a, b in zip(before, network.fetch_tensors(states), strict=True))


def test_constant_that_is_fed_again() -> None:
    """Constants are part of the graphs; those are made anew."""
    node = helper.make_node("Reshape", ["x", "shape"], ["y"], name="reshape")
    model = model_of([node], {"x": ("float32", [4])}, ["y"], {"shape": np.array([2, 2])})
    executor = from_model(model)
    x = {"x": np.zeros(4, "float32")}
    assert executor.inference(x)["y"].shape == (2, 2)
    executor.network.feed_tensor("shape", np.array([4, 1]))
    assert executor.inference(x)["y"].shape == (4, 1)
    np.testing.assert_array_equal(executor.network.fetch_tensors(["shape"])[0], [4, 1])


def test_update_rule() -> None:
    executor = classifier()
    network = executor.network
    executor.inference_and_backprop(batch())
    names = network.get_params()
    before, gradients = network.fetch_tensors(names), network.fetch_tensors([g for _, g in network.gradient()])
    seen = []

    def rule(gradient: tf.Tensor, parameter: tf.Tensor, name: str) -> tf.Tensor:
        assert isinstance(gradient, tf.Tensor)
        assert isinstance(parameter, tf.Tensor)
        seen.append(name)
        return parameter - 0.5 * gradient

    executor.update_parameters(rule)
    assert seen == names
    for name, old, gradient, new in zip(names, before, gradients, network.fetch_tensors(names), strict=True):
        np.testing.assert_allclose(new, old - np.float32(0.5) * gradient, rtol=1e-6, atol=1e-7, err_msg=name)


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (lambda gradient, parameter, name: None, "returned nothing for parameter 'conv1.weight'"),
        (lambda gradient, parameter, name: parameter[0], r"returned shape .* for parameter 'conv1.weight'"),
        (lambda gradient, parameter, name: tf.cast(parameter, tf.float64), "for parameter 'conv1.weight'"),
        (lambda gradient, parameter, name: "text", "for parameter 'conv1.weight'"),
    ],
)
def test_update_rule_that_is_wrong(rule: Any, message: str) -> None:
    executor = classifier()
    executor.inference_and_backprop(batch())
    with pytest.raises(TrainingError, match=message):
        executor.update_parameters(rule)


def test_outputs_survive_later_runs() -> None:
    executor = classifier()
    first = executor.inference_and_backprop(batch())
    kept = first["output"].numpy().copy()
    executor.update_parameters(lambda gradient, parameter, name: parameter - gradient)
    executor.inference(batch(3))
    np.testing.assert_array_equal(first["output"].numpy(), kept)
    np.testing.assert_array_equal(executor.network.fetch_tensors(["output"])[0].shape, (3, 10))


def test_loss_that_does_not_exist() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'loss'"):
        classifier().inference_and_backprop(batch(), "los")


def test_events() -> None:
    calls = []

    class Recorder(ExecutorEvent):
        def before_executor(self, inputs: Any) -> None:
            calls.append("before")

        def after_inference(self, outputs: Any) -> None:
            calls.append("inference")

        def after_backprop(self, outputs: Any) -> None:
            calls.append("backprop")

    executor = classifier()
    executor.events.append(Recorder())
    executor.inference(batch())
    executor.inference_and_backprop(batch())
    executor.train(batch(), "loss", lambda gradients, parameters: None)
    assert calls == ["before", "inference", "before", "backprop", "before", "backprop"]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize(("model", "shape"), [("lenet", (1, 8, 8)), ("simple_cnn", (3, 8, 8))])
def test_half_precision(dtype: str, model: str, shape: tuple[int, ...]) -> None:
    narrow, wide = classifier(model, shape, dtype=dtype), classifier(model, shape)
    inputs = batch(4, shape)
    expected = wide.inference(inputs)["output"].numpy()
    cast = {"input": inputs["input"].astype(narrow.network.inputs["input"].numpy_dtype), "label": inputs["label"]}
    received = narrow.inference(cast)["output"].numpy()
    assert received.dtype.name == dtype
    np.testing.assert_allclose(received.astype("float32"), expected, rtol=0.1, atol=0.2)
    narrow.network.train()
    narrow.inference_and_backprop(cast)
    assert all(g.dtype.name == dtype for g in narrow.network.fetch_tensors([n for _, n in narrow.network.gradient()]))
