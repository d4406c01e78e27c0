"""Inputs at the edge: nothing, NaN, infinity, windows and labels that do not fit. The oracle is the NumPy adapter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
import tensorflow as tf
from numpy.typing import NDArray
from onnx import helper

from deep500.core.errors import Deep500Error, DeviceError, InvalidInputError, OperatorError, UnsupportedOperatorError
from deep500.frameworks import reference
from deep500.frameworks.tensorflow import TensorFlowExecutor, from_model
from deep500.frameworks.tensorflow._errors import explain_run, explain_trace
from deep500.frameworks.tensorflow.lowering import lowerings
from tests.unit.frameworks.tensorflow.support import model_of, random, single

INF, NAN = np.inf, np.nan


def with_loss(model: onnx.ModelProto) -> onnx.ModelProto:
    """Append the scalar ``loss``, the sum of the first output."""
    element_type = model.graph.output[0].type.tensor_type.elem_type
    model.graph.node.append(helper.make_node("ReduceSum", ["y0"], ["loss"], name="sum", keepdims=0))
    model.graph.output.append(helper.make_tensor_value_info("loss", element_type, []))
    return model


def compare(model: onnx.ModelProto, given: dict[str, NDArray[Any]], tolerance: float = 1e-5) -> None:
    """Compare the outputs with those of the NumPy adapter."""
    expected = reference.from_model(model).inference(given)
    received = from_model(model).inference(given)
    for name, value in expected.items():
        assert received[name].shape == value.shape, name
        np.testing.assert_allclose(received[name].numpy(), value, tolerance, tolerance, err_msg=name)


def compare_gradients(model: onnx.ModelProto, given: dict[str, NDArray[Any]]) -> None:
    """Compare the gradients of the sum of the first output with those of the NumPy adapter."""
    with_loss(model)
    gradients = []
    for executor in (reference.from_model(model), from_model(model)):
        executor.inference_and_backprop(given)
        gradients.append({n: executor.network.fetch_tensors([g])[0] for n, g in executor.network.gradient("loss")})
    for name, gradient in gradients[0].items():
        np.testing.assert_allclose(gradients[1][name], gradient, 1e-5, 1e-5, err_msg=name)


EMPTY_BATCHES = {
    "MaxPool": ([(0, 3, 4, 4)], {"kernel_shape": [2, 2]}),
    "MaxPool padded": ([(0, 3, 5, 4)], {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 0, 0]}),
    "MaxPool of sequences": ([(0, 3, 4)], {"kernel_shape": [2]}),
    "MaxPool of volumes": ([(0, 3, 4, 4, 4)], {"kernel_shape": [2, 2, 2]}),
    "MaxPool dilated": ([(0, 3, 4, 4)], {"kernel_shape": [2, 2], "dilations": [2, 2]}),
    "AveragePool": ([(0, 3, 4, 4)], {"kernel_shape": [2, 2], "pads": [1, 1, 0, 0]}),
    "AveragePool same": ([(0, 3, 4, 4)], {"kernel_shape": [2, 2], "auto_pad": "SAME_UPPER", "strides": [2, 2]}),
    "GlobalAveragePool": ([(0, 3, 2, 2)], {}),
    "GlobalMaxPool": ([(0, 3, 2, 2)], {}),
    "Conv": ([(0, 3, 4, 4), (2, 3, 3, 3), (2,)], {}),
    "Conv grouped": ([(0, 4, 4, 4), (4, 1, 3, 3), (4,)], {"group": 4, "pads": [1, 1, 1, 1]}),
    "Conv dilated": ([(0, 3, 6), (2, 3, 3), (2,)], {"dilations": [2]}),
    "Conv of volumes": ([(0, 3, 4, 4, 4), (2, 3, 3, 3, 3), (2,)], {"strides": [2, 2, 2]}),
    "BatchNormalization": ([(0, 3, 2, 2), (3,), (3,), (3,), (3,)], {}),
    "BatchNormalization of vectors": ([(0, 3), (3,), (3,), (3,), (3,)], {}),
}


@pytest.mark.parametrize("case", EMPTY_BATCHES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_an_empty_batch(case: str, dtype: str) -> None:
    shapes, attributes = EMPTY_BATCHES[case]
    arrays = [abs(random(*shape, dtype=dtype)) for shape in shapes]
    model, given = single(case.split()[0], arrays, **attributes)
    compare(model, given)
    compare_gradients(model, given)


def test_an_executor_that_ran_an_empty_batch_runs_others() -> None:
    model, given = single("MaxPool", [random(2, 3, 4, 4, dtype="float32")], kernel_shape=[2, 2])
    executor = from_model(model)
    assert executor.inference({"x0": np.zeros((0, 3, 4, 4), np.float32)})["y0"].shape == (0, 3, 3, 3)
    assert executor.inference(given)["y0"].shape == (2, 3, 3, 3)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("fed", [(0,), (0, 1), (0, 1, 2)])
def test_a_product_over_nothing_is_the_bias(fed: Sequence[int], dtype: str) -> None:
    arrays = [random(*shape, dtype=dtype) for shape in ((3, 0), (0, 4), (4,))]
    compare(*single("Gemm", arrays, fed=fed))
    nodes = [helper.make_node("MatMul", ["a", "b"], ["p"]), helper.make_node("Add", ["p", "c"], ["y0"])]
    model = model_of(nodes, {"a": (dtype, ["M", "K"]), "b": (dtype, ["K", 4])}, ["y0"], {"c": random(4, dtype=dtype)})
    compare(model, {"a": arrays[0], "b": arrays[1]})


def test_a_product_without_rows_or_columns() -> None:
    for shapes in (((0, 5), (5, 4), (4,)), ((3, 5), (5, 0), (0,))):
        compare(*single("Gemm", [random(*shape, dtype="float32") for shape in shapes]))


@pytest.mark.parametrize("shape", [(), (1,), (4,), (1, 1), (1, 4), (3, 1), (3, 4)])
def test_what_is_added_to_a_product_broadcasts(shape: tuple[int, ...]) -> None:
    arrays = [random(*s, dtype="float32") for s in ((5, 3), (5, 4), shape)]
    compare(*single("Gemm", arrays, transA=1, symbolic=False))
    nodes = [
        helper.make_node("Transpose", ["x0"], ["t"]),
        helper.make_node("MatMul", ["t", "b"], ["p"]),
        helper.make_node("Add", ["p", "c"], ["y0"]),
    ]
    model = model_of(nodes, {"x0": ("float32", [5, 3])}, ["y0"], {"b": arrays[1], "c": arrays[2]})
    compare(model, {"x0": arrays[0]})


def test_what_is_added_to_a_product_does_not_enlarge_it() -> None:
    arrays = [random(*s, dtype="float32") for s in ((1, 3), (3, 5), (4, 5))]
    model, given = single("Gemm", arrays)
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 1
    model.graph.output[0].type.tensor_type.shape.dim[0].Clear()
    with pytest.raises(OperatorError, match="broadcast"):
        from_model(model).inference(given)


def test_what_is_added_zero_times_is_ignored() -> None:
    arrays = [random(3, 5, dtype="float32"), random(5, 4, dtype="float32"), np.full(4, NAN, np.float32)]
    model, given = single("Gemm", arrays, beta=0.0)
    compare(model, given)
    compare_gradients(model, given)


SYMBOLIC = {"x0": ("float32", ["N", 1, "H", "W"])}


@pytest.mark.parametrize("declared", [["N", 1, "H", "W"], ["N", 1, 2, 2]])
@pytest.mark.parametrize("op_type", ["MaxPool", "AveragePool", "Conv"])
def test_windows_larger_than_the_image(op_type: str, declared: list[Any]) -> None:
    kernel = {"w": random(1, 1, 3, 3, dtype="float32")} if op_type == "Conv" else {}
    node = helper.make_node(op_type, ["x0", *kernel], ["y0"], name="node", kernel_shape=[3, 3])
    try:
        executor = from_model(model_of([node], {"x0": ("float32", declared)}, ["y0"], kernel))
    except (Deep500Error, onnx.shape_inference.InferenceError):
        return
    with pytest.raises(Deep500Error, match="fit"):
        executor.inference({"x0": np.ones((1, 1, 2, 2), np.float32)})
    if declared[2] == "H":
        executor.inference({"x0": np.ones((1, 1, 3, 4), np.float32)})


ROWS = [[INF, 1, 0], [-INF, -INF, -INF], [-INF, 1, 2], [NAN, 1, 2], [1, NAN, -INF], [3e38, 3e38, -3e38], [0, 1, 2]]


@pytest.mark.parametrize("op_type", ["Softmax", "LogSoftmax"])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_softmax_of_nan_and_infinity(op_type: str, axis: int, dtype: str) -> None:
    rows = np.array(ROWS, dtype) if axis else np.ascontiguousarray(np.array(ROWS, dtype).T)
    compare(*single(op_type, [rows], axis=axis))


def test_integers_are_not_divided_by_zero() -> None:
    for dtype in ("int32", "int64", "uint8"):
        model, given = single("Div", [np.array([1, 5], dtype), np.array([1, 0], dtype)], fed=(0, 1))
        with pytest.raises(InvalidInputError, match="division by zero"):
            from_model(model).inference(given)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (tf.errors.InvalidArgumentError, InvalidInputError),
        (tf.errors.UnimplementedError, UnsupportedOperatorError),
        (tf.errors.ResourceExhaustedError, DeviceError),
        (tf.errors.InternalError, DeviceError),
        (tf.errors.AbortedError, DeviceError),
    ],
)
def test_every_error_at_run_time_is_one_of_deep500(error: Any, expected: type[Deep500Error]) -> None:
    with pytest.raises(expected, match="because of this"), explain_run("net"):
        raise error(None, None, "because of this")


def test_every_error_while_differentiating_is_one_of_deep500() -> None:
    for error in (LookupError, ValueError, TypeError):
        with pytest.raises(Deep500Error, match="because of this"), explain_trace("loss"):
            raise error("because of this")


def test_a_missing_kernel_is_no_matter_of_the_inputs(monkeypatch: pytest.MonkeyPatch) -> None:
    lowerings.operators()  # imports all of them
    monkeypatch.setitem(lowerings._table["", "MatMul"], 1, lambda node, a, b: tf.linalg.matmul(a, b))
    model, given = single("MatMul", [np.ones((2, 2), np.uint32)] * 2, fed=(0, 1))
    with pytest.raises(UnsupportedOperatorError, match="No OpKernel"):
        from_model(model).inference(given)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_the_maximum_of_minus_infinity(dtype: str) -> None:
    image = random(1, 1, 4, 4, dtype=dtype)
    image[..., 2:] = -INF
    for kernel in ([2, 2], [1, 2]):
        compare(*single("MaxPool", [image], kernel_shape=kernel, strides=[2, 2]))
    compare_gradients(*single("MaxPool", [random(1, 1, 4, 4, dtype=dtype)], fed=(), kernel_shape=[2, 2]))


def test_an_average_over_padding_alone_is_zero() -> None:
    image = random(1, 2, 2, 2, dtype="float32")
    for attributes in ({"pads": [2, 2, 2, 2]}, {"pads": [2, 2, 2, 2], "dilations": [2, 1]}):
        compare(*single("AveragePool", [image], kernel_shape=[2, 2], **attributes))


def test_no_axes_squeeze_nothing() -> None:
    compare(*single("Squeeze", [random(2, 1, 3), np.zeros(0, np.int64)]))


SCORES = np.array([[1, 2, 3], [NAN, INF, 1]], np.float32)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("labels", [[0, -1], [-1, -1]])
@pytest.mark.parametrize("weighted", [True, False])
def test_what_an_ignored_label_scores_is_ignored(reduction: str, labels: list[int], weighted: bool) -> None:
    arrays = [SCORES, np.array(labels), *([np.array([1, 2, 3], np.float32)] if weighted else [])]
    settings = {"reduction": reduction, "ignore_index": -1}
    compare(*single("SoftmaxCrossEntropyLoss", arrays, fed=(0, 1), symbolic=False, **settings))
    arrays[0] = np.array([[1, 2, 3], [4, 0, 1]], np.float32)
    model, given = single("SoftmaxCrossEntropyLoss", arrays, fed=(1,), symbolic=False, **settings)
    compare_gradients(model, given)


def test_labels_out_of_range_are_refused_with_the_range() -> None:
    for label in (3, -1):
        arrays = [random(2, 3, dtype="float32"), np.array([0, label])]
        model, given = single("SoftmaxCrossEntropyLoss", arrays, fed=(0, 1), symbolic=False)
        with pytest.raises(InvalidInputError, match=r"\[0, 3\)"):
            from_model(model).inference(given)


def test_weights_of_another_number_than_the_classes() -> None:
    arrays = [random(2, 3, dtype="float32"), np.array([0, 1]), random(5, dtype="float32")]
    model, given = single("SoftmaxCrossEntropyLoss", arrays, fed=(0, 1), symbolic=False)
    with pytest.raises(OperatorError, match="one a class"):
        from_model(model).inference(given)


def executor() -> TensorFlowExecutor:
    model, _ = single("Add", [random(2, 3, dtype="float32"), random(3, dtype="float32")])
    return from_model(model)


def test_what_is_native() -> None:
    own = executor()
    assert own.is_native(tf.zeros(3))
    assert own.is_native(tf.Variable([1.0]))
    assert not own.is_native(np.zeros(3))
    assert not own.is_native([1.0])


def test_bytes_in_another_order_never_fail_as_they_are() -> None:
    own = executor()
    swapped = np.ones((2, 3), ">f4")
    try:
        result = own.inference({"x0": swapped})
    except Deep500Error:
        pass
    else:
        np.testing.assert_allclose(result["y0"] - own.fetch("x1"), swapped, 1e-6)
    own.network.feed_tensor("x1", np.full(3, 2, ">f4"))
    np.testing.assert_array_equal(own.fetch("x1"), np.full(3, 2, np.float32))
