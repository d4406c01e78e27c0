"""One C++ source, and the shapes of its outputs, are all that an author writes: an operator of every framework.

The source is ``film.cpp``, of three inputs and two outputs, with attributes, in three dtypes. Nothing in this file is
written for a framework but what its user would type.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx_ir as ir
import pytest
from onnxscript import GraphBuilder

from deep500.frameworks import FRAMEWORKS, frameworks_offering
from deep500.measure.tolerance import largest_violation, tolerance
from deep500.networks import Network, call_custom_op
from deep500.networks.normalise.model import IR_VERSION, OPSET_VERSION
from deep500.operators.custom import CppOp, catalogue, register_custom_op
from deep500.operators.validation import test_op_gradient
from tests.conformance.custom_harnesses import Harness


class Film(CppOp):
    """All that the author writes in Python."""

    name = "film"
    source = "film.cpp"

    def infer(self, shapes: Any, dtypes: Any) -> Any:
        (rows, columns), _, _ = shapes
        return [(rows, columns), (columns,)], [dtypes[0]] * 2


GAIN, POWER = 0.75, 3
OP = Film(gain=GAIN, power=POWER)
DTYPES = [np.dtype(np.float32), np.dtype(np.float64), np.dtype(ml_dtypes.bfloat16)]


def inputs(rows: int = 3, columns: int = 4, dtype: Any = np.float64, seed: int = 0) -> list[Any]:
    """Return x, scale, shift and the gradients by both outputs."""
    stream = np.random.default_rng(seed)
    shapes = ((rows, columns), (columns,), (rows,), (rows, columns), (columns,))
    return [stream.uniform(0.5, 2.0, shape).astype(dtype) for shape in shapes]


def formula(x: Any, scale: Any, shift: Any, by_y: Any, by_totals: Any) -> list[Any]:
    """Return outputs and gradients in float64. Every term of every sum is positive: no sum is less than its terms."""
    x, scale, shift, by_y, by_totals = (np.asarray(a, np.float64) for a in (x, scale, shift, by_y, by_totals))
    y = GAIN * x**POWER * scale + shift[:, None]
    incoming = np.broadcast_to(by_y + by_totals, y.shape)
    by_x = GAIN * POWER * x ** (POWER - 1) * scale * incoming
    return [y, y.sum(0), by_x, (GAIN * x**POWER * incoming).sum(0), incoming.sum(1)]


def require(framework: str) -> Any:
    adapter = FRAMEWORKS.get(framework)
    if not adapter.REQUIREMENT.is_installed():
        pytest.skip(f"{framework} is not installed")
    return adapter


# --- the same numbers everywhere --------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(3, 4), (1, 1), (0, 2), (2, 0), (70, 5)], ids=str)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_values_and_gradients(harness: Harness, dtype: Any, shape: tuple[int, int]) -> None:
    *given, by_y, by_totals = inputs(*shape, dtype)

    found = [*harness.forward(OP, given), *harness.gradients(OP, given, [by_y, by_totals])]

    roundings = max(shape) + 2 * POWER + 4  # of the longest sum, and of the products in each term
    for value, expected in zip(found, formula(*given, by_y, by_totals), strict=True):
        assert value is not None
        assert (value.dtype, value.shape) == (dtype, expected.shape)
        assert largest_violation(value, expected, tolerance(dtype, roundings)) is None


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("framework", frameworks_offering("custom_op"))
def test_it_passes_the_gradient_check(framework: str, dtype: Any) -> None:
    report = test_op_gradient(require(framework).as_operator(OP), inputs(dtype=dtype)[:3])

    assert report.passed


# --- PyTorch ----------------------------------------------------------------------------------------------------------


def torch_inputs(rows: int = 3, columns: int = 4) -> list[Any]:
    import torch

    return [torch.from_numpy(a).requires_grad_() for a in inputs(rows, columns)[:3]]


def test_pytorch_accepts_it_as_its_own() -> None:
    function = require("pytorch").custom_op(OP)
    import torch

    assert torch.autograd.gradcheck(function, torch_inputs())
    found = torch.library.opcheck(function.overload, tuple(torch_inputs()))
    assert len(found) == 4
    assert set(found.values()) == {"SUCCESS"}


def test_pytorch_compiles_it_once_for_all_sizes() -> None:
    function = require("pytorch").custom_op(OP)
    import torch

    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    compiled = torch.compile(lambda *x: function(*x), fullgraph=True, dynamic=True)
    with torch._dynamo.config.patch(error_on_recompile=True):
        for rows, columns in ((3, 4), (5, 2), (7, 9)):
            given = torch_inputs(rows, columns)
            y, totals = compiled(*given)
            gradients = torch.autograd.grad((y * 2).sum() + totals.sum(), given)
            expected = formula(*(x.detach().numpy() for x in given), 2.0, 1.0)
            for value, reference in zip((y, totals, *gradients), expected, strict=True):
                np.testing.assert_allclose(value.detach().numpy(), reference, rtol=1e-12)
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == 1


# --- TensorFlow -------------------------------------------------------------------------------------------------------


def differentiated(function: Callable[..., Any], given: list[Any], weights: list[Any]) -> list[Any]:
    """Return outputs and gradients of a function of tensors."""
    import tensorflow as tf

    with tf.GradientTape() as tape:
        tape.watch(given)
        outputs = function(*given)
    return [*outputs, *tape.gradient(outputs, given, weights)]


def test_one_graph_of_tensorflow_serves_all_sizes() -> None:
    function = require("tensorflow").custom_op(OP)
    import tensorflow as tf

    sizes = [[None, None], [None], [None], [None, None], [None]]
    run = tf.function(
        lambda x, scale, shift, *weights: differentiated(function, [x, scale, shift], list(weights)),
        input_signature=[tf.TensorSpec(size, tf.float64) for size in sizes],
    )
    for rows, columns in ((3, 4), (5, 2), (0, 3)):
        arrays = inputs(rows, columns)
        for value, reference in zip(run(*arrays), formula(*arrays), strict=True):
            np.testing.assert_allclose(value, reference, rtol=1e-12)
    assert run.experimental_get_tracing_count() == 1


#: Runs in a process that knows nothing of the operator but what the model holds.
LOADING = """
import json, sys
from deep500.frameworks.tensorflow import load_custom_operators
import tensorflow as tf

load_custom_operators()
model = tf.saved_model.load(sys.argv[1])
found = []
for arrays in json.loads(sys.argv[2]):
    *given, by_y, by_totals = (tf.constant(a, tf.float64) for a in arrays)
    with tf.GradientTape() as tape:
        tape.watch(given)
        outputs = model.run(*given)
    found.append([a.numpy().tolist() for a in (*outputs, *tape.gradient(outputs, given, [by_y, by_totals]))])
print(json.dumps({"found": found, "knows_the_author": any(name.startswith("tests") for name in sys.modules)}))
"""


def test_a_saved_model_of_tensorflow_runs_in_a_fresh_process(tmp_path: Path) -> None:
    function = require("tensorflow").custom_op(OP)
    import tensorflow as tf

    model = tf.Module()
    sizes = ([None, None], [None], [None])
    signature = [tf.TensorSpec(size, tf.float64) for size in sizes]
    model.run = tf.function(lambda *x: function(*x), input_signature=signature)
    tf.saved_model.save(model, str(tmp_path))
    everything = [inputs(rows, columns) for rows, columns in ((3, 4), (2, 7))]

    arguments = [str(tmp_path), json.dumps([[a.tolist() for a in arrays] for arrays in everything])]
    done = subprocess.run([sys.executable, "-c", LOADING, *arguments], capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout.splitlines()[-1])
    assert not answer["knows_the_author"]
    for found, arrays in zip(answer["found"], everything, strict=True):
        for value, reference in zip(found, formula(*arrays), strict=True):
            np.testing.assert_allclose(value, reference, rtol=1e-12)


# --- a node of a network ----------------------------------------------------------------------------------------------


@pytest.fixture
def saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of a network: y * totals of the operator on x * w, with parameters on both sides of it.

    Nothing is left of the operator but its file.
    """
    monkeypatch.setattr(catalogue, "_ENTRIES", {})
    graph = ir.Graph([], [], nodes=[], opset_imports={"": OPSET_VERSION}, name="film")
    builder = GraphBuilder(graph)
    op = builder.op
    x, shift = builder.input("x", ir.DataType.DOUBLE, ["rows", 4]), builder.input("shift", ir.DataType.DOUBLE, ["rows"])
    w, scale = (builder.initializer(ir.tensor(np.linspace(0.5, 2.0, 4) ** n, name=f"w{n}")) for n in (1, 2))
    y, totals = call_custom_op(op, OP, op.Mul(x, w), scale, shift)
    builder.add_output(op.Mul(y, totals), "result")
    network = Network(ir.Model(graph, ir_version=IR_VERSION))
    network.append_loss("MeanSquaredError")
    network.save(tmp_path / "film.onnx")
    monkeypatch.setattr(catalogue, "_ENTRIES", {})
    return tmp_path / "film.onnx"


@pytest.mark.parametrize("framework", frameworks_offering("custom_op"))
def test_every_executor_runs_and_differentiates_it(framework: str, saved: Path) -> None:
    register_custom_op(Film)  # what importing the author's module does
    executor = require(framework).from_model(Network.load(saved))
    weight, scale = np.linspace(0.5, 2.0, 4), np.linspace(0.5, 2.0, 4) ** 2
    x, _, shift, label, _ = inputs(rows=5)
    feed = {"x": x, "shift": shift, "label": label}

    outputs = executor.inference_and_backprop(feed, "loss")
    gradients = {p: executor.network.fetch_tensors([g])[0] for p, g in executor.network.gradient("loss")}

    y, totals, *_ = formula(x * weight, scale, shift, 0.0, 0.0)
    np.testing.assert_allclose(np.asarray(outputs["result"]), y * totals, rtol=1e-12)
    assert gradients.keys() == {"w1", "w2"}
    for name, gradient in gradients.items():
        value, step = executor.network.fetch_tensors([name])[0], 1e-6
        assert np.abs(gradient).min() > 1e-3
        for index in range(4):
            losses = []
            for sign in (1, -1):
                executor.network.feed_tensor(name, value + sign * step * np.eye(4)[index])
                losses.append(float(executor.inference(feed)["loss"]))
            executor.network.feed_tensor(name, value)
            round_off = 8 * float(np.finfo(np.float64).eps) * max(losses) / step
            assert gradient[index] == pytest.approx((losses[0] - losses[1]) / (2 * step), rel=1e-7, abs=round_off)
