from __future__ import annotations

import numpy as np
import pytest
from onnx import helper

from deep500.core.errors import InvalidInputError, InvalidNetworkError
from deep500.frameworks.reference import from_model
from deep500.networks.creation import create_model
from deep500.networks.network import Network
from deep500.networks.transformation import transform
from deep500.networks.transforms.mixed_precision import MixedPrecision
from deep500.networks.transforms.precision import Precision
from tests.unit.networks.support import make_model, value


def classifier(model: str = "lenet", **options: object) -> Network:
    network = create_model(model, **({"shape": (1, 8, 8)} | options))
    network.append_loss("SoftmaxCrossEntropyLoss")
    return network


def read_dtypes(network: Network, operator: str) -> set[str]:
    nodes = (node for node in network.model.graph if node.op_type == operator)
    return {v.dtype.numpy().name for node in nodes for v in node.inputs if v is not None}


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("model", ["lenet", "mlp"])
def test_products_are_narrow_and_parameters_are_not(model: str, dtype: str) -> None:
    original = classifier(model)

    result = transform(original, MixedPrecision(dtype), executor=from_model)

    assert result.parameters == original.parameters
    assert read_dtypes(result, "Gemm") == {dtype}
    assert read_dtypes(result, "Conv") <= {dtype}
    assert read_dtypes(result, "SoftmaxCrossEntropyLoss") == {"float32", "int64"}
    for name in original.parameters:
        np.testing.assert_array_equal(result.fetch_tensors([name]), original.fetch_tensors([name]))


def test_normalisations_stay_in_float32() -> None:
    result = transform(classifier("resnet", depth=8), MixedPrecision("bfloat16"), executor=from_model)

    assert read_dtypes(result, "BatchNormalization") == {"float32"}
    assert read_dtypes(result, "GlobalAveragePool") == {"float32"}
    assert read_dtypes(result, "Conv") == {"bfloat16"}


def test_moves_between_products_round_nothing_more() -> None:
    result = transform(classifier("mlp", hidden=(8, 8)), MixedPrecision("bfloat16"))

    assert read_dtypes(result, "Relu") == {"bfloat16"}
    operators = [node.op_type for node in result.model.graph]
    # Of the input, of weights and biases of three products; and of the last result, back.
    assert operators.count("Cast") == 1 + 2 * 3 + 1


def test_softmax_of_attention_stays_in_float32() -> None:
    network = create_model("gpt", classes=20, layers=1, features=16, heads=2, context=8)
    network.append_loss("SoftmaxCrossEntropyLoss")

    result = transform(network, MixedPrecision("bfloat16"), executor=from_model)

    (attention,) = (node for node in result.model.graph if node.op_type == "Attention")
    assert attention.attributes["softmax_precision"].as_int() == 1
    assert read_dtypes(result, "Attention") == {"bfloat16"}


def test_output_of_a_product_keeps_name_and_dtype() -> None:
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"]), helper.make_node("Relu", ["y"], ["z"])]
    stored = {"w": np.ones((2, 2), np.float32)}
    network = Network.load(make_model(nodes, [value("x", "N", 2)], [value("y", "N", 2), value("z", "N", 2)], stored))

    result = transform(network, MixedPrecision("float16"), executor=from_model)

    assert result.outputs == network.outputs


def test_overlapping_windows_are_chosen_from_in_float32() -> None:
    def pooled(strides: int) -> set[str]:
        nodes = [
            helper.make_node("Conv", ["x", "w"], ["c"]),
            helper.make_node("MaxPool", ["c"], ["p"], kernel_shape=[2, 2], strides=[strides, strides]),
            helper.make_node("Conv", ["p", "w"], ["y"]),
        ]
        stored = {"w": np.ones((1, 1, 1, 1), np.float32)}
        made = make_model(nodes, [value("x", "N", 1, 4, 4)], [value("y", "N", 1, None, None)], stored)
        return read_dtypes(transform(Network.load(made), MixedPrecision("float16")), "MaxPool")

    assert pooled(1) == {"float32"}
    assert pooled(2) == {"float16"}


def test_kept_nodes_stay() -> None:
    result = transform(classifier(), MixedPrecision("bfloat16", keep=["Conv"]), executor=from_model)

    assert read_dtypes(result, "Conv") == {"float32"}
    assert read_dtypes(result, "Gemm") == {"bfloat16"}


def test_allowed_error_grows_with_the_depth() -> None:
    shallow, deep = MixedPrecision("bfloat16"), MixedPrecision("bfloat16")
    transform(classifier("mlp", hidden=(4,) * 1), shallow)
    transform(classifier("mlp", hidden=(4,) * 7), deep)

    assert 0.0 < shallow.relative_error < deep.relative_error < 0.2


def test_what_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="'float64'; accepted are bfloat16, float16"):
        MixedPrecision("float64")
    with pytest.raises(InvalidInputError, match="accepted is a list of operators"):
        MixedPrecision(keep="Conv")
    relu = make_model([helper.make_node("Relu", ["x"], ["y"])], [value("x", 2)], [value("y", 2)])
    with pytest.raises(InvalidInputError, match="multiplies no matrices in float32"):
        transform(Network.load(relu), MixedPrecision())
    narrow = transform(classifier(), Precision("bfloat16", keep=["Gemm"]))
    with pytest.raises(InvalidNetworkError, match="in bfloat16 already"):
        transform(narrow, MixedPrecision())
