"""Keras' layers as networks: outputs, gradients of a training step, roles after saving, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.helper as oh
import pytest

from deep500.core.errors import InvalidNetworkError, OperatorError
from deep500.frameworks import FRAMEWORKS, installed_frameworks
from deep500.networks.gradient_graph import gradient_network
from deep500.networks.network import Network

RNG = np.random.default_rng(0)

Made = tuple[Any, list[np.ndarray]]


def floats(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def whole(below: int, *shape: int) -> np.ndarray:
    return RNG.integers(0, below, shape).astype(np.int32)


@pytest.fixture(scope="module")
def keras() -> Any:
    pytest.importorskip("tensorflow")
    pytest.importorskip("tf2onnx")
    assert FRAMEWORKS.get("tensorflow").from_model  # starts TensorFlow quietly
    found = pytest.importorskip("keras")
    found.utils.set_random_seed(0)
    return found


def chain(keras: Any, given: np.ndarray, *layers: Any) -> Made:
    shape, dtype = given.shape[1:], given.dtype.name
    return keras.Sequential([keras.Input(shape, dtype=dtype), *layers]), [given]


def graph(keras: Any, given: list[np.ndarray], connect: Callable[..., Any]) -> Made:
    inputs = [keras.Input(x.shape[1:], dtype=x.dtype.name, name=f"x{i}") for i, x in enumerate(given)]
    return keras.Model(inputs, connect(*inputs)), given


def preprocessing(keras: Any) -> dict[str, Callable[[], Made]]:
    layers, images, rows = keras.layers, floats(3, 8, 8, 3), 2 * floats(3, 4)
    conv, dense = lambda: layers.Conv2D(2, 3), lambda: layers.Dense(2)

    def adapted() -> Any:
        layer = layers.Normalization()
        layer.adapt(3 * floats(20, 4) + 2)
        return layer

    settings: dict[str, Any] = {"mean": [0.4, 0.5, 0.6], "variance": [0.1, 0.2, 0.3]}
    return {
        "Normalization": lambda: chain(keras, rows, adapted(), dense()),
        "Normalization of channels": lambda: chain(keras, images, layers.Normalization(**settings), conv()),
        "Normalization inverted": lambda: chain(
            keras, rows, layers.Normalization(mean=3.0, variance=2.0, invert=True), dense()
        ),
        "Normalization in a model": lambda: chain(keras, rows, chain(keras, rows, adapted(), dense())[0], dense()),
        "Rescaling": lambda: chain(keras, images, layers.Rescaling([1.0, 2.0, 3.0], [0.0, 1.0, 2.0]), conv()),
        **{
            f"Resizing {kind}": lambda kind=kind: chain(  # type: ignore[misc]
                keras, images, layers.Resizing(11, 5, interpolation=kind), conv()
            )
            for kind in ("bilinear", "nearest", "area")
        },
        # TensorFlow reads the weights of other sizes from a table of 1,024 places, and is off by as much.
        "Resizing bicubic": lambda: chain(keras, images, layers.Resizing(16, 4, interpolation="bicubic"), conv()),
        "CenterCrop": lambda: chain(keras, images, layers.CenterCrop(5, 4), conv()),
        "CategoryEncoding": lambda: chain(
            keras, whole(5, 3, 4), layers.CategoryEncoding(5, output_mode="multi_hot"), dense()
        ),
        "Discretization": lambda: chain(
            keras, rows, layers.Discretization(bin_boundaries=[-1.0, 0.0, 1.0]), layers.Embedding(4, 3)
        ),
        "Discretization of whole numbers": lambda: chain(
            keras,
            whole(5, 3, 4),
            layers.Discretization(bin_boundaries=[1.0, 3.0], output_mode="multi_hot"),
            dense(),
        ),
    }


def sequences(keras: Any) -> dict[str, Callable[[], Made]]:
    layers, steps = keras.layers, floats(3, 5, 4)
    tokens = np.array([[1, 2, 0, 0], [3, 4, 5, 1], [2, 0, 0, 0]], np.int32)
    embedding = lambda: layers.Embedding(6, 4, mask_zero=True)  # noqa: E731
    return {
        "masked LSTM": lambda: chain(keras, tokens, embedding(), layers.LSTM(5)),
        "masked GRU": lambda: chain(keras, tokens, embedding(), layers.GRU(5)),
        "masked mean": lambda: chain(keras, tokens, embedding(), layers.Dense(3), layers.GlobalAveragePooling1D()),
        "both directions": lambda: chain(
            keras, steps, layers.Bidirectional(layers.LSTM(3, return_sequences=True)), layers.GRU(2, reset_after=False)
        ),
        "attention": lambda: graph(
            keras,
            [steps, np.tril(np.ones((3, 5, 5), bool))],
            lambda x, mask: layers.MultiHeadAttention(2, 3)(x, x, attention_mask=mask),
        ),
        "attention to tokens": lambda: graph(
            keras,
            [tokens],
            lambda x: (lambda e: layers.MultiHeadAttention(2, 3)(e, e, use_causal_mask=True))(embedding()(x)),
        ),
    }


def convolutions(keras: Any) -> dict[str, Callable[[], Made]]:
    layers, images = keras.layers, floats(2, 7, 7, 3)
    return {
        "SeparableConv2D": lambda: chain(
            keras, images, layers.SeparableConv2D(5, 3, depth_multiplier=2, padding="same")
        ),
        "Conv2DTranspose same": lambda: chain(keras, images, layers.Conv2DTranspose(4, 3, strides=2, padding="same")),
        "Conv2DTranspose with rows behind": lambda: chain(
            keras, images, layers.Conv2DTranspose(4, 3, strides=3, output_padding=2)
        ),
        "Conv3DTranspose": lambda: chain(keras, floats(2, 3, 4, 3, 2), layers.Conv3DTranspose(2, 3, strides=2)),
        "UpSampling2D": lambda: chain(keras, images, layers.UpSampling2D((2, 3)), layers.Conv2D(2, 3)),
        "UpSampling2D bilinear": lambda: chain(
            keras, images, layers.UpSampling2D(2, interpolation="bilinear"), layers.Conv2D(2, 3)
        ),
        **{
            f"BatchNormalization of axis {axis} of {len(x.shape)}": lambda axis=axis, x=x: chain(  # type: ignore[misc]
                keras, x, layers.Dense(4, use_bias=False), layers.BatchNormalization(axis=axis), layers.ReLU()
            )
            for axis, x in ((1, images), (2, images), (-1, images), (1, floats(4, 5, 3)), (-1, floats(2, 3, 3, 3, 2)))
        },
    }


def arithmetic(keras: Any) -> dict[str, Callable[[], Made]]:
    layers, ops, rows = keras.layers, keras.ops, 2 * floats(4, 5)
    rows[0, :3] = 0.0, -0.0, 0.0
    dense = lambda x: layers.Dense(5)(x)  # noqa: E731
    return {
        "where": lambda: graph(keras, [rows], lambda x: ops.where(x > 0, dense(x), ops.log(1 - ops.minimum(x, 0.5)))),
        "expm1": lambda: graph(keras, [rows], lambda x: ops.expm1(dense(x))),
        "log1p": lambda: graph(keras, [rows], lambda x: ops.log1p(ops.abs(dense(x)))),
        "celu": lambda: graph(keras, [rows], lambda x: ops.celu(dense(x))),
        "gelu": lambda: graph(keras, [rows], lambda x: layers.Activation("gelu")(dense(x))),
        "argmax": lambda: graph(keras, [rows], lambda x: dense(ops.one_hot(ops.argmax(x, axis=1), 5))),
        "a frozen BatchNormalization": lambda: chain(
            keras, rows, layers.Dense(4), layers.BatchNormalization(trainable=False), layers.Dense(2)
        ),
    }


FAMILIES = {f.__name__: f for f in (preprocessing, sequences, convolutions, arithmetic)}
NAMES = {
    "preprocessing": (
        "Normalization", "Normalization of channels", "Normalization inverted", "Normalization in a model",
        "Rescaling", "Resizing bilinear", "Resizing nearest", "Resizing bicubic", "Resizing area", "CenterCrop",
        "CategoryEncoding", "Discretization", "Discretization of whole numbers",
    ),
    "sequences": (
        "masked LSTM", "masked GRU", "masked mean", "both directions", "attention", "attention to tokens",
    ),
    "convolutions": (
        "SeparableConv2D", "Conv2DTranspose same", "Conv2DTranspose with rows behind", "Conv3DTranspose",
        "UpSampling2D", "UpSampling2D bilinear", "BatchNormalization of axis 1 of 4",
        "BatchNormalization of axis 2 of 4", "BatchNormalization of axis -1 of 4",
        "BatchNormalization of axis 1 of 3", "BatchNormalization of axis -1 of 5",
    ),
    "arithmetic": ("where", "expm1", "log1p", "celu", "gelu", "argmax", "a frozen BatchNormalization"),
}  # fmt: skip


def roles(network: Network) -> dict[str, str]:
    named = {"parameter": network.parameters, "state": network.states, "constant": network.constants}
    return {tensor: role for role, tensors in named.items() for tensor in tensors}


def settled(model: Any) -> Any:
    """Give the statistics values that are not those of the identity."""
    for weight in model.weights:
        if "moving_variance" in weight.path:
            weight.assign(np.abs(floats(*weight.shape)) + 0.5)
        elif "moving_mean" in weight.path:
            weight.assign(floats(*weight.shape))
    return model


def own_gradients(model: Any, given: Any, target: np.ndarray) -> dict[str, np.ndarray]:
    import tensorflow as tf

    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(model(given, training=True) - target))
    gradients = tape.gradient(loss, model.trainable_variables)
    return {v.path: np.asarray(tf.convert_to_tensor(g)) for v, g in zip(model.trainable_variables, gradients)}


CASES = pytest.mark.parametrize(
    ("family", "name"), [(family, name) for family, names in NAMES.items() for name in names]
)


@CASES
def test_layer_and_network_compute_the_same(keras: Any, tmp_path: Path, family: str, name: str) -> None:
    model, arrays = FAMILIES[family](keras)[name]()
    settled(model)
    expected = np.asarray(model(arrays if len(arrays) > 1 else arrays[0], training=False))
    network = Network.from_keras(model)
    assert set(network.parameters) == {w.path for w in model.trainable_weights}
    assert set(network.states) == {w.path for w in model.weights if "moving" in w.path and "frozen" not in name}
    (output,) = network.outputs
    for framework in installed_frameworks():
        executor = FRAMEWORKS.get(framework).from_model(network)
        found = np.array(executor.value_to_numpy(executor.inference(dict(zip(network.inputs, arrays)))[output]))
        np.testing.assert_allclose(found, expected, atol=1e-5 * np.abs(expected).max(), rtol=0, err_msg=framework)
    network.append_loss("MeanSquaredError", prediction=output, label="target")
    for external_data in (False, True):
        network.save(tmp_path / "model.onnx", external_data=external_data)
        assert roles(Network.load(tmp_path / "model.onnx")) == roles(network)


@pytest.mark.slow
@CASES
def test_layer_and_network_train_the_same(keras: Any, family: str, name: str) -> None:
    model, arrays = FAMILIES[family](keras)[name]()
    settled(model)
    network = Network.from_keras(model)
    (output,) = network.outputs
    given = arrays if len(arrays) > 1 else arrays[0]
    target = floats(*model(given).shape)
    network.append_loss("MeanSquaredError", prediction=output, label="target")
    network.train()
    gradients = own_gradients(model, given, target)
    states = {w.path: np.asarray(w) for w in model.weights if w.path in network.states}  # those of Keras after the step
    largest = max(np.abs(g).max() for g in gradients.values())
    for framework in installed_frameworks():
        executor = FRAMEWORKS.get(framework).from_model(network)
        executor.inference_and_backprop(dict(zip(network.inputs, [*arrays, target], strict=True)))
        pairs = executor.network.gradient("loss")
        assert {parameter for parameter, _ in pairs} == set(gradients)
        for parameter, gradient in pairs:
            (value,) = executor.network.fetch_tensors([gradient])
            limit = 1e-4 * max(np.abs(gradients[parameter]).max(), 1e-3 * largest)
            message = f"{framework}: {parameter}"
            np.testing.assert_allclose(value, gradients[parameter], atol=limit, rtol=0, err_msg=message)
        for state, expected in states.items():
            (value,) = executor.network.fetch_tensors([state])
            np.testing.assert_allclose(value, expected, rtol=1e-4, atol=1e-5, err_msg=f"{framework}: {state}")


def test_every_case_is_run(keras: Any) -> None:
    assert {family: set(make(keras)) for family, make in FAMILIES.items()} == {f: set(n) for f, n in NAMES.items()}


def test_what_is_not_chosen_does_not_matter(keras: Any) -> None:
    model, (x,) = graph(keras, [np.float32([[-1, 2, 5]])], lambda x: keras.ops.where(x > 0, x, keras.ops.log(1 - x)))
    network = Network.from_keras(model)
    for framework in installed_frameworks():
        executor = FRAMEWORKS.get(framework).from_model(network)
        (found,) = executor.inference(dict(zip(network.inputs, [x]))).values()
        np.testing.assert_allclose(executor.value_to_numpy(found), [[np.log(2), 2, 5]], rtol=1e-6)


def test_choosing_among_truth_values(keras: Any) -> None:
    x = np.float32([[-1, 0.5, 5]])
    model, _ = graph(keras, [x], lambda x: keras.ops.where(x > 0, x > 1, x < -2))
    network = Network.from_keras(model)
    for framework in installed_frameworks():
        executor = FRAMEWORKS.get(framework).from_model(network)
        (found,) = executor.inference(dict(zip(network.inputs, [x]))).values()
        assert executor.value_to_numpy(found).tolist() == [[False, False, True]]


def test_a_large_tensor_that_a_layer_holds_is_a_constant(keras: Any) -> None:
    import tensorflow as tf

    table = floats(200, 300)

    class Table(keras.layers.Layer):
        def __init__(self) -> None:
            super().__init__()
            self.table = tf.constant(table)

        def call(self, x: Any) -> Any:
            return x @ self.table

    x = floats(3, 200)
    network = Network.from_keras(keras.Sequential([keras.Input((200,)), Table(), keras.layers.Dense(2)]))
    assert [d.shape for d in network.constants.values()] == [(200, 300)]
    executor = FRAMEWORKS.get("reference").from_model(network)
    assert executor.inference(dict(zip(network.inputs, [x])))["output"].shape == (3, 2)


@pytest.mark.parametrize(
    ("make", "dtype", "message"),
    [
        (lambda layers: layers.Hashing(5), "int32", "its operation .* is TensorFlow's StringToHashBucketFast"),
        (lambda layers: layers.StringLookup(vocabulary=["a", "b"]), "string", "reads what is no tensor of numbers"),
        (lambda layers: layers.IntegerLookup(vocabulary=[1, 5]), "int64", "reads what is no tensor of numbers"),
        (lambda layers: layers.BatchNormalization(dtype="float64"), "float64", "weights of float64; accepted are"),
        (lambda layers: layers.BatchNormalization(dtype="float16"), "float16", "weights of float16; accepted are"),
    ],
)
def test_what_onnx_does_not_have_is_refused(keras: Any, make: Any, dtype: str, message: str) -> None:
    model = keras.Sequential([keras.Input((4,), dtype=dtype), make(keras.layers)], name="made")
    with pytest.raises(InvalidNetworkError, match=f"'made'.*{message}"):
        Network.from_keras(model)


def test_the_roles_of_a_network_of_gradients_are_those_of_the_network(keras: Any) -> None:
    model, _ = chain(
        keras, floats(2, 4), keras.layers.Dense(3), keras.layers.BatchNormalization(), keras.layers.Activation("gelu")
    )
    network = Network.from_keras(model)
    network.append_loss("MeanSquaredError")
    derived = gradient_network(network)
    assert set(derived.parameters) == set(network.parameters)
    assert set(derived.states) == set(network.states)


@pytest.mark.parametrize("framework", ["pytorch", "tensorflow", "reference"])
def test_a_way_to_place_points_that_does_not_exist_is_refused(framework: str) -> None:
    if framework not in installed_frameworks():
        pytest.skip(f"{framework} is not installed")
    node = oh.make_node("Resize", ["x", "", "", "sizes"], ["y"], coordinate_transformation_mode="elsewhere")
    sizes = oh.make_tensor("sizes", onnx.TensorProto.INT64, [4], [1, 1, 6, 6])
    values = [oh.make_tensor_value_info(n, onnx.TensorProto.FLOAT, [1, 1, s, s]) for n, s in (("x", 4), ("y", 6))]
    model = oh.make_model(oh.make_graph([node], "g", values[:1], values[1:], [sizes]))
    with pytest.raises(OperatorError, match="elsewhere"):
        FRAMEWORKS.get(framework).from_model(Network.load(model)).inference({"x": floats(1, 1, 4, 4)})
