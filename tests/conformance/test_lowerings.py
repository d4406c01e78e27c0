"""Every adapter's lowering of every operator gives the values and gradients of the library's NumPy operator."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx.helper as oh
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from deep500.core.errors import UnsupportedOperatorError
from deep500.core.registry import Registry
from deep500.frameworks import FRAMEWORKS
from deep500.networks import Network
from tests.conformance.library_cases import CASES
from tests.conformance.operator_cases import Case

LIBRARY = Registry("operator", "deep500.operators.library")

#: Constant is left out: networks hold constants as tensors, not as nodes.
NAMES = [name for name in LIBRARY.names() if name != "constant"]

#: Outputs that an adapter gives; MaxPool's Indices are given by the reference only.
OUTPUTS = {"max_pool": 1, "softmax_cross_entropy_loss": 2}

#: What an adapter says it cannot do, by framework and operator: part of the message.
UNSUPPORTED = {
    ("pytorch", "max_pool"): "the output Indices",
    ("tensorflow", "max_pool"): "Indices",
}

# Sums of up to a few hundred float64 products of size 1, in another order: 1e-13 at most; a margin of ten for the
# inverse deviations of BatchNormalization.
TOLERANCE = 1e-11


# ONNX Runtime takes ONNX as it is: it has no lowerings, and for most operators no kernels of float64. Its results and
# gradients are checked in onnx_suite, onnx_gradients and test_executors.py.
@pytest.fixture(params=[name for name in FRAMEWORKS.names() if name not in ("reference", "onnxruntime")])
def adapter(request):
    module = FRAMEWORKS.get(request.param)
    if not module.REQUIREMENT.is_installed():
        pytest.skip(f"{request.param} is not installed")
    return module


def build(op_type: str, case: Case, outputs: tuple[np.ndarray, ...], weights: list[np.ndarray | None]) -> Network:
    """Return a network of one node whose inputs are stored tensors, and a loss: the weighted sum of its outputs."""
    attributes = {
        key: onnx.numpy_helper.from_array(value) if isinstance(value, np.ndarray) else value
        for key, value in case.attributes.items()
    }
    names = ["" if x is None else f"x{i}" for i, x in enumerate(case.inputs)]
    results = [f"y{i}" for i in range(len(outputs))]
    nodes = [oh.make_node(op_type, names, results, name="node", **attributes)]
    stored = {n: x for n, x in zip(names, case.inputs, strict=True) if n}
    total = []
    for i, weight in enumerate(weights):
        if weight is not None:
            stored[f"w{i}"] = weight
            nodes += [
                oh.make_node("Mul", [f"y{i}", f"w{i}"], [f"p{i}"], name=f"mul{i}"),
                oh.make_node("ReduceSum", [f"p{i}"], [f"s{i}"], name=f"sum{i}", keepdims=0),
            ]
            total.append(f"s{i}")
    if total:
        while len(total) > 1:
            nodes.append(oh.make_node("Add", total[:2], [total[0] + total[1]], name=f"add{len(total)}"))
            total = [total[0] + total[1], *total[2:]]
        nodes.append(oh.make_node("Identity", total, ["loss"], name="loss"))
    typed = [
        oh.make_tensor_value_info(n, oh.np_dtype_to_tensor_dtype(y.dtype), y.shape)
        for n, y in zip(results, outputs, strict=True)
    ]
    if total:
        typed.append(oh.make_tensor_value_info("loss", onnx.TensorProto.DOUBLE, ()))
    initializers = [onnx.numpy_helper.from_array(value, name) for name, value in stored.items()]
    graph = oh.make_graph(nodes, "case", [], typed, initializers)
    return Network.load(
        oh.make_model(graph, opset_imports=[oh.make_opsetid("", onnx.defs.onnx_opset_version())], ir_version=11)
    )


def compare(adapter: Any, name: str, case: Case) -> None:
    if case.attributes.get("auto_pad") == "VALID" and case.attributes.get("ceil_mode"):
        # ONNX' shape inference rounds the size up here, the specification's formula does not: ONNX' checker refuses the
        # model, whatever size its output declares. The library's own test has the case.
        return
    framework = adapter.__name__.rpartition(".")[2]
    operator_class = LIBRARY.get(name)
    operator = operator_class(**case.attributes)
    outputs = operator.forward(case.inputs)[: OUTPUTS.get(name, case.outputs)]
    stream = np.random.default_rng(5)
    weights = [
        stream.uniform(-1, 1, y.shape) if y.dtype == np.float64 and i not in case.skip_outputs else None
        for i, y in enumerate(outputs)
    ]
    if name == "batch_normalization":
        weights[1:] = [None] * (len(outputs) - 1)  # The next statistics are not differentiated.
    expected = operator.backward(weights, case.inputs, outputs)
    executor = adapter.from_model(build(operator_class.__name__, case, outputs, weights))
    if case.attributes.get("training_mode"):
        executor.network.train()
    differentiated = any(w is not None for w in weights)
    try:
        results = executor.inference_and_backprop({}, "loss") if differentiated else executor.inference({})
    except UnsupportedOperatorError as error:
        if UNSUPPORTED.get((framework, name), "nothing") not in str(error):
            raise
        return
    for i, y in enumerate(outputs):
        value = executor.to_numpy(results[f"y{i}"])
        assert (value.shape, value.dtype) == (y.shape, y.dtype)
        np.testing.assert_allclose(value, y, rtol=TOLERANCE, atol=TOLERANCE)
    if not differentiated:
        return
    names = dict(executor.network.gradient("loss"))
    for i, gradient in enumerate(expected):
        if gradient is None or i in case.skip_inputs or f"x{i}" not in names:
            continue
        (value,) = executor.network.fetch_tensors([names[f"x{i}"]])
        np.testing.assert_allclose(value, gradient, rtol=TOLERANCE, atol=TOLERANCE, err_msg=f"gradient by input {i}")


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=5, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_lowering_equals_the_library(adapter, name, data):
    compare(adapter, name, data.draw(CASES[name]))


_LIMITS = (-(2**63), 2**63 - 1)

#: What generated cases have found, and seldom find.
FOUND = {
    # One element stands on the first one, not before it.
    "resize_to_one": Case(
        {
            "mode": "linear",
            "coordinate_transformation_mode": "pytorch_half_pixel",
            "exclude_outside": 1,
            "antialias": 1,
        },
        [np.array([[0.3, 0.8, 0.3, -1.3, 0.9]]), None, None, np.array([1, 1])],
    ),
    "resize_to_less_than_two": Case(
        {"mode": "linear", "coordinate_transformation_mode": "pytorch_half_pixel", "antialias": 1},
        [np.array([0.3, 0.8, 0.3, -1.3, 0.9]), None, np.array([0.3], np.float32)],
    ),
    # A start before the axis is its first entry also where the step is negative.
    "slice": Case(
        {},
        [
            np.arange(24.0).reshape(2, 3, 4),
            np.array([-1, _LIMITS[0], _LIMITS[1]]),
            np.array([_LIMITS[0], _LIMITS[0], -1]),
            np.array([2, -3, -2]),
            np.array([1, -1, -2]),
        ],
    ),
    # The centre of the result is the centre of the original, exactly.
    "resize": Case(
        {"mode": "nearest", "coordinate_transformation_mode": "half_pixel_symmetric", "nearest_mode": "floor"},
        [np.array([0.1, 0.3, 2.5]), None, np.array([2.4], np.float32)],
    ),
    # The last window lies behind the image as a whole and does not count.
    "average_pool": Case(
        {"kernel_shape": [1, 1], "strides": [3, 1], "pads": [2, 2, 1, 1], "ceil_mode": 1}, [np.ones((1, 2, 3, 4))]
    ),
    "lp_pool": Case({"kernel_shape": [1], "pads": [2, 1], "ceil_mode": 1}, [np.arange(1.0, 5).reshape(1, 1, 4)]),
    "max_pool": Case({"kernel_shape": [1], "pads": [0, 1], "ceil_mode": 1}, [np.arange(1.0, 5).reshape(1, 1, 4)]),
}


@pytest.mark.parametrize("name", FOUND)
def test_what_was_found_once_is_right(adapter, name):
    compare(adapter, name.partition("_to_")[0], FOUND[name])


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=60, deadline=None, database=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_lowering_equals_the_library_over_many_cases(adapter, name, data):
    compare(adapter, name, data.draw(CASES[name]))


def test_every_operator_has_a_lowering(adapter):
    table = __import__(f"{adapter.__name__}.lowering", fromlist=["lowerings"]).lowerings
    lowered = {op_type for _, op_type, _ in table.operators()}
    names = {LIBRARY.get(name).__name__ for name in LIBRARY.names()}
    # Constants are lifted out of the graph before any adapter sees them, and ONNX' definitions take the place of
    # operators that have one.
    expanded = {name for name in names if onnx.defs.get_schema(name).has_function}
    assert names - lowered - expanded <= {"Constant"}
