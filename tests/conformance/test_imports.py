"""Modules and models of frameworks, imported: names, roles, and the same numbers under every executor."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from deep500.core.errors import InvalidNetworkError, MissingDependencyError, UnsupportedOperatorError
from deep500.frameworks import FRAMEWORKS, installed_frameworks
from deep500.networks.importing import import_network
from deep500.networks.network import Network

RNG = np.random.default_rng(0)


def floats(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def mlp(torch: Any) -> Any:
    nn = torch.nn
    return nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3)), (floats(3, 6),)


def cnn(torch: Any) -> Any:
    nn = torch.nn
    module = nn.Sequential(
        nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten(),
        nn.Linear(16, 5),
    )  # fmt: skip
    module[1].running_mean.copy_(torch.arange(4.0))
    module[1].running_var.copy_(torch.arange(1.0, 5.0))
    return module, (floats(3, 3, 8, 8),)


def encoder(torch: Any) -> Any:
    return torch.nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True), (floats(3, 5, 8),)


def lstm(torch: Any) -> Any:
    return torch.nn.LSTM(4, 6, 2, batch_first=True, bidirectional=True), (floats(3, 5, 4),)


def attention(torch: Any) -> Any:
    return torch.nn.MultiheadAttention(8, 2, batch_first=True), (floats(3, 5, 8),) * 3


def gpt_block(torch: Any) -> Any:
    nn = torch.nn

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed, self.norm = nn.Embedding(20, 8), nn.LayerNorm(8)
            self.up, self.down = nn.Linear(8, 16), nn.Linear(16, 8)
            self.head = nn.Linear(8, 20, bias=False)
            self.head.weight = self.embed.weight  # tied, as language models have them
            self.register_buffer("mask", torch.tril(torch.ones(6, 6)))

        def forward(self, tokens: Any) -> Any:
            x = self.embed(tokens)
            x = self.mask @ x
            return self.head(x + self.down(nn.functional.gelu(self.up(self.norm(x)))))

    return Block(), (RNG.integers(0, 20, (3, 6)),)


MODULES: dict[str, Callable[[Any], Any]] = {f.__name__: f for f in (mlp, cnn, encoder, lstm, attention, gpt_block)}


def Fixed(nn: Any) -> Any:  # noqa: N802
    class Fixed(nn.Module):
        def forward(self, x: Any) -> Any:
            return x.reshape(3, 2) if x.shape[0] == 2 else x

    return Fixed()


@pytest.fixture(scope="module")
def torch() -> Any:
    found = pytest.importorskip("torch")
    found.manual_seed(0)
    return found


@pytest.fixture(scope="module")
def imported(torch: Any) -> Callable[[str], Any]:
    """Return a module in evaluation mode, its example and the network, each made once."""
    made: dict[str, Any] = {}

    def get(name: str) -> Any:
        if name not in made:
            with torch.no_grad():
                module, example = MODULES[name](torch)
            module.train()
            network = Network.from_torch(module, example)
            assert all(part.training for part in module.modules())
            made[name] = module.eval(), example, network
        return made[name]

    return get


def run(framework: str, network: Network, arrays: Any) -> list[np.ndarray]:
    executor = FRAMEWORKS.get(framework).from_model(network)
    outputs = executor.inference(dict(zip(network.inputs, arrays)))
    return [np.array(executor.value_to_numpy(value)) for value in outputs.values()]


@pytest.mark.parametrize("framework", installed_frameworks())
@pytest.mark.parametrize("name", MODULES)
def test_module_and_network_compute_the_same(imported: Any, torch: Any, name: str, framework: str) -> None:
    module, example, network = imported(name)
    larger = tuple(np.concatenate([x, x[:2]]) for x in example)
    for arrays in (example, larger):
        with torch.no_grad():
            expected = module(*map(torch.from_numpy, arrays))
        flat = torch.utils._pytree.tree_leaves(expected)
        for one, other in zip(run(framework, network, arrays), flat, strict=True):
            np.testing.assert_allclose(one, other.numpy(), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("name", MODULES)
def test_tensors_have_the_names_and_roles_of_the_module(imported: Any, name: str) -> None:
    module, _, network = imported(name)
    parameters = {n: tuple(p.shape) for n, p in module.named_parameters()}

    assert {n: d.shape for n, d in network.parameters.items()} == parameters
    assert set(network.states) == {n for n, _ in module.named_buffers() if "running" in n}
    assert all(descriptor.shape[0] == "batch" for descriptor in network.inputs.values())
    assert ("mask" in network.constants) == (name == "gpt_block")
    for tensor, parameter in module.named_parameters():
        np.testing.assert_array_equal(network.fetch_tensors([tensor])[0], parameter.detach().numpy())


@pytest.mark.parametrize("framework", ["pytorch", "reference", "onnxruntime", "tensorflow"])
@pytest.mark.parametrize("name", MODULES)
def test_training_goes_on_as_in_torch(imported: Any, torch: Any, name: str, framework: str) -> None:
    if framework not in installed_frameworks():
        pytest.skip(f"{framework} is not installed")
    import copy

    module, example, network = imported(name)
    module, network = copy.deepcopy(module).train(), network.detached()
    tensors = [torch.from_numpy(x) for x in example]
    prediction = next(iter(network.outputs))
    first = torch.utils._pytree.tree_leaves(module(*tensors))[0]
    target = floats(*first.shape)
    network.append_loss("MeanSquaredError", prediction=prediction, label="target")
    adapter = FRAMEWORKS.get(framework)
    executor = adapter.from_model(network)
    executor.network.train()
    ours = adapter.GradientDescent(executor, "loss", 0.05)
    theirs = torch.optim.SGD(module.parameters(), 0.05)
    feeds = {**dict(zip(network.inputs, example)), "target": target}
    for _ in range(3):
        theirs.zero_grad()
        loss = torch.nn.functional.mse_loss(
            torch.utils._pytree.tree_leaves(module(*tensors))[0], torch.from_numpy(target)
        )
        loss.backward()
        theirs.step()
        found = ours.step(feeds)
        assert float(np.asarray(found["loss"])) == pytest.approx(loss.item(), rel=1e-4)


def test_frozen_parameters_are_constants_and_dropout_is_kept(torch: Any) -> None:
    nn = torch.nn
    module = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5), nn.Linear(4, 2))
    module[0].requires_grad_(False)
    module[2].eval()
    flags = [part.training for part in module.modules()]
    network = Network.from_torch(module, floats(1, 4))

    assert [part.training for part in module.modules()] == flags
    assert network.get_params() == ["2.weight", "2.bias"]
    assert {"0.weight", "0.bias"} <= set(network.constants)
    assert "Dropout" in [node.op_type for node in network.model.graph]
    x = floats(7, 4)
    with torch.no_grad():
        expected = module.eval()(torch.from_numpy(x)).numpy()
    np.testing.assert_allclose(run("reference", network, [x])[0], expected, atol=1e-6)
    executor = FRAMEWORKS.get("reference").from_model(network)
    executor.network.train()
    dropped = [np.array(executor.inference({"input": x})["output"]) for _ in range(2)]
    assert not np.array_equal(*dropped)


def test_network_does_not_share_memory_with_the_module(torch: Any) -> None:
    module = torch.nn.Linear(300, 300)
    network = Network.from_torch(module, floats(2, 300))
    before = network.weights_hash()
    with torch.no_grad():
        module.weight.zero_()

    assert network.weights_hash() == before


def test_arguments_names_and_fixed_batch(torch: Any) -> None:
    class Two(torch.nn.Module):
        def forward(self, x: Any, scale: Any, *, shift: Any = None) -> Any:
            return {"sum": x * scale + shift, "x": x}

    example = {"x": floats(2, 3), "scale": floats(3), "shift": floats(2, 1)}
    network = Network.from_torch(Two(), example, names={"x": "image", "output_0": "sum"})
    assert list(network.inputs) == ["image", "scale", "shift"]
    assert list(network.outputs) == ["sum", "output_1"]
    assert network.inputs["image"].shape == ("batch", 3)
    assert network.inputs["scale"].shape == (3,)
    fixed = Network.from_torch(torch.nn.Linear(3, 2), floats(4, 3), dynamic_batch=False)
    assert fixed.inputs["input"].shape == (4, 3)


@pytest.mark.parametrize(
    ("make", "example", "options", "message"),
    [
        (lambda nn: 5, 1, {}, "accepted is a torch.nn.Module"),
        (lambda nn: nn.Linear(3, 2), "x", {}, "The example was given as 'x'"),
        (lambda nn: nn.Linear(3, 2), (), {}, "The example was given as"),
        (lambda nn: nn.Linear(3, 2), floats(2, 4), {}, "Linear cannot be exported"),
        (lambda nn: nn.Linear(3, 2), {"y": floats(2, 3)}, {}, "Linear cannot be exported"),
        (lambda nn: nn.Linear(3, 2), floats(2, 3), {"names": {"z": "a"}}, "'z', which is no input or output"),
        (lambda nn: nn.Linear(3, 2), floats(2, 3), {"names": {"input": "output"}}, "one name to several"),
        (lambda nn: Fixed(nn), floats(2, 3), {}, "fixes its batch size"),
    ],
)
def test_what_cannot_be_imported_from_torch(torch: Any, make: Any, example: Any, options: Any, message: str) -> None:
    with pytest.raises(InvalidNetworkError, match=message):
        Network.from_torch(make(torch.nn), example, **options)


def test_module_that_looks_at_values_is_refused_and_left_as_it_was(torch: Any) -> None:
    class Odd(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return x if float(x.sum()) > 0 else -x

    module = Odd()
    with pytest.raises(InvalidNetworkError, match="Odd cannot be exported to ONNX"):
        Network.from_torch(module, floats(2, 3))
    assert module.training


def test_adapters_without_models() -> None:
    with pytest.raises(UnsupportedOperatorError, match="reference has no models"):
        import_network("reference", None)


@pytest.mark.parametrize(("method", "module"), [("from_torch", "torch"), ("from_keras", "tensorflow")])
def test_missing_framework(monkeypatch: pytest.MonkeyPatch, method: str, module: str) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *a: None if name == module else find(name, *a))
    with pytest.raises(MissingDependencyError, match=rf"needs the library '{module}'"):
        getattr(Network, method)(None, None)


@pytest.fixture(scope="module")
def keras() -> Any:
    pytest.importorskip("tensorflow")
    pytest.importorskip("tf2onnx")
    assert FRAMEWORKS.get("tensorflow").from_model  # starts TensorFlow quietly
    found = pytest.importorskip("keras")
    found.utils.set_random_seed(0)
    return found


def keras_models(keras: Any) -> dict[str, Any]:
    layers = keras.layers
    tokens = keras.Input((5, 8))
    attended = layers.MultiHeadAttention(2, 4)(tokens, tokens)
    a, b = keras.Input((4,), name="a"), keras.Input((4,), name="b")
    return {
        "dense": keras.Sequential(
            [
                keras.Input((6,)), layers.Dense(8, activation="relu"), layers.BatchNormalization(),
                layers.Dropout(0.5), layers.Dense(3, activation="softmax"),
            ]
        ),
        "convolution": keras.Sequential(
            [
                keras.Input((8, 8, 3)), layers.Conv2D(4, 3, padding="same"), layers.BatchNormalization(scale=False),
                layers.ReLU(), layers.MaxPooling2D(), layers.DepthwiseConv2D(3), layers.GlobalAveragePooling2D(),
                layers.Dense(2),
            ]
        ),
        "lstm": keras.Sequential(
            [keras.Input((5, 4)), layers.LSTM(6, return_sequences=True), layers.GRU(3), layers.Dense(2)]
        ),
        "attention": keras.Model(tokens, layers.LayerNormalization()(attended + tokens)),
        "two inputs": keras.Model([a, b], [layers.Dense(3)(a + b), a * b]),
    }  # fmt: skip


@pytest.mark.parametrize("name", ["dense", "convolution", "lstm", "attention", "two inputs"])
def test_keras_model_and_network_compute_the_same(keras: Any, name: str) -> None:
    model = keras_models(keras)[name]
    for weight in model.weights:
        if "seed" not in weight.path:
            weight.assign(np.abs(floats(*weight.shape)) if "variance" in weight.path else floats(*weight.shape) / 3)
    network = Network.from_keras(model)
    trained = {w.path for w in model.trainable_weights}
    assert set(network.parameters) == trained
    assert set(network.states) == {w.path for w in model.weights if "moving" in w.path}
    assert all(d.shape[0] == "batch" for d in network.inputs.values())
    arrays = [floats(3, *x.shape[1:]) for x in model.inputs]
    expected = model(arrays if len(arrays) > 1 else arrays[0], training=False)
    expected = expected if isinstance(expected, list) else [expected]
    for framework in installed_frameworks():
        for one, other in zip(run(framework, network, arrays), expected, strict=True):
            np.testing.assert_allclose(one, np.asarray(other), atol=1e-5, rtol=1e-5, err_msg=framework)
    assert Network.from_keras(model).weights_hash() == network.weights_hash()


def test_keras_model_can_be_trained_on(keras: Any) -> None:
    model = keras_models(keras)["dense"]
    network = Network.from_keras(model, names={"output": "p"})
    assert list(network.outputs) == ["p"]
    network.append_loss("MeanSquaredError", label="target")
    adapter = FRAMEWORKS.get("tensorflow")
    executor = adapter.from_model(network)
    executor.network.train()
    optimizer = adapter.GradientDescent(executor, "loss", 0.1)
    feeds = {next(iter(network.inputs)): floats(16, 6), "target": np.abs(floats(16, 3))}
    losses = [float(optimizer.step(feeds)["loss"]) for _ in range(5)]
    assert losses[-1] < losses[0]
    assert not np.allclose(executor.network.fetch_tensors(list(network.states)[:1])[0], 0)


def test_keras_model_without_declared_inputs(keras: Any) -> None:
    class Own(keras.Model):
        def __init__(self) -> None:
            super().__init__()
            self.dense = keras.layers.Dense(2)

        def call(self, x: Any) -> Any:
            return self.dense(x)

    with pytest.raises(InvalidNetworkError, match="Give an example"):
        Network.from_keras(Own())
    model, x = Own(), floats(3, 4)
    network = Network.from_keras(model, x)
    np.testing.assert_allclose(run("reference", network, [x])[0], np.asarray(model(x)), atol=1e-6)


def test_what_cannot_be_imported_from_keras(keras: Any) -> None:
    with pytest.raises(InvalidNetworkError, match=r"accepted is a keras\.Model"):
        Network.from_keras(5)

    class Host(keras.layers.Layer):
        def call(self, x: Any) -> Any:
            import tensorflow as tf

            return tf.ensure_shape(tf.numpy_function(np.sin, [x], tf.float32), x.shape)

    model = keras.Sequential([keras.Input((3,)), Host()])
    with pytest.raises(InvalidNetworkError, match="PyFunc"):
        Network.from_keras(model)
