"""Every adapter runs and differentiates every custom operator as NumPy does, and refuses what it refuses.

An adapter takes part by a harness in ``custom_harnesses.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import onnx_ir as ir
import pytest
from onnxscript import GraphBuilder

from deep500.core.errors import CompileError, OperatorError
from deep500.core.tensor_descriptor import tensordesc
from deep500.frameworks import FRAMEWORKS, frameworks_offering
from deep500.networks import Network, call_custom_op
from deep500.networks.normalise.model import IR_VERSION, OPSET_VERSION
from deep500.operators.custom import catalogue
from deep500.operators.custom.compiling import compile_custom_cppop_inline
from deep500.operators.custom.cpp_op import CppOp
from deep500.operators.custom.custom_op import CustomOp, CustomPythonOp
from tests.conformance.custom_harnesses import Arrays, Harness
from tests.unit.operators.sources import IPOWOP, IPOWOP_CLASS, cube_sum, failing, mixed


# fmt: off
class IPowOp(CustomPythonOp):  # as seed 002 prints it
    def __init__(self, power):
        super(IPowOp, self).__init__()  # noqa: UP008
        self.power = power
        assert int(power) == power # integral
    def forward(self, inputs):
        return inputs[0] ** self.power
    def backward(self, grads, fwd_inputs, fwd_outputs):
        return (grads[0] * self.power *
            (fwd_inputs[0] ** (self.power - 1)))
# fmt: on


class ScaledSplit(CustomPythonOp):
    """Two inputs and two outputs of other shapes, with parameters for the inputs."""

    output_count = 2

    def infer(self, shapes: Any, dtypes: Any) -> Any:
        (rows, columns), _ = shapes
        return [(rows, columns // 2), (rows, columns - columns // 2)], [dtypes[0]] * 2

    def forward(self, x: Any, scale: Any) -> Any:
        half = x.shape[1] // 2
        return scale * x[:, :half], x[:, half:] + scale

    def backward(self, grads: Any, fwd_inputs: Any, fwd_outputs: Any) -> Any:
        (left, right), (x, scale) = grads, fwd_inputs
        by_scale = np.sum(left * x[:, : x.shape[1] // 2]) + np.sum(right)
        return np.concatenate([scale * left, right], axis=1), np.asarray(by_scale, scale.dtype)


#: Seed 002's class as printed there, and the includes that it needs.
IPOWOP_PRINTED = f"#include <cmath>\n#include <deep500/deep500.h>\n{IPOWOP_CLASS}"


def ipowop(source: str = IPOWOP) -> CustomOp:
    """Return seed 002's class, of tensors of any shape."""
    every = [tensordesc("float64", None)]
    return compile_custom_cppop_inline("ipowop", source, every, every, additional_definitions={"DPOWER": 3})


STREAM = np.random.default_rng(0)
X, SHIFT, LABELS = STREAM.standard_normal((4, 6)), STREAM.standard_normal((4, 6)), np.array([1, 2, 3])

#: What makes an operator, and its inputs.
CASES: dict[str, tuple[Callable[[], CustomOp], list[Any]]] = {
    "seed 002, Python": (lambda: IPowOp(3), [X]),
    "seed 002, C++": (lambda: ipowop(IPOWOP_PRINTED), [X]),
    "python, two outputs": (ScaledSplit, [X, np.array(1.5)]),
    "C++": (cube_sum, [X]),
    "C++, mixed dtypes": (lambda: mixed(factors=(0.5,), offsets=(7,)), [X, LABELS, SHIFT]),
    "C++, absent input": (lambda: mixed(), [X, LABELS, None]),
    "C++ class": (ipowop, [X]),
    "scalar": (ipowop, [np.array(1.5)]),
    "empty": (ipowop, [np.ones((0, 3))]),
    "not contiguous": (cube_sum, [X.T[::2]]),
}


@pytest.fixture(params=sorted(CASES))
def case(request: pytest.FixtureRequest) -> tuple[CustomOp, list[Any]]:
    make, inputs = CASES[request.param]
    return make(), inputs


def random_gradients(op: CustomOp, inputs: Arrays) -> list[np.ndarray | None]:
    stream = np.random.default_rng(1)
    outputs = op.run_forward(inputs)
    return [stream.standard_normal(y.shape) if y.dtype.kind == "f" else None for y in outputs]


def test_forward(harness: Harness, case: tuple[CustomOp, list[Any]]) -> None:
    op, inputs = case
    outputs = harness.forward(op, inputs)

    for found, expected in zip(outputs, op.run_forward(inputs), strict=True):
        assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
        np.testing.assert_array_equal(found, expected)


def test_gradients_are_those_of_differences(harness: Harness, case: tuple[CustomOp, list[Any]]) -> None:
    op, inputs = case
    grads = random_gradients(op, inputs)
    found = harness.gradients(op, inputs, grads)

    assert len(found) == len(inputs)
    for index, (x, gradient) in enumerate(zip(inputs, found)):
        if x is None or x.dtype.kind != "f":
            assert gradient is None
            continue
        assert gradient is not None
        assert (gradient.shape, gradient.dtype) == (x.shape, x.dtype)
        direction, step = np.random.default_rng(2).standard_normal(x.shape), 1e-6
        sides = []
        for sign in (1, -1):
            moved = [*inputs[:index], x + sign * step * direction, *inputs[index + 1 :]]
            sides.append(sum(float(np.sum(g * y)) for g, y in zip(grads, op.run_forward(moved)) if g is not None))
        numerical = (sides[0] - sides[1]) / (2 * step)
        assert float(np.sum(gradient * direction)) == pytest.approx(numerical, rel=1e-6, abs=1e-7)


@pytest.mark.parametrize("unused", [0, 1])
def test_an_output_that_nobody_uses(harness: Harness, unused: int) -> None:
    for op, inputs in ((cube_sum(), [X]), (ScaledSplit(), [X, np.array(1.5)])):
        grads = random_gradients(op, inputs)
        zeros = [np.zeros_like(g) if i == unused else g for i, g in enumerate(grads)]
        missing = [None if i == unused else g for i, g in enumerate(grads)]

        for found, expected in zip(
            harness.gradients(op, inputs, missing), op.run_backward(zeros, inputs, op.run_forward(inputs)), strict=True
        ):
            np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16])
def test_other_dtypes(harness: Harness, dtype: Any) -> None:
    op, inputs = mixed(), [X.astype(dtype), LABELS, SHIFT.astype(dtype)]
    outputs = harness.forward(op, inputs)
    gradients = harness.gradients(op, inputs, [np.ones_like(inputs[0]), None])

    assert outputs[0].dtype == gradients[0].dtype == gradients[2].dtype == np.dtype(dtype)
    for found, expected in zip(outputs, op.run_forward(inputs), strict=True):
        np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(gradients[0].astype(float), 2.0)
    np.testing.assert_array_equal(gradients[2].astype(float), 1.0)


def test_an_operator_that_throws(harness: Harness) -> None:
    with pytest.raises(OperatorError, match="the pump is broken"):
        harness.forward(failing("runtime_error"), [np.ones(2, np.float32)])


class ClosedPipe(CppOp):
    """Copies; its backward throws."""

    name = "closed_pipe"
    source = """
    #include <deep500/operator.h>
    struct ClosedPipe {
        static constexpr bool backward_reads_outputs = false;
        static void forward(deep500::View<const double> x, deep500::View<double> y) {
            for (int64_t i = 0; i < x.size(); ++i) y[i] = x[i];
        }
        static void backward(deep500::View<const double>, deep500::View<const double>, deep500::View<double>) {
            throw std::runtime_error("the return pipe is closed");
        }
    };
    D500_OPERATOR(closed_pipe, ClosedPipe)
    """


def test_a_backward_that_throws(harness: Harness) -> None:
    np.testing.assert_array_equal(harness.forward(ClosedPipe(), [X])[0], X)
    with pytest.raises(OperatorError, match=r"closed_pipe.*: the return pipe is closed$"):
        harness.gradients(ClosedPipe(), [X], [X])


def test_a_python_operator_that_refuses(harness: Harness) -> None:
    class Warm(CustomPythonOp):
        def forward(self, x: Any) -> Any:
            raise OperatorError("x must be warm")

    with pytest.raises(OperatorError, match="x must be warm"):
        harness.forward(Warm(), [X])


def test_nan_is_no_error(harness: Harness) -> None:
    assert np.isnan(harness.forward(ipowop(), [np.array([np.nan, 1.0])])[0]).tolist() == [True, False]


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ([X.astype(np.int32), LABELS, None], "int32"),
        ([X, LABELS.astype(np.int32), None], "int32"),
        ([X, LABELS, SHIFT.astype(np.float32)], "float32"),
        ([X, LABELS], "accepted are 3"),
        ([None, LABELS, None], "input 0 is absent"),
    ],
)
def test_wrong_inputs(harness: Harness, inputs: list[Any], message: str) -> None:
    with pytest.raises(OperatorError, match=message):
        harness.forward(mixed(), inputs)


def test_no_backward(harness: Harness) -> None:
    x = np.ones(2, np.float32)

    with pytest.raises(OperatorError, match=r"failing.*cannot be differentiated"):
        harness.gradients(failing(""), [x], [x])


# --- what does not compile -------------------------------------------------------------------------------------------


class Misspelt(CppOp):
    name = "misspelt"
    source = """
    #include <deep500/operator.h>
    struct Misspelt {
        static void forward(deep500::View<const double> x, deep500::View<double> y) {
            y[0] = sqare(x[0]);
        }
    };
    D500_OPERATOR(misspelt, Misspelt)
    """


class Unlinked(CppOp):
    name = "unlinked"
    source = """
    #include <deep500/operator.h>
    double defined_nowhere(double);
    struct Unlinked {
        static void forward(deep500::View<const double> x, deep500::View<double> y) { y[0] = defined_nowhere(x[0]); }
    };
    D500_OPERATOR(unlinked, Unlinked)
    """


class Renamed(ClosedPipe):
    """Its source registers another name."""


def test_a_compile_error_names_the_authors_line_and_the_command(harness: Harness) -> None:
    with pytest.raises(CompileError) as caught:
        harness.custom_op(Misspelt())

    headline, *_, last = str(caught.value).splitlines()
    assert headline.startswith("The operator 'misspelt' did not compile: misspelt.cpp:5: 'sqare' was not declared")
    assert "y[0] = sqare(x[0]);" in str(caught.value)
    assert last.startswith("Command: ")
    assert "misspelt.cpp" in last
    assert caught.value.command


def test_a_function_that_no_source_defines(harness: Harness) -> None:
    with pytest.raises(CompileError, match=r"linking failed: undefined reference to .defined_nowhere\(double\)"):
        harness.custom_op(Unlinked())


def test_a_library_without_the_functions_of_the_operator(harness: Harness) -> None:
    with pytest.raises(OperatorError, match=r"has no function d5_Renamed_describe.*D500_OPERATOR\(Renamed, Class\)"):
        harness.custom_op(Renamed())


# --- in a network -----------------------------------------------------------------------------------------------------


@pytest.fixture
def network(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> Network:
    """A network of custom operators of every kind, with one parameter, after it was saved and loaded."""
    monkeypatch.setattr(catalogue, "_ENTRIES", {})
    graph = ir.Graph([], [], nodes=[], opset_imports={"": OPSET_VERSION}, name="custom")
    builder = GraphBuilder(graph)
    op = builder.op
    x = builder.input("x", ir.DataType.DOUBLE, ["batch", 6])
    stored = {"w": np.arange(1.0, 7.0) / 3, "labels": LABELS, "scale": np.array(1.5)}
    w, labels, scale = (builder.initializer(ir.tensor(value, name=name)) for name, value in stored.items())
    cubes, sums = call_custom_op(op, cube_sum(), call_custom_op(op, IPowOp(2), op.Mul(x, w)))
    scaled, _ = call_custom_op(op, mixed(scale=0.5), cubes, labels, None)
    left, right = call_custom_op(op, ScaledSplit(), scaled, scale)
    builder.add_output(op.Add(op.Sub(left, right), op.Unsqueeze(sums, op.Constant(value_ints=[1]))), "y")
    made = Network(ir.Model(graph, ir_version=IR_VERSION))
    made.append_loss("MeanSquaredError")
    made.save(tmp_path / "network.onnx")
    return Network.load(tmp_path / "network.onnx")


@pytest.mark.parametrize("framework", [name for name in frameworks_offering("custom_op") if name != "reference"])
def test_every_executor_runs_and_differentiates_custom_nodes(framework: str, network: Network) -> None:
    adapter = FRAMEWORKS.get(framework)
    if not adapter.REQUIREMENT.is_installed():
        pytest.skip(f"{framework} is not installed")
    feed = {"x": X, "label": STREAM.standard_normal((4, 3))}
    results = []
    for module in (FRAMEWORKS.get("reference"), adapter):
        executor = module.from_model(network)
        outputs = executor.inference_and_backprop(feed, "loss")
        gradients = {p: executor.network.fetch_tensors([g])[0] for p, g in executor.network.gradient("loss")}
        results.append((np.asarray(outputs["y"]), np.asarray(outputs["loss"]), gradients))
    (y, loss, gradients), (other_y, other_loss, other_gradients) = results

    assert gradients.keys() == other_gradients.keys() == {"w", "scale"}
    np.testing.assert_allclose(other_y, y, rtol=1e-12)
    np.testing.assert_allclose(other_loss, loss, rtol=1e-12)
    for name, gradient in gradients.items():
        assert np.abs(gradient).max() > 1e-3
        np.testing.assert_allclose(other_gradients[name], gradient, rtol=1e-10)


@pytest.mark.parametrize("framework", frameworks_offering("custom_op"))
@pytest.mark.parametrize(
    ("make", "dtype", "message"),
    [
        (lambda: failing("runtime_error"), np.dtype(np.float32), "the pump is broken"),
        (ClosedPipe, np.dtype(np.float64), "the return pipe is closed"),
    ],
    ids=["forward", "backward"],
)
def test_an_operator_that_throws_in_a_network(
    framework: str, make: Callable[[], CustomOp], dtype: Any, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    adapter = FRAMEWORKS.get(framework)
    if not adapter.REQUIREMENT.is_installed():
        pytest.skip(f"{framework} is not installed")
    monkeypatch.setattr(catalogue, "_ENTRIES", {})
    graph = ir.Graph([], [], nodes=[], opset_imports={"": OPSET_VERSION}, name="throwing")
    builder = GraphBuilder(graph)
    x = builder.input("x", ir.DataType.from_numpy(dtype), ["batch", 6])
    w = builder.initializer(ir.tensor(np.ones(6, dtype), name="w"))
    builder.add_output(call_custom_op(builder.op, make(), builder.op.Mul(x, w)), "y")
    network = Network(ir.Model(graph, ir_version=IR_VERSION))
    network.append_loss("MeanSquaredError")
    executor = adapter.from_model(network)

    with pytest.raises(OperatorError, match=message):
        executor.inference_and_backprop({"x": X.astype(dtype), "label": X.astype(dtype)}, "loss")
