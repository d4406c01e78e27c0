from __future__ import annotations

import contextlib
import inspect
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnxscript import OpBuilder, nn

from deep500.core.errors import Deep500Error, InvalidInputError, UnknownNameError
from deep500.core.tensor_descriptor import TensorDescriptor
from deep500.networks.creation import MODELS, create_model
from deep500.networks.layers import InitializedParameter, ModelInput, zeros
from tests.unit.networks.support import evaluate

# What seed 0 gives, whatever the machine, process or framework. A change breaks the reproduction of published runs.
GOLDEN = {
    "lenet": "992c34583564488a5cdc2811be47f70cf053a397085c97c0b86d3aceff93b7ac",
    "mlp": "40e2c15a54e8bdfe0799ca77999d5b812a853d02e780c7388ce34d2712ef9b50",
    "resnet": "44e9109ab64892b1a7b583e350e1f89a1a7ddfc25413630aafedafc42d556335",
    "simple_cnn": "a4cfafb937b488174de76185c0888176c2e8f442d0f4f93534b65d69d21bac59",
}
GOLDEN_DTYPES = {
    "float16": "45e6b5c1397992908b4f93939ef80ed3e16f85291bf45fb4c680c870499361d9",
    "bfloat16": "8803f28b1f37f9d789fd8dd0f0b807b31762b6cee27747f9c6740046285e320c",
    "float64": "4700da6047484725036617470d910ef7650c464a55e75d9c3d8fc1be9cc7c021",
}
SMALL: dict[str, dict[str, Any]] = {"resnet": {"depth": 8, "width": 4}, "simple_cnn": {"widths": (4, 8)}}
MODEL_NAMES = ["lenet", "mlp", "resnet", "simple_cnn"]


def test_models_are_found() -> None:
    assert set(MODELS.names()) >= set(MODEL_NAMES)


@pytest.mark.parametrize("name", MODEL_NAMES)
def test_golden_weights(name: str) -> None:
    assert create_model(name).weights_hash() == GOLDEN[name]


@pytest.mark.parametrize("dtype", GOLDEN_DTYPES)
def test_golden_weights_of_other_dtypes(dtype: str) -> None:
    assert create_model("lenet", dtype=dtype).weights_hash() == GOLDEN_DTYPES[dtype]


@pytest.mark.parametrize("name", MODEL_NAMES)
def test_weights_depend_on_the_seed_and_not_on_the_batch(name: str) -> None:
    reference = create_model(name, **SMALL.get(name, {}))

    assert create_model(name, seed=1, **SMALL.get(name, {})).weights_hash() != reference.weights_hash()
    assert create_model(name, 7, seed=0, **SMALL.get(name, {})).weights_hash() == reference.weights_hash()


@pytest.mark.parametrize("name", MODEL_NAMES)
@pytest.mark.parametrize("dtype", ["float16", "float32", "bfloat16"])
def test_weights_are_those_of_float64_rounded(name: str, dtype: str) -> None:
    wide = create_model(name, dtype="float64", **SMALL.get(name, {}))
    narrow = create_model(name, dtype=dtype, **SMALL.get(name, {}))

    for parameter in narrow.get_params():
        (value,), (exact,) = narrow.fetch_tensors([parameter]), wide.fetch_tensors([parameter])
        assert value.dtype.name == dtype
        assert exact.dtype == np.float64
        np.testing.assert_array_equal(value, exact.astype(value.dtype))


def test_a_layer_more_changes_no_other_layer() -> None:
    shallow, deep = (create_model("mlp", shape=(6,), hidden=hidden) for hidden in ((8, 8), (8, 8, 8)))

    for parameter in ("layers.0.weight", "layers.1.weight"):
        np.testing.assert_array_equal(shallow.fetch_tensors([parameter]), deep.fetch_tensors([parameter]))


@pytest.mark.parametrize(
    ("model", "parameter", "fan_in", "gain_squared"),
    [
        ("mlp", "layers.0.weight", 784, 2.0),
        ("lenet", "fc1.weight", 784, 2.0),
        ("lenet", "fc2.weight", 120, 2.0),
        ("resnet", "blocks.8.conv2.weight", 64 * 9, 2.0),
        ("simple_cnn", "convolutions.2.weight", 32 * 9, 2.0),
        ("resnet", "classifier.weight", 64, 1.0),
    ],
)
def test_weights_have_the_scale_of_he(model: str, parameter: str, fan_in: int, gain_squared: float) -> None:
    (weights,) = create_model(model, seed=3).fetch_tensors([parameter])
    count = weights.size
    variance = gain_squared / fan_in

    # Six standard deviations of mean and variance of as many normal numbers.
    assert abs(weights.mean()) < 6 * np.sqrt(variance / count)
    assert abs(weights.var() / variance - 1) < 6 * np.sqrt(2 / count)


@pytest.mark.parametrize("name", MODEL_NAMES)
@pytest.mark.parametrize("batch_size", [None, "N", 3])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_model_runs_in_onnx(name: str, batch_size: Any, dtype: str) -> None:
    network = create_model(name, batch_size, classes=5, shape=(2, 8, 9), dtype=dtype, **SMALL.get(name, {}))
    batch = "batch" if batch_size is None else batch_size

    onnx.checker.check_model(network.to_proto(), full_check=True)
    assert network.name == name
    assert network.mode == "eval"
    assert network.inputs == {"input": TensorDescriptor(dtype, (batch, 2, 8, 9))}
    assert network.outputs == {"output": TensorDescriptor(dtype, (batch, 5))}
    images = np.random.default_rng(0).standard_normal((3, 2, 8, 9)).astype(dtype)
    (output,) = evaluate(network, input=images).values()
    assert output.shape == (3, 5)
    assert output.dtype == dtype
    assert np.isfinite(output).all()
    assert np.ptp(output) > 0


@pytest.mark.parametrize("name", MODEL_NAMES)
@pytest.mark.parametrize("loss", ["SoftmaxCrossEntropyLoss", "MeanSquaredError"])
def test_model_with_every_loss_runs_in_onnx(name: str, loss: str) -> None:
    network = create_model(name, classes=4, shape=(1, 8, 8), **SMALL.get(name, {}))
    network.append_loss(loss)
    generator = np.random.default_rng(0)
    images = generator.standard_normal((6, 1, 8, 8)).astype(np.float32)
    classes = generator.integers(0, 4, 6)
    label = classes if loss.startswith("Softmax") else generator.standard_normal((6, 4)).astype(np.float32)

    onnx.checker.check_model(network.to_proto(), full_check=True)
    outputs = evaluate(network, input=images, label=label)

    scores = outputs["output"].astype(np.float64)
    if loss.startswith("Softmax"):
        shifted = scores - scores.max(axis=1, keepdims=True)
        logarithms = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
        expected = -logarithms[np.arange(6), classes].mean()
    else:
        expected = ((scores - label) ** 2).mean()
    assert outputs["loss"].shape == ()
    np.testing.assert_allclose(outputs["loss"], expected, rtol=1e-5)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"classes": 0}, "classes was given as 0"),
        ({"classes": 2.0}, "classes was given as 2.0"),
        ({"classes": True}, "classes was given as True"),
        ({"shape": ()}, "shape was given as"),
        ({"shape": (1, 0, 8)}, "shape was given as"),
        ({"shape": 28}, "shape was given as 28"),
        ({"shape": (1, 2.0)}, "shape was given as"),
        ({"shape": "abc"}, "shape was given as"),
        ({"batch_size": 0}, "batch_size was given as 0"),
        ({"batch_size": -1}, "batch_size was given as -1"),
        ({"batch_size": 1.5}, "batch_size was given as 1.5"),
        ({"batch_size": ""}, "batch_size was given as ''"),
        ({"seed": -1}, "The seed -1 is not accepted"),
        ({"seed": 0.5}, "The seed 0.5 is not accepted"),
        ({"dtype": "int32"}, "cannot be of dtype 'int32'"),
        ({"dtype": "float8_e5m2"}, "cannot be of dtype 'float8_e5m2'"),
        ({"dtype": "floaty"}, "'floaty' is not a dtype"),
        ({"deepth": 8}, "has no argument 'deepth'. Accepted: "),
    ],
)
@pytest.mark.parametrize("name", MODEL_NAMES)
def test_arguments_that_no_model_takes(name: str, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        create_model(name, **arguments)

    assert message in str(caught.value)


def test_unknown_model() -> None:
    with pytest.raises(UnknownNameError, match=r"There is no model named 'lennet'. Did you mean 'lenet'\?"):
        create_model("lennet")


@pytest.mark.parametrize("name", MODEL_NAMES)
@pytest.mark.parametrize("odd", [None, 0, -1, True, 1.5, "", "ab", (), [0], {}, object()])
def test_no_argument_of_a_model_breaks_it(name: str, odd: Any) -> None:
    own = [p for p in inspect.signature(MODELS.get(name)).parameters if p not in ("classes", "shape")]
    for argument in own:
        with contextlib.suppress(Deep500Error):
            network = create_model(name, shape=(1, 16, 16), **{argument: odd})
            onnx.checker.check_model(network.to_proto(), full_check=True)


class Chosen(nn.Module):
    """Rows of a table, chosen by number, scaled by a second input."""

    def __init__(self, inputs: Any) -> None:
        super().__init__()
        self.table = InitializedParameter([3, 2], zeros)
        self.listed = inputs

    def inputs(self) -> Any:
        return self.listed

    def forward(self, op: OpBuilder, numbers: ir.Value, scale: ir.Value) -> ir.Value:
        return op.Mul(op.Gather(self.table, numbers, axis=0), op.Mul(scale, 2.0))


def test_module_lists_its_inputs() -> None:
    def chosen(*, classes: int = 2, shape: Any = ("length",)) -> nn.Module:
        return Chosen((ModelInput("numbers", tuple(shape), "int64"), ModelInput("scale", (1, 2))))

    for dtype in ("float32", "float64"):
        network = create_model(chosen, dtype=dtype)
        assert network.inputs == {
            "numbers": TensorDescriptor("int64", ("batch", "length")),
            "scale": TensorDescriptor(dtype, ("batch", 1, 2)),
        }
        onnx.checker.check_model(network.to_proto(), full_check=True)
        assert list(network.parameters) == ["table"]  # the number 2 is none
    assert create_model(chosen, 4, shape=(5,)).inputs["numbers"].shape == (4, 5)
    for shape in (("length", 2), ("",), ("a b",), (1.5,), (0,)):
        with pytest.raises(InvalidInputError, match="shape was given as"):
            create_model(chosen, shape=shape)


@pytest.mark.parametrize("inputs", [(), None, "input", [("input", (1,))], {"input": (1,)}, 3])
def test_other_lists_of_inputs_are_refused(inputs: Any) -> None:
    def chosen(*, classes: int, shape: Any) -> nn.Module:
        return Chosen(inputs)

    with pytest.raises(InvalidInputError, match=r"lists the inputs .* accepted is a tuple of ModelInput"):
        create_model(chosen)


def test_symbolic_sizes_only_where_the_model_leaves_them_open() -> None:
    with pytest.raises(InvalidInputError, match="shape was given as"):
        create_model("mlp", shape=("features",))


def test_defaults_are_those_of_the_model() -> None:
    assert create_model("mlp").inputs["input"].shape == ("batch", 1, 28, 28)
    assert create_model("mlp").outputs["output"].shape == ("batch", 10)
    assert create_model("wide_resnet", depth=10, factor=1).inputs["input"].shape == ("batch", 3, 32, 32)


def test_weights_are_drawn_when_they_are_read() -> None:
    drawn = []

    def counted(stream: np.random.Generator, shape: Any) -> Any:
        drawn.append(tuple(shape))
        return zeros(stream, shape)

    def chosen(*, classes: int, shape: Any) -> nn.Module:
        module = Chosen((ModelInput("numbers", (1,), "int64"), ModelInput("scale", (1, 2))))
        module.table.initial = counted
        return module

    network = create_model(chosen)
    assert network.parameter_count == 6
    assert drawn == []
    network.fetch_tensors(["table"])
    network.weights_hash()
    network.detached().to_proto()
    assert drawn == [(3, 2)]


def test_weights_that_do_not_fit_are_refused_at_once() -> None:
    with pytest.raises(InvalidInputError, match="does not fit into memory"):
        create_model("mlp", shape=(10**9,), hidden=(10**9,))
