"""Every adapter's executor passes one contract."""

from __future__ import annotations

import numpy as np
import onnx
import onnx.helper as oh
import pytest
from onnx.reference import ReferenceEvaluator

from deep500.core.errors import (
    DeviceError,
    InvalidInputError,
    TrainingError,
    UnknownNameError,
    UnsupportedOperatorError,
)
from deep500.frameworks import FRAMEWORKS
from deep500.measure.tolerance import tolerance
from deep500.networks import ExecutorEvent, Network, create_model
from deep500.training.optimizer import UpdateRuleOptimizer

SHAPE = (2, 8, 8)
MODELS = {
    "mlp": {"hidden": (9, 7)},
    "lenet": {},
    "simple_cnn": {"widths": (4, 6)},
    "resnet": {"depth": 8, "width": 4},
}


#: Frameworks that have no float64 kernels of convolution and pooling: they are tested in float32.
NARROW = {"onnxruntime"}

#: Element type of the networks that a test builds; see :func:`adapter`.
DTYPE = "float64"

#: Products that the longest sum of the networks has, and layers one after the other: what rounding may do in float32.
NARROW_LIMIT = 16 * tolerance("float32", 1024).relative


@pytest.fixture(params=FRAMEWORKS.names())
def adapter(request, monkeypatch):
    """Each adapter in turn; one whose framework is not installed is reported as skipped."""
    module = FRAMEWORKS.get(request.param)
    if not module.REQUIREMENT.is_installed():
        pytest.skip(f"{request.param} is not installed")
    monkeypatch.setattr(f"{__name__}.DTYPE", "float32" if request.param in NARROW else "float64")
    return module


def limit(wide: float) -> float:
    """Return what results may be off: that many in float64, what rounding does in float32."""
    return wide if DTYPE == "float64" else NARROW_LIMIT


def make(name: str, dtype: str | None = None, loss: str = "SoftmaxCrossEntropyLoss", **arguments) -> Network:
    settings = {"classes": 5, "shape": SHAPE, "dtype": dtype or DTYPE, "seed": 3}
    network = create_model(name, **{**settings, **MODELS[name], **arguments})
    network.append_loss(loss)
    return network


def batch(size: int = 6, dtype: str | None = None) -> dict[str, np.ndarray]:
    stream = np.random.default_rng(1)
    return {
        "input": stream.standard_normal((size, *SHAPE)).astype(dtype or DTYPE),
        "label": stream.integers(0, 5, size),
    }


def single_node(op_type: str, version: int = 23, domain: str = "") -> onnx.ModelProto:
    node = oh.make_node(op_type, ["x"], ["y"], name="the_node", domain=domain)
    value = [oh.make_tensor_value_info(n, onnx.TensorProto.FLOAT, ["n", 3]) for n in "xy"]
    opsets = [oh.make_opsetid("", version)] + ([oh.make_opsetid(domain, 1)] if domain else [])
    return oh.make_model(oh.make_graph([node], "g", value[:1], value[1:]), opset_imports=opsets, ir_version=10)


class Descent(UpdateRuleOptimizer):
    def update_rule(self, grad, old_param, param_name):
        return old_param - 0.05 * grad


@pytest.mark.parametrize("name", MODELS)
def test_inference_is_what_onnx_says(adapter, name):
    network = make(name)
    inputs = batch()
    outputs = adapter.from_model(network).inference(inputs)
    expected = ReferenceEvaluator(network.to_proto()).run(None, inputs)
    for value, reference in zip(outputs.values(), expected, strict=True):
        np.testing.assert_allclose(np.asarray(value), reference, rtol=limit(1e-11), atol=limit(1e-12))
    assert list(outputs) == ["output", "loss"]


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("mode", ["train", "eval"])
def test_gradient_is_the_derivative(adapter, name, mode):
    """Along random directions, against central differences: error O(step^2) + O(eps / step), both below 1e-7.

    In float32, where differences say little: against the gradient of the reference in float64, which is checked so.
    """
    if DTYPE == "float32":
        check_against_reference(adapter, name, mode)
        return
    executor = adapter.from_model(make(name))
    getattr(executor.network, mode)()
    inputs = batch()
    executor.inference_and_backprop(inputs, "loss")
    pairs = executor.network.gradient("loss")
    assert [p for p, _ in pairs] == executor.network.get_params()
    names = [p for p, _ in pairs]
    values = dict(zip(names, executor.network.fetch_tensors(names)))
    gradients = dict(zip(names, executor.network.fetch_tensors([g for _, g in pairs])))
    assert all(gradients[n].shape == values[n].shape and gradients[n].dtype == np.float64 for n in names)
    stream = np.random.default_rng(2)
    step = 1e-5
    # One direction through all tensors at once would let two faults cancel only by chance; each tensor alone is slow.
    for _ in range(4):
        directions = {n: stream.standard_normal(v.shape) / np.sqrt(v.size) for n, v in values.items()}
        losses = []
        for sign in (1, -1):
            for n in names:
                executor.network.feed_tensor(n, values[n] + sign * step * directions[n])
            losses.append(float(executor.inference(inputs)["loss"]))
        slope = sum(np.vdot(gradients[n], directions[n]) for n in names)
        assert slope == pytest.approx((losses[0] - losses[1]) / (2 * step), rel=1e-5, abs=1e-7)


def check_against_reference(adapter, name, mode):
    network = make(name)
    wide = make(name, "float64")
    for key, value in zip(network.get_params(), network.fetch_tensors(network.get_params())):
        wide.feed_tensor(key, value.astype(np.float64))
    found = {}
    for module, source, dtype in ((adapter, network, "float32"), (FRAMEWORKS.get("reference"), wide, "float64")):
        executor = module.from_model(source)
        getattr(executor.network, mode)()
        executor.inference_and_backprop({**batch(), "input": batch()["input"].astype(dtype)}, "loss")
        pairs = executor.network.gradient("loss")
        assert [p for p, _ in pairs] == network.get_params()
        found[dtype] = dict(zip(network.get_params(), executor.network.fetch_tensors([g for _, g in pairs])))
    for key, expected in found["float64"].items():
        value = found["float32"][key]
        assert value.dtype == np.float32
        np.testing.assert_allclose(value, expected, rtol=0, atol=NARROW_LIMIT * max(1e-2, np.abs(expected).max()))


def test_training_mode_updates_statistics_as_onnx_says(adapter):
    network = make("simple_cnn")
    proto = network.to_proto()
    del proto.graph.node[2:]
    norm = proto.graph.node[1]
    norm.attribute.append(oh.make_attribute("training_mode", 1))
    norm.output.extend(["mean", "var"])
    del proto.graph.output[:]
    kind = oh.np_dtype_to_tensor_dtype(np.dtype(DTYPE))
    proto.graph.output.extend(oh.make_tensor_value_info(n, kind, None) for n in ("mean", "var"))
    inputs = batch()
    expected = ReferenceEvaluator(proto).run(None, {"input": inputs["input"]})
    executor = adapter.from_model(network)
    executor.network.train()
    executor.inference(inputs)
    states = executor.network.fetch_tensors(["norms.0.running_mean", "norms.0.running_var"])
    for value, reference in zip(states, expected, strict=True):
        np.testing.assert_allclose(value, reference, rtol=limit(1e-12), atol=limit(1e-14))


def test_one_value_a_channel_has_variance_zero(adapter):
    network = create_model("simple_cnn", classes=5, shape=(1, 1, 1), widths=(3,), dtype=DTYPE)
    network.append_loss("SoftmaxCrossEntropyLoss")
    executor = adapter.from_model(network)
    executor.network.train()
    outputs = executor.inference({"input": np.ones((1, 1, 1, 1), DTYPE), "label": np.array([2])})
    (variance,) = executor.network.fetch_tensors(["norms.0.running_var"])
    np.testing.assert_allclose(variance, float(np.float32(0.9)) * np.ones(3), rtol=limit(1e-12))
    assert np.isfinite(float(outputs["loss"]))


def test_evaluation_changes_nothing(adapter):
    executor = adapter.from_model(make("resnet"))
    before = executor.network.weights_hash()
    executor.inference(batch())
    executor.inference_and_backprop(batch())
    assert executor.network.weights_hash() == before
    executor.network.train()
    executor.inference(batch())
    assert executor.network.weights_hash() != before


def test_two_executors_share_no_tensors(adapter):
    network = make("mlp")
    first, second = adapter.from_model(network), adapter.from_model(network)
    initial = network.weights_hash()
    assert first.network.weights_hash() == second.network.weights_hash() == initial
    Descent(first).step(batch())
    assert first.network.weights_hash() != initial
    assert second.network.weights_hash() == network.weights_hash() == initial
    assert second.network.mode == network.mode == "eval"


def test_trained_weights_can_be_saved_and_loaded(adapter, tmp_path):
    executor = adapter.from_model(make("resnet"))
    Descent(executor).step(batch())
    executor.network.eval()
    executor.network.save(tmp_path / "trained.onnx")
    loaded = adapter.from_model(tmp_path / "trained.onnx")
    assert loaded.network.weights_hash() == executor.network.weights_hash()
    outputs = [np.asarray(one.inference(batch())["output"]) for one in (loaded, executor)]
    # A runtime may arrange weights that are fixed in another way than those that were trained.
    np.testing.assert_allclose(*outputs, rtol=limit(0), atol=limit(0))


def test_labels_may_be_left_out(adapter):
    executor = adapter.from_model(make("lenet"))
    inputs = batch()
    assert list(executor.inference({"input": inputs["input"]})) == ["output"]
    with pytest.raises(InvalidInputError, match=r"loss 'loss' needs an input .* label"):
        executor.inference_and_backprop({"input": inputs["input"]})


def test_any_batch_size_unless_it_is_declared(adapter):
    executor = adapter.from_model(make("lenet"))
    for size in (5, 1, 3):
        assert executor.inference(batch(size))["output"].shape == (size, 5)
    fixed = create_model("mlp", 4, classes=5, shape=SHAPE, dtype="float64")
    with pytest.raises(InvalidInputError, match=r"float64\[5, 2, 8, 8\]; accepted is float64\[4, 2, 8, 8\]"):
        adapter.from_model(fixed).inference({"input": batch(5, "float64")["input"]})


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"input": None}, InvalidInputError, "Input 'input' was not fed"),
        ({"inptu": np.zeros(3)}, UnknownNameError, "no input named 'inptu'.* Did you mean 'input'"),
        ({"input": np.zeros((6, *SHAPE), np.float32)}, InvalidInputError, "float32.*accepted is float64.*astype"),
        (
            {"input": np.zeros((6, 3, 8, 8))},
            InvalidInputError,
            r"\[6, 3, 8, 8\]; accepted is float64\[batch, 2, 8, 8\]",
        ),
        ({"input": np.zeros((6, 128))}, InvalidInputError, r"\[6, 128\]; accepted is"),
        ({"label": np.zeros(5, np.int64)}, InvalidInputError, "must agree in 'batch'; received 6 and 5"),
        ({"label": np.zeros(6, np.int32)}, InvalidInputError, "int32.*accepted is int64"),
        ({"label": np.zeros((6, 1), np.int64)}, InvalidInputError, r"\[6, 1\]; accepted is int64\[batch\]"),
        ({"input": [[1.0]]}, InvalidInputError, r"accepted is float64\[batch, 2, 8, 8\]"),
    ],
)
def test_what_is_fed_is_checked(adapter, change, error, message):
    executor = adapter.from_model(make("mlp", "float64"))
    inputs = {k: v for k, v in {**batch(dtype="float64"), **change}.items() if v is not None}
    with pytest.raises(error, match=message):
        executor.inference_and_backprop(inputs)


def test_tensors_are_fetched_and_fed_by_name(adapter):
    executor = adapter.from_model(make("lenet"))
    stream = np.random.default_rng(4)
    for name, descriptor in executor.network.parameters.items():
        value = stream.standard_normal(descriptor.shape).astype(DTYPE)
        executor.network.feed_tensor(name, value)
        (fetched,) = executor.network.fetch_tensors([name])
        np.testing.assert_array_equal(fetched, value)
        fetched += 1
        np.testing.assert_array_equal(executor.network.fetch_tensors([name])[0], value)
    outputs = executor.inference(batch())
    np.testing.assert_array_equal(executor.network.fetch_tensors(["output"])[0], np.asarray(outputs["output"]))
    with pytest.raises(UnknownNameError, match=r"Did you mean 'fc1\.weight'"):
        executor.network.fetch_tensors(["fc1.wieght"])
    with pytest.raises(UnknownNameError, match="no parameter or state named 'nothing'"):
        executor.network.feed_tensor("nothing", np.zeros(3))
    with pytest.raises(InvalidInputError, match=rf"'fc3.bias' was given as {DTYPE}\[4\]; accepted is {DTYPE}\[5\]"):
        executor.network.feed_tensor("fc3.bias", np.zeros(4, DTYPE))
    with pytest.raises(InvalidInputError, match="float16"):
        executor.network.feed_tensor("fc3.bias", np.zeros(5, np.float16))


def test_gradients_before_backpropagation_are_an_error(adapter):
    executor = adapter.from_model(make("mlp"))
    with pytest.raises(UnknownNameError, match="was not computed yet"):
        executor.network.gradient("loss")
    with pytest.raises(UnknownNameError, match=r"no output named 'lss'.* Did you mean 'loss'"):
        executor.network.gradient("lss")
    with pytest.raises(UnknownNameError, match="no output named 'lss'"):
        executor.inference_and_backprop(batch(), "lss")
    with pytest.raises(InvalidInputError, match="Only a scalar can be differentiated"):
        executor.inference_and_backprop(batch(), "output")


@pytest.mark.parametrize("result", [None, np.zeros(2)])
def test_an_update_rule_that_returns_nonsense_is_named(adapter, result):
    class Broken(UpdateRuleOptimizer):
        def update_rule(self, grad, old_param, param_name):
            return result

    with pytest.raises(TrainingError, match=r"parameter 'layers\.0\.weight'"):
        Broken(adapter.from_model(make("mlp"))).step(batch())


def test_per_tensor_updates_by_name_equal_the_update_rule(adapter):
    """The published way to write a step: fetch, update, feed."""
    rule, by_name = adapter.from_model(make("lenet")), adapter.from_model(make("lenet"))
    optimizer = Descent(rule)
    by_name.network.train()
    for _ in range(3):
        optimizer.step(batch())
        by_name.inference_and_backprop(batch(), "loss")
        for param_name, grad_name in by_name.network.gradient("loss"):
            param, grad = by_name.network.fetch_tensors([param_name, grad_name])
            by_name.network.feed_tensor(param_name, optimizer.update_rule(grad, param, param_name))
    for name in rule.network.get_params():
        np.testing.assert_allclose(
            by_name.network.fetch_tensors([name])[0],
            rule.network.fetch_tensors([name])[0],
            rtol=limit(1e-12),
            atol=limit(1e-15),
        )


def test_the_loss_may_be_the_mean_squared_error(adapter):
    network = create_model("mlp", classes=2, shape=(3,), hidden=(5,), dtype="float64")
    network.append_loss("MeanSquaredError")
    stream = np.random.default_rng(0)
    inputs = {"input": stream.standard_normal((7, 3)), "label": stream.standard_normal((7, 2))}
    optimizer = Descent(adapter.from_model(network))
    losses = [float(optimizer.step(inputs)["loss"]) for _ in range(30)]
    output = np.asarray(adapter.from_model(network).inference(inputs)["output"])
    assert losses[0] == pytest.approx(np.mean((output - inputs["label"]) ** 2), rel=1e-12)
    assert losses[-1] < 0.8 * losses[0]


@pytest.mark.parametrize("scale", [1.0, 1e4])
def test_the_loss_may_be_of_probabilities(adapter, scale):
    network = create_model("mlp", classes=4, shape=(3,), hidden=(), dtype=DTYPE, seed=2)
    network.append_loss("SoftLabelCrossEntropyLoss")
    stream = np.random.default_rng(0)
    label = stream.random((7, 4))
    label = (label / label.sum(axis=1, keepdims=True)).astype(DTYPE)
    inputs = {"input": (scale * stream.standard_normal((7, 3))).astype(DTYPE), "label": label}
    executor = adapter.from_model(network)
    outputs = executor.inference_and_backprop(inputs)
    scores = np.asarray(outputs["output"], np.float64)
    shifted = scores - scores.max(axis=1, keepdims=True)
    logarithms = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    slope = (np.exp(logarithms) * label.sum(axis=1, keepdims=True) - label) / len(label)
    assert float(outputs["loss"]) == pytest.approx(-(label * logarithms).sum(axis=1).mean(), rel=limit(1e-12))
    (bias,) = (name for name in network.get_params() if len(network.parameters[name].shape) == 1)
    (gradient,) = executor.network.fetch_tensors([dict(executor.network.gradient())[bias]])
    np.testing.assert_allclose(gradient, slope.sum(axis=0), rtol=limit(1e-9), atol=limit(1e-13))


def test_operators_without_a_lowering_are_named(adapter):
    executor = adapter.from_model(single_node("Unknown", domain="elsewhere"))
    with pytest.raises(UnsupportedOperatorError, match=r"node 'the_node' \(elsewhere::Unknown, version 1\)"):
        executor.inference({"x": np.zeros((2, 3), np.float32)})


def test_a_device_that_is_not_there_is_named(adapter):
    with pytest.raises(DeviceError, match="gpu:99"):
        adapter.from_model(make("mlp"), device="gpu:99")
    with pytest.raises(DeviceError, match="'tpu' is not a device"):
        adapter.from_model(make("mlp"), device="tpu")


def test_events_hear_of_runs(adapter):
    heard = []

    class Listener(ExecutorEvent):
        def before_executor(self, inputs):
            heard.append(("before", sorted(inputs)))

        def after_inference(self, outputs):
            heard.append(("inference", sorted(outputs)))

        def after_backprop(self, outputs):
            heard.append(("backprop", sorted(outputs)))

    executor = adapter.from_model(make("mlp"), events=[Listener()])
    executor.inference({"input": batch()["input"]})
    executor.inference_and_backprop(batch())
    assert heard == [
        ("before", ["input"]),
        ("inference", ["output"]),
        ("before", ["input", "label"]),
        ("backprop", ["loss", "output"]),
    ]


def test_inputs_are_not_changed_and_need_not_be_writable_or_contiguous(adapter):
    executor = adapter.from_model(make("lenet"))
    inputs = batch(12)
    expected = np.asarray(executor.inference({"input": inputs["input"][::-2].copy()})["output"])
    view = inputs["input"][::-2]
    view.flags.writeable = False
    copy = view.copy()
    np.testing.assert_array_equal(np.asarray(executor.inference({"input": view})["output"]), expected)
    np.testing.assert_array_equal(view, copy)


def test_an_empty_batch_gives_empty_outputs(adapter):
    executor = adapter.from_model(make("lenet"))
    assert executor.inference({"input": batch(0)["input"]})["output"].shape == (0, 5)
