from __future__ import annotations

import numpy as np
import pytest
from onnx import helper

from deep500.core.errors import InvalidInputError, InvalidNetworkError
from deep500.frameworks.reference import from_model
from deep500.networks.creation import create_model
from deep500.networks.network import Network
from deep500.networks.transformation import transform
from deep500.networks.transforms.precision import Precision
from tests.unit.networks.support import make_model, value


def classifier() -> Network:
    network = create_model("lenet", shape=(1, 8, 8))
    network.append_loss("SoftmaxCrossEntropyLoss")
    return network


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
def test_parameters_are_of_the_new_dtype_and_borders_of_the_old(dtype: str) -> None:
    original = classifier()

    result = transform(original, Precision(dtype), executor=from_model)

    assert {kind.dtype for kind in result.parameters.values()} == {dtype}
    assert result.inputs == original.inputs
    assert result.outputs == original.outputs
    assert {kind.dtype for kind in original.parameters.values()} == {"float32"}
    assert Network.load(result.to_proto()).parameters == result.parameters


def test_loss_stays_in_float32_in_16_bits_only() -> None:
    def loss_dtype(dtype: str) -> str:
        graph = transform(classifier(), Precision(dtype)).model.graph
        (node,) = (node for node in graph if node.op_type == "SoftmaxCrossEntropyLoss")
        return str(node.inputs[0].dtype.numpy().name)

    assert loss_dtype("float16") == "float32"
    assert loss_dtype("float64") == "float64"


def test_kept_operators_read_what_they_read() -> None:
    result = transform(classifier(), Precision("float16", keep=["Gemm"]), executor=from_model)

    read = {v.dtype.numpy().name for node in result.model.graph if node.op_type == "Gemm" for v in node.inputs}
    assert read == {"float32"}
    assert result.parameters["fc3.weight"].dtype == "float32"
    assert result.parameters["conv1.weight"].dtype == "float16"


def test_float64_is_as_exact_as_float32() -> None:
    assert Precision("float64").relative_error < 1e-5
    assert Precision("bfloat16").relative_error > Precision("float16").relative_error > 1e-3


def test_wider_network_becomes_narrow() -> None:
    network = create_model("mlp", shape=(4,), hidden=(8,), dtype="float64")

    result = transform(network, Precision("float32", source="float64"), executor=from_model)

    assert {kind.dtype for kind in result.parameters.values()} == {"float32"}


def test_dtype_that_a_cast_names_follows() -> None:
    nodes = [
        helper.make_node("Cast", ["i"], ["c"], to=1),
        helper.make_node("Mul", ["c", "w"], ["m"]),
        helper.make_node("Relu", ["m"], ["y"]),
    ]
    stored = {"w": np.array([1.5, -2.0], np.float32)}
    network = Network.load(make_model(nodes, [value("i", "N", 2, element=7)], [value("y", "N", 2)], stored))

    result = transform(network, Precision("float16"), executor=from_model)

    assert next(iter(result.model.graph)).attributes["to"].as_int() == 10


def test_operator_without_a_16_bit_form_stays() -> None:
    stored = {"roi": np.zeros(0, np.float32), "scales": np.array([1, 1, 2, 2], np.float32)}
    nodes = [helper.make_node("Resize", ["x", "roi", "scales"], ["y"], mode="nearest")]
    network = Network.load(make_model(nodes, [value("x", "N", 1, 2, 2)], [value("y", "N", 1, 4, 4)], stored))

    result = transform(network, Precision("float16"), executor=from_model)

    assert result.constants["scales"].dtype == "float32"


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"dtype": "int8"}, "accepted are float16, bfloat16, float32, float64"),
        ({"dtype": "float32"}, "two dtypes"),
        ({"dtype": "float16", "keep": "Gemm"}, r"such as \['Gemm'\]"),
    ],
)
def test_bad_arguments_are_refused(arguments, match) -> None:
    with pytest.raises(InvalidInputError, match=match):
        Precision(**arguments)


def test_network_without_the_dtype_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="no tensor of float64"):
        transform(classifier(), Precision("float32", source="float64"))


def test_rounding_too_coarsely_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Precision, "relative_error", property(lambda self: 0.0))
    with pytest.raises(InvalidNetworkError, match="Precision changed what"):
        transform(classifier(), Precision("bfloat16"), executor=from_model)
