from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from onnx import helper
from onnx.reference import ReferenceEvaluator

from deep500.frameworks.tensorflow import TensorFlowExecutor, from_model
from deep500.frameworks.tensorflow._layout import (
    Layout,
    channels_first_order,
    channels_last_order,
    kernel_order,
    plan_layouts,
)
from deep500.networks.creation import create_model
from deep500.networks.network import Network
from tests.unit.frameworks.tensorflow.support import check_executor_gradients, model_of, random


def operations(executor: TensorFlowExecutor) -> list[str]:
    """Return the kinds of the operations of the graphs that were traced."""
    return [operation.type for graph in executor.graphs() for operation in graph.get_operations()]


def test_orders() -> None:
    image = np.zeros((2, 3, 4, 5))
    assert image.transpose(channels_last_order(4)).shape == (2, 4, 5, 3)
    assert image.transpose(channels_last_order(4)).transpose(channels_first_order(4)).shape == image.shape
    assert image.transpose(kernel_order(4)).shape == (4, 5, 3, 2)


@pytest.mark.parametrize(
    ("model", "shape", "arguments", "transpositions"),
    [
        ("resnet", (3, 8, 8), {"depth": 8}, 1),  # of the input
        ("resnet", (1, 8, 8), {"depth": 8}, 0),  # one channel: a reshape
        ("simple_cnn", (3, 8, 8), {}, 1),
        ("lenet", (1, 8, 8), {}, 1),  # before Flatten
        ("mlp", (1, 8, 8), {}, 0),
    ],
)
def test_transpositions(model: str, shape: tuple[int, ...], arguments: dict[str, Any], transpositions: int) -> None:
    executor = from_model(create_model(model, shape=shape, **arguments))
    executor.inference({"input": random(2, *shape, dtype="float32")})
    assert operations(executor).count("Transpose") == transpositions


def test_training_adds_no_transposition_of_images() -> None:
    network = create_model("resnet", shape=(3, 8, 8), depth=8)
    network.append_loss("SoftmaxCrossEntropyLoss")
    executor = from_model(network)
    executor.network.train()
    executor.inference_and_backprop({"input": random(2, 3, 8, 8, dtype="float32"), "label": np.array([1, 2])})
    assert operations(executor).count("Transpose") == 1


def convolution_then(
    op_type: str,
    other: NDArray[Any] | None = None,
    *,
    first: bool = True,
    nodes: list[Any] | None = None,
    **attributes: Any,
) -> Any:
    """Return a model: two convolutions with one operator between, so that it is given channels last."""
    inputs = ["a"] if other is None else ["a", "b"] if first else ["b", "a"]
    chain = [
        helper.make_node("Conv", ["x", "w1"], ["a"], name="conv1", pads=[1, 1, 1, 1]),
        *(nodes or []),
        helper.make_node(op_type, inputs, ["c"], name="between", **attributes),
        helper.make_node("Conv", ["c", "w2"], ["y0"], name="conv2"),
    ]
    stored = {"w1": random(3, 2, 3, 3), "w2": random(2, 3, 1, 1, seed=1)} | ({} if other is None else {"b": other})
    return model_of(chain, {"x": ("float64", ["N", 2, 4, 5])}, ["y0"], stored)


def check(model: Any, inputs: dict[str, NDArray[Any]] | None = None) -> TensorFlowExecutor:
    inputs = inputs or {"x": random(2, 2, 4, 5)}
    executor = from_model(model)
    for (name, tensor), expected in zip(
        executor.inference(inputs).items(), ReferenceEvaluator(model).run(None, inputs), strict=True
    ):
        np.testing.assert_allclose(tensor.numpy(), expected, rtol=1e-11, atol=1e-11, err_msg=name)
    return executor


@pytest.mark.parametrize(
    "shape", [(), (1,), (5,), (4, 5), (4, 1), (3, 1, 1), (3, 4, 5), (1, 3, 1, 1), (2, 1, 4, 5), (2, 3, 4, 5)]
)
@pytest.mark.parametrize("op_type", ["Add", "Div"])
@pytest.mark.parametrize("first", [True, False])
def test_broadcasting(shape: tuple[int, ...], op_type: str, first: bool) -> None:
    other = np.abs(random(*shape)) + 1
    executor = check(convolution_then(op_type, other, first=first))
    # An operand that varies both by channel and by pixel has to be transposed itself.
    channels, *pixels = (1,) * (3 - len(shape)) + shape[-3:]
    moved = channels > 1 and max(pixels) > 1
    assert operations(executor).count("Transpose") == 2 + moved  # input and output, nothing between the convolutions


@pytest.mark.parametrize("shape", [(3, 1, 1), (5,), (4, 5), (2, 1, 4, 5), ()])
def test_gradient_of_broadcasting(shape: tuple[int, ...]) -> None:
    model = convolution_then("Mul", random(*shape))
    model.graph.node.append(helper.make_node("ReduceSum", ["y0"], ["loss"], name="sum", keepdims=0))
    model.graph.output.append(helper.make_tensor_value_info("loss", 11, []))
    check_executor_gradients(from_model(model), {"x": random(2, 2, 4, 5)})


def test_operand_of_higher_rank() -> None:
    """A five-dimensional operand: ONNX's layout, as the image's channels are not its second dimension."""
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"], name="conv"),
        helper.make_node("Add", ["a", "b"], ["y0"], name="add"),
    ]
    check(
        model_of(
            nodes, {"x": ("float64", ["N", 2, 4, 5])}, ["y0"], {"w": random(3, 2, 1, 1), "b": random(2, 1, 3, 4, 5)}
        )
    )


def test_two_layouts_meet() -> None:
    """The input itself is added to what a convolution made of it."""
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"], name="conv", pads=[1, 1, 1, 1]),
        helper.make_node("Add", ["x", "a"], ["y0"], name="add"),
    ]
    executor = check(model_of(nodes, {"x": ("float64", ["N", 2, 4, 5])}, ["y0"], {"w": random(2, 2, 3, 3)}))
    assert operations(executor).count("Transpose") == 2  # the input's is used twice


@pytest.mark.parametrize("axis", [0, 1, 2, 3, -1, -3])
@pytest.mark.parametrize("op_type", ["Softmax", "LogSoftmax", "Concat"])
def test_axis_is_renamed(op_type: str, axis: int) -> None:
    if op_type == "Concat":
        nodes = [
            helper.make_node("Conv", ["x", "w"], ["a"], name="conv"),
            helper.make_node("Concat", ["a", "x"], ["y0"], name="concat", axis=axis),
        ]
        model = model_of(nodes, {"x": ("float64", [2, 2, 4, 5])}, ["y0"], {"w": random(2, 2, 1, 1)})
        check(model)
        return
    check(convolution_then(op_type, axis=axis))


@pytest.mark.parametrize("axes", [None, [1], [2, 3], [-1], [0, 2], [1, 2, 3]])
@pytest.mark.parametrize("keepdims", [0, 1])
def test_reduced_axes_are_renamed(axes: list[int] | None, keepdims: int) -> None:
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"], name="conv"),
        helper.make_node("ReduceMean", ["a", *(["axes"] if axes else [])], ["y0"], name="mean", keepdims=keepdims),
    ]
    stored = {"w": random(3, 2, 1, 1)} | ({"axes": np.array(axes, np.int64)} if axes else {})
    executor = check(model_of(nodes, {"x": ("float64", ["N", 2, 4, 5])}, ["y0"], stored))
    assert operations(executor).count("Transpose") <= 2


def test_onnx_layout_is_given_to_all_else() -> None:
    nodes = [helper.make_node("Transpose", ["a"], ["t"], name="transpose", perm=[0, 1, 3, 2])]
    chain = [
        helper.make_node("Conv", ["x", "w"], ["a"], name="conv"),
        *nodes,
        helper.make_node("Conv", ["t", "w2"], ["y0"], name="conv2"),
    ]
    stored = {"w": random(3, 2, 1, 1), "w2": random(2, 3, 2, 2)}
    check(model_of(chain, {"x": ("float64", ["N", 2, 4, 5])}, ["y0", "a", "t"], stored))


def test_flatten_of_a_global_average() -> None:
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"], name="conv"),
        helper.make_node("GlobalAveragePool", ["a"], ["g"], name="pool"),
        helper.make_node("Flatten", ["g"], ["y0"], name="flatten"),
    ]
    executor = check(model_of(nodes, {"x": ("float64", ["N", 2, 4, 5])}, ["y0"], {"w": random(3, 2, 1, 1)}))
    assert operations(executor).count("Transpose") == 1


def test_volumes_and_sequences() -> None:
    for spatial in ((6,), (3, 4, 3)):
        nodes = [
            helper.make_node("Conv", ["x", "w"], ["a"], name="conv"),
            helper.make_node("Relu", ["a"], ["r"], name="relu"),
            helper.make_node("Add", ["r", "b"], ["s"], name="add"),
            helper.make_node("MaxPool", ["s"], ["y0"], name="pool", kernel_shape=[2] * len(spatial)),
        ]
        ones = [1] * len(spatial)
        stored = {"w": random(3, 2, *ones), "b": random(3, *ones)}
        inputs = {"x": random(2, 2, *spatial)}
        check(model_of(nodes, {"x": ("float64", ["N", 2, *spatial])}, ["y0"], stored), inputs)


def test_plan_of_a_kernel_that_is_no_parameter() -> None:
    network = Network.load(convolution_then("Relu"))
    program = network.program(frozenset(["x"]))
    plans = plan_layouts(program, ["w1"])
    assert [plan.inputs[0] for plan in plans] == [Layout.CHANNELS_LAST] * 3
    assert plans[0].inputs[1] is Layout.KERNEL


def test_kernel_with_a_second_reader() -> None:
    """Then it is held as ONNX declares it."""
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"], name="conv"),
        helper.make_node("ReduceSum", ["w"], ["s"], name="sum", keepdims=0),
        helper.make_node("Add", ["a", "s"], ["y0"], name="add"),
    ]
    model = model_of(nodes, {"x": ("float64", ["N", 2, 4, 5])}, ["y0"], {"w": random(3, 2, 3, 2)})
    assert check(model).stored_tensor("w").shape == (3, 2, 3, 2)


@pytest.mark.parametrize(
    ("op_type", "others", "attributes"),
    [
        ("Pad", [np.array([0, 0, 1, 2, 0, 0, 0, 1])], {}),
        ("Pad", [np.array([1, 2, 0, 1]), None, np.array([-1, 2])], {"mode": "reflect"}),
        ("Slice", [np.array([1, 0, 1]), np.array([2, 3, 3])], {}),
        ("Slice", [np.array([3, 1]), np.array([0, 3]), np.array([-2, 1]), np.array([-1, 1])], {}),
        ("Resize", [None, np.array([1.0, 1.0, 2.0, 1.5], np.float32)], {"mode": "linear"}),
        ("Resize", [None, None, np.array([9, 7])], {"mode": "nearest", "axes": [3, 2]}),
        ("InstanceNormalization", [random(4), random(4, seed=1)], {}),
        ("LRN", [], {"size": 2, "alpha": 0.5}),
        ("LpPool", [], {"kernel_shape": [2, 3], "p": 3, "pads": [1, 0, 0, 1]}),
        ("ConvTranspose", [random(4, 3, 2, 2)], {"strides": [2, 1]}),
        ("Clip", [np.array(0.0), np.array(6.0)], {}),
    ],
)
def test_nothing_moves_between_two_convolutions(op_type: str, others: list[Any], attributes: dict[str, Any]) -> None:
    stored = {f"i{index}": value for index, value in enumerate(others) if value is not None}
    names = ["" if value is None else f"i{index}" for index, value in enumerate(others)]
    channels = {"Slice": 3 if len(others) == 2 else 2, "ConvTranspose": 3}.get(op_type, 4)
    nodes = [
        helper.make_node("Conv", ["x", "w1"], ["a"], name="conv1"),
        helper.make_node(op_type, ["a", *names], ["c"], name="between", **attributes),
        helper.make_node("Conv", ["c", "w2"], ["y0"], name="conv2"),
    ]
    stored |= {"w1": random(4, 2, 1, 1), "w2": random(2, channels, 1, 1)}
    # As many images as channels: the reference of LRN takes the one number for the other.
    executor = check(model_of(nodes, {"x": ("float64", ["N", 2, 5, 6])}, ["y0"], stored), {"x": random(4, 2, 5, 6)})
    assert operations(executor).count("Transpose") == 2  # of the input and of the output


@pytest.mark.parametrize("axis", [1, 2, -1])
def test_parts_are_channels_last(axis: int) -> None:
    nodes = [
        helper.make_node("Conv", ["x", "w1"], ["a"], name="conv1"),
        helper.make_node("Split", ["a"], ["b", "c"], name="split", axis=axis, num_outputs=2),
        helper.make_node("Mul", ["b", "c"], ["d"], name="mul"),
        helper.make_node("MaxPool", ["d"], ["y0"], name="pool", kernel_shape=[1, 1]),
    ]
    stored = {"w1": random(4, 2, 1, 1)}
    executor = check(model_of(nodes, {"x": ("float64", ["N", 2, 4, 6])}, ["y0"], stored), {"x": random(2, 2, 4, 6)})
    assert operations(executor).count("Transpose") == 2


def test_transpositions_of_a_converted_network() -> None:
    """Keras' images and kernels have TensorFlow's layouts; a converter puts a Transpose before each convolution."""
    nodes = [
        helper.make_node("Transpose", ["x"], ["image"], name="to_first", perm=[0, 3, 1, 2]),
        helper.make_node("Transpose", ["k"], ["w"], name="kernel", perm=[3, 2, 0, 1]),
        helper.make_node("Conv", ["image", "w"], ["a"], name="conv"),
        helper.make_node("Transpose", ["a"], ["b"], name="to_last", perm=[0, 2, 3, 1]),
        helper.make_node("Transpose", ["b"], ["c"], name="to_first_again", perm=[0, 3, 1, 2]),
        helper.make_node("Relu", ["c"], ["d"], name="relu"),
        helper.make_node("Transpose", ["d"], ["y0"], name="out", perm=[0, 2, 3, 1]),
        helper.make_node("ReduceSum", ["y0"], ["loss"], name="sum", keepdims=0),
    ]
    kernel = random(2, 3, 4, 5)
    model = model_of(nodes, {"x": ("float64", ["N", 6, 7, 4])}, ["y0", "loss"], {"k": kernel})
    executor = check(model, {"x": random(2, 6, 7, 4)})
    assert "Transpose" not in operations(executor)
    np.testing.assert_array_equal(executor.fetch("k"), kernel)
    check_executor_gradients(executor, {"x": random(2, 6, 7, 4)})


@pytest.mark.parametrize("perm", [(1, 0), None, (0, 1)])
def test_chained_transpositions_of_matrices(perm: tuple[int, ...] | None) -> None:
    attributes = {} if perm is None else {"perm": perm}
    nodes = [
        helper.make_node("Transpose", ["x"], ["a"], name="first"),
        helper.make_node("Transpose", ["a"], ["b"], name="second", **attributes),
        helper.make_node("MatMul", ["b", "w"], ["y0"], name="product"),
    ]
    rows = 3 if perm == (0, 1) else 4
    check(model_of(nodes, {"x": ("float64", [3, 4])}, ["y0"], {"w": random(rows, 2)}), {"x": random(3, 4)})


def test_gradient_of_clip_at_its_bounds() -> None:
    """It is 1 there, also where an activation with another derivative computes the values."""
    nodes = [
        helper.make_node("Clip", ["w", "low", "high"], ["y0"], name="clip"),
        helper.make_node("Add", ["y0", "x"], ["sum"], name="add"),
        helper.make_node("ReduceSum", ["sum"], ["loss"], name="reduce", keepdims=0),
    ]
    stored = {"w": np.array([-1.0, 0.0, 3.0, 6.0, 7.0]), "low": np.array(0.0), "high": np.array(6.0)}
    executor = from_model(model_of(nodes, {"x": ("float64", [5])}, ["loss"], stored))
    executor.inference_and_backprop({"x": np.zeros(5)})
    np.testing.assert_array_equal(executor.fetch("w.grad"), [0, 1, 1, 1, 0])
