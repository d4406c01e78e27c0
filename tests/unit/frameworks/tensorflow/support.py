"""What the TensorFlow adapter's tests share: models of one operator, ONNX's answer, derivatives by differences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from deep500.frameworks.tensorflow import TensorFlowExecutor, from_model

OPSET = 23


def random(*shape: int, seed: int = 0, dtype: str = "float64") -> NDArray[Any]:
    """Return normally distributed numbers."""
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(dtype)


def model_of(
    nodes: Sequence[onnx.NodeProto],
    inputs: Mapping[str, tuple[Any, Sequence[Any]]],
    outputs: Sequence[str],
    initializers: Mapping[str, NDArray[Any]],
    opset: int = OPSET,
) -> onnx.ModelProto:
    """Return a model; inputs are given by dtype and shape, the types of the outputs are inferred."""
    graph = helper.make_graph(
        list(nodes),
        "test",
        [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), shape)
            for name, (dtype, shape) in inputs.items()
        ],
        [onnx.ValueInfoProto(name=name) for name in outputs],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in initializers.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=11)
    inferred = onnx.shape_inference.infer_shapes(model, strict_mode=True)
    for output in inferred.graph.output:
        if output.type.tensor_type.elem_type == TensorProto.UNDEFINED:
            raise ValueError(f"The type of {output.name} cannot be inferred.")
    return inferred


def single(
    op_type: str,
    arrays: Sequence[NDArray[Any] | None],
    *,
    fed: Sequence[int] = (0,),
    outputs: int = 1,
    symbolic: bool = True,
    opset: int = OPSET,
    **attributes: Any,
) -> tuple[onnx.ModelProto, dict[str, NDArray[Any]]]:
    """Return a model of one node and what to feed; inputs that are not fed are initializers."""
    names = [f"x{i}" if array is not None else "" for i, array in enumerate(arrays)]
    results = [f"y{i}" for i in range(outputs)]
    node = helper.make_node(op_type, names, results, name="node", **attributes)
    given = {names[i]: np.asarray(array) for i, array in enumerate(arrays) if array is not None and i in fed}
    stored = {names[i]: np.asarray(array) for i, array in enumerate(arrays) if array is not None and i not in fed}
    declared = {
        name: (array.dtype, ["N", *array.shape[1:]] if symbolic and name == "x0" and array.ndim else array.shape)
        for name, array in given.items()
    }
    return model_of([node], declared, results, stored, opset), given


def check_forward(
    op_type: str, arrays: Sequence[NDArray[Any] | None], *, tolerance: float = 1e-11, **arguments: Any
) -> None:
    """Compare a node with ONNX's reference evaluator."""
    model, given = single(op_type, arrays, **arguments)
    expected = ReferenceEvaluator(model).run(None, given)
    received = from_model(model).inference(given)
    for (name, tensor), reference in zip(received.items(), expected, strict=True):
        value = tensor.numpy()
        assert value.dtype == reference.dtype, name
        assert value.shape == reference.shape, name
        np.testing.assert_allclose(value, reference, rtol=tolerance, atol=tolerance, err_msg=name)


def weighted_sum(model: onnx.ModelProto, output: str = "y0") -> onnx.ModelProto:
    """Append the scalar ``loss``: the sum of an output times fixed random numbers, so that no gradient cancels."""
    shape = [d.dim_value for d in model.graph.output[0].type.tensor_type.shape.dim]
    graph = model.graph
    element_type = graph.output[0].type.tensor_type.elem_type
    weights = random(*shape, seed=99, dtype=helper.tensor_dtype_to_np_dtype(element_type).name)
    graph.initializer.append(numpy_helper.from_array(weights, "weights"))
    graph.node.append(helper.make_node("Mul", [output, "weights"], ["weighted"], name="weighting"))
    graph.node.append(helper.make_node("ReduceSum", ["weighted"], ["loss"], name="sum", keepdims=0))
    graph.output.append(helper.make_tensor_value_info("loss", element_type, []))
    return model


def check_gradients(
    op_type: str, arrays: Sequence[NDArray[Any] | None], *, tolerance: float = 1e-6, **arguments: Any
) -> None:
    """Compare the gradients by every floating input with central differences, in float64."""
    model, _ = single(op_type, arrays, fed=(), **arguments)
    executor = from_model(weighted_sum(model))
    check_executor_gradients(executor, {}, tolerance, skip=("weights",))


def check_executor_gradients(
    executor: TensorFlowExecutor,
    inputs: Mapping[str, Any],
    tolerance: float = 1e-6,
    *,
    loss: str = "loss",
    skip: Sequence[str] = (),
) -> None:
    """Compare the gradients of an executor's parameters with central differences."""
    network = executor.network
    executor.inference_and_backprop(inputs, loss)
    gradients = {name: network.fetch_tensors([grad])[0] for name, grad in network.gradient(loss) if name not in skip}
    assert gradients
    step = 1e-6
    for name, gradient in gradients.items():
        value = network.fetch_tensors([name])[0]
        assert gradient.shape == value.shape, name
        numerical = np.zeros_like(value)
        for index in np.ndindex(value.shape):
            results = []
            for sign in (1, -1):
                changed = value.copy()
                changed[index] += sign * step
                network.feed_tensor(name, changed)
                results.append(float(executor.inference(inputs)[loss]))
            numerical[index] = (results[0] - results[1]) / (2 * step)
        network.feed_tensor(name, value)
        np.testing.assert_allclose(gradient, numerical, rtol=tolerance, atol=tolerance, err_msg=name)
