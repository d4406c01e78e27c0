"""Odd but valid networks and inputs run under every adapter or are refused in words; nothing crashes or escapes."""

from __future__ import annotations

import numpy as np
import onnx
import onnx.helper as oh
import pytest

import deep500 as d5
from deep500.core.errors import Deep500Error, InvalidInputError, TrainingError, UnknownNameError
from deep500.frameworks import FRAMEWORKS
from deep500.networks import create_model

FLOAT, INT32, INT64 = onnx.TensorProto.FLOAT, onnx.TensorProto.INT32, onnx.TensorProto.INT64


@pytest.fixture(params=FRAMEWORKS.names())
def adapter(request):
    module = FRAMEWORKS.get(request.param)
    if not module.REQUIREMENT.is_installed():
        pytest.skip(f"{request.param} is not installed")
    return module


def model(nodes, inputs, outputs, **stored) -> onnx.ModelProto:
    def value(name, kind, shape):
        return oh.make_tensor_value_info(name, kind, shape)

    initializers = [onnx.numpy_helper.from_array(np.asarray(v), k) for k, v in stored.items()]
    graph = oh.make_graph(nodes, "odd", [value(*v) for v in inputs], [value(*v) for v in outputs], initializers)
    return oh.make_model(graph, opset_imports=[oh.make_opsetid("", 23)], ir_version=11)


@pytest.mark.parametrize(
    "name", ["class", "lambda", "None", "self", "forward", "training", "a/b.c:0", "ä", "0", "print"]
)
def test_tensors_may_have_any_name(adapter, name):
    proto = model(
        [oh.make_node("Mul", [name, f"{name} weight"], [f"{name} out"]), oh.make_node("Relu", [f"{name} out"], ["y"])],
        [(name, FLOAT, ["n", 2])],
        [("y", FLOAT, ["n", 2])],
        **{f"{name} weight": np.float32([2.0, -1.0])},
    )
    outputs = adapter.from_model(proto).inference({name: np.ones((3, 2), np.float32)})
    np.testing.assert_array_equal(np.asarray(outputs["y"]), np.float32([[2, 0]] * 3))


def test_a_parameter_may_be_an_output(adapter):
    """What was returned does not change when the parameter does."""
    proto = model(
        [oh.make_node("Identity", ["w"], ["same"]), oh.make_node("Mul", ["x", "w"], ["y"])],
        [("x", FLOAT, [2])],
        [("same", FLOAT, [2]), ("y", FLOAT, [2])],
        w=np.float32([1, 2]),
    )
    executor = adapter.from_model(proto)
    outputs = executor.inference({"x": np.ones(2, np.float32)})
    executor.network.feed_tensor("w", np.float32([5, 6]))
    np.testing.assert_array_equal(np.asarray(outputs["same"]), [1, 2])


@pytest.mark.parametrize("operator", ["Reshape", "Transpose", "Unsqueeze"])
def test_a_view_of_a_parameter_may_be_an_output(adapter, operator):
    settings = {"Reshape": np.array([2, 1]), "Unsqueeze": np.array([0])}
    inputs = ["w", "setting"] if operator in settings else ["w"]
    shape = {"Reshape": [2, 1], "Transpose": [2, 1], "Unsqueeze": [1, 1, 2]}[operator]
    proto = model(
        [oh.make_node(operator, inputs, ["view"]), oh.make_node("Mul", ["x", "w"], ["y"])],
        [("x", FLOAT, [1, 2])],
        [("view", FLOAT, shape), ("y", FLOAT, [1, 2])],
        w=np.float32([[1, 2]]),
        **({"setting": settings[operator]} if operator in settings else {}),
    )
    executor = adapter.from_model(proto)
    outputs = executor.inference({"x": np.ones((1, 2), np.float32)})
    executor.network.feed_tensor("w", np.float32([[5, 6]]))
    np.testing.assert_array_equal(np.asarray(outputs["view"]).ravel(), [1, 2])


def test_a_parameter_may_be_named_like_a_gradient(adapter):
    proto = model(
        [
            oh.make_node("Mul", ["x", "w"], ["p"]),
            oh.make_node("Add", ["p", "w.grad"], ["q"]),
            oh.make_node("ReduceSum", ["q"], ["loss"], keepdims=0),
        ],
        [("x", FLOAT, [2])],
        [("loss", FLOAT, [])],
        **{"w": np.float32([1, 1]), "w.grad": np.float32([[7, 7]])},
    )
    executor = adapter.from_model(proto)
    executor.inference_and_backprop({"x": np.float32([3, 4])}, "loss")
    names = dict(executor.network.gradient("loss"))
    assert len(set(names.values()) | set(names)) == 4
    np.testing.assert_array_equal(executor.network.fetch_tensors([names["w"]])[0], [3, 4])
    np.testing.assert_array_equal(executor.network.fetch_tensors(["w.grad"])[0], [[7, 7]])


def test_a_loss_that_no_parameter_reaches_has_no_gradients(adapter):
    proto = model([oh.make_node("ReduceSum", ["x"], ["y"], keepdims=0)], [("x", FLOAT, [2])], [("y", FLOAT, [])])
    executor = adapter.from_model(proto)
    outputs = executor.inference_and_backprop({"x": np.float32([1, 2])}, "y")
    assert float(outputs["y"]) == 3.0
    assert executor.network.gradient("y") == []
    with pytest.raises(TrainingError, match="no parameters"):
        adapter.GradientDescent(executor, "y", 0.1)


@pytest.mark.parametrize("operator", ["GlobalAveragePool", "GlobalMaxPool"])
def test_pooling_over_no_axes_is_the_identity(adapter, operator):
    x = np.float32([[1, 2, 3], [4, 5, 6]])
    proto = model([oh.make_node(operator, ["x"], ["y"])], [("x", FLOAT, [2, 3])], [("y", FLOAT, [2, 3])])
    try:
        y = np.asarray(adapter.from_model(proto).inference({"x": x})["y"])
    except Deep500Error as error:
        # Some frameworks ask for spatial axes.
        y = x if "[N, C, D1" in str(error) or "cannot be less than 3" in str(error) else error
    np.testing.assert_array_equal(y, x)


@pytest.mark.parametrize("kind", [INT32, INT64])
def test_integer_division_never_traps(adapter, kind):
    dtype = oh.tensor_dtype_to_np_dtype(kind)
    least = np.iinfo(dtype).min
    proto = model([oh.make_node("Div", ["a", "b"], ["y"])], [("a", kind, [4]), ("b", kind, [4])], [("y", kind, [4])])
    executor = adapter.from_model(proto)
    quotient = executor.inference({"a": np.array([7, -7, 7, least], dtype), "b": np.array([2, 2, -2, -1], dtype)})["y"]
    np.testing.assert_array_equal(np.asarray(quotient), [3, -3, -3, least])
    by_zero = {"a": np.array([7, -7, 0, 1], dtype), "b": np.array([0, 1, 0, 1], dtype)}
    try:
        quotient = np.asarray(executor.inference(by_zero)["y"])
    except InvalidInputError:
        return
    np.testing.assert_array_equal(quotient, [0, -7, 0, 1])


def test_a_label_that_is_no_class_is_refused(adapter):
    network = create_model("mlp", classes=3, shape=(2,), hidden=(4,))
    network.append_loss("SoftmaxCrossEntropyLoss")
    executor = adapter.from_model(network)
    with pytest.raises(Deep500Error):
        executor.inference_and_backprop({"input": np.ones((2, 2), np.float32), "label": np.array([0, 3])})


def test_gemm_without_weight_for_c_does_not_read_it(adapter):
    proto = model(
        [oh.make_node("Gemm", ["a", "b", "c"], ["y"], beta=0.0)],
        [("a", FLOAT, [1, 2])],
        [("y", FLOAT, [1, 2])],
        b=np.eye(2, dtype=np.float32),
        c=np.float32([np.nan, 1]),
    )
    y = adapter.from_model(proto).inference({"a": np.float32([[3, 4]])})["y"]
    np.testing.assert_array_equal(np.asarray(y), [[3, 4]])


def test_names_that_batch_normalisation_makes_do_not_collide(adapter):
    proto = model(
        [
            oh.make_node("BatchNormalization", ["x", "s", "b", "m", "v"], ["y"]),
            oh.make_node("Relu", ["x"], ["y.running_mean"]),
            oh.make_node("Add", ["y", "y.running_mean"], ["z"]),
        ],
        [("x", FLOAT, [4, 3])],
        [("z", FLOAT, [4, 3])],
        **{name: np.ones(3, np.float32) for name in "sbmv"},
    )
    executor = adapter.from_model(proto)
    executor.network.train()
    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    assert executor.inference({"x": x})["z"].shape == (4, 3)
    (mean,) = executor.network.fetch_tensors(["m"])
    np.testing.assert_allclose(mean, 0.9 + 0.1 * x.mean(0), rtol=1e-5)


def test_big_endian_arrays_are_taken(adapter):
    proto = model([oh.make_node("Relu", ["x"], ["y"])], [("x", FLOAT, [2])], [("y", FLOAT, [2])])
    y = adapter.from_model(proto).inference({"x": np.array([1, 2], ">f4")})["y"]
    np.testing.assert_array_equal(np.asarray(y), [1, 2])


@pytest.mark.parametrize("names", [[3], None, [["w"]], 5])
def test_names_that_are_no_texts_are_refused(adapter, names):
    executor = adapter.from_model(create_model("mlp", classes=3, shape=(2,), hidden=(4,)))
    with pytest.raises(InvalidInputError, match="takes a list of names"):
        executor.network.fetch_tensors(names)
    with pytest.raises(UnknownNameError):
        executor.network.gradient(names)
    with pytest.raises(InvalidInputError, match="ExecutorEvent"):
        adapter.from_model(create_model("mlp"), events=[names])


@pytest.mark.parametrize("rate", ["a", None, -1, float("nan"), float("inf"), True])
def test_learning_rates_are_checked(adapter, rate):
    network = create_model("mlp", classes=3, shape=(2,), hidden=(4,))
    network.append_loss("SoftmaxCrossEntropyLoss")
    for kind in (adapter.GradientDescent, adapter.MomentumOptimizer, adapter.AdamOptimizer):
        with pytest.raises(TrainingError, match="learning_rate was given as"):
            kind(adapter.from_model(network), "loss", rate)


def test_a_network_is_not_saved_over_a_device(adapter, tmp_path):
    executor = adapter.from_model(create_model("mlp", classes=3, shape=(2,), hidden=(4,)))
    with pytest.raises(Deep500Error, match="no regular file"):
        executor.network.save(tmp_path)
    (tmp_path / "link.onnx").symlink_to(tmp_path / "real.onnx")
    executor.network.save(tmp_path / "link.onnx")
    assert (tmp_path / "link.onnx").is_symlink()
    assert (tmp_path / "real.onnx").is_file()


def test_class_weights_are_not_trained_and_no_label_is_ignored_unasked(adapter):
    proto = model(
        [
            oh.make_node("Mul", ["x", "w"], ["scores"]),
            oh.make_node("SoftmaxCrossEntropyLoss", ["scores", "label", "class_weights"], ["loss"]),
        ],
        [("x", FLOAT, [2, 3]), ("label", INT64, [2])],
        [("loss", FLOAT, [])],
        w=np.float32(1.5) * np.ones(3, np.float32),
        class_weights=np.float32([1, 2, 3]),
    )
    executor = adapter.from_model(proto)
    assert executor.network.get_params() == ["w"]
    inputs = {"x": np.eye(2, 3, dtype=np.float32), "label": np.array([0, -100])}
    with pytest.raises(Deep500Error):
        executor.inference(inputs)


def test_gradients_of_two_parameters_are_two_arrays(adapter):
    proto = model(
        [
            oh.make_node("Add", ["x", "a"], ["s"]),
            oh.make_node("Add", ["s", "b"], ["t"]),
            oh.make_node("ReduceSum", ["t"], ["loss"], keepdims=0),
        ],
        [("x", FLOAT, [2])],
        [("loss", FLOAT, [])],
        a=np.zeros(2, np.float32),
        b=np.zeros(2, np.float32),
    )
    executor = adapter.from_model(proto)

    def half_in_place(gradient):
        gradient *= 0.5  # in place where the framework's tensors can be changed
        return gradient

    optimizer = d5.GradientDescent(executor, "loss", 1.0, gradient_modifier=half_in_place)
    optimizer.step({"x": np.ones(2, np.float32)})
    for value in executor.network.fetch_tensors(["a", "b"]):
        np.testing.assert_allclose(value, [-0.5, -0.5])


@pytest.mark.parametrize("changed", [None, 0.0, "text"])
def test_what_a_gradient_modifier_returns_is_checked(adapter, changed):
    network = create_model("mlp", classes=3, shape=(2,), hidden=(4,))
    network.append_loss("SoftmaxCrossEntropyLoss")
    inputs = {"input": np.ones((2, 2), np.float32), "label": np.array([0, 1])}
    for kind in (adapter.GradientDescent, d5.GradientDescent):
        optimizer = kind(adapter.from_model(network), "loss", 0.1, gradient_modifier=lambda gradient: changed)
        with pytest.raises(TrainingError, match=r"layers\.\d\.(weight|bias)"):
            optimizer.step(inputs)
