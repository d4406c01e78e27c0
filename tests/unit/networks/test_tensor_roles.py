from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
from onnx import helper

from deep500.networks.network import Network
from deep500.networks.tensor_roles import ROLE_KEY, TensorRole, initializer_role, is_loss
from tests.unit.networks.support import batch_normalization, make_model, value


def roles(nodes: list[Any], stored: dict[str, Any], *shape: int | str) -> dict[str, TensorRole]:
    outputs = [value(nodes[-1].output[0], *(f"d{i}" for i in range(len(shape))))]
    network = Network.load(make_model(nodes, [value("x", *shape)], outputs, stored))
    return {name: initializer_role(v) for name, v in network.model.graph.initializers.items()}


def test_roles_that_use_shows() -> None:
    network = Network.load(batch_normalization())

    assert list(network.parameters) == ["scale", "bias"]
    assert list(network.states) == ["mean", "var"]
    assert not network.constants


@pytest.mark.parametrize(
    ("dtype", "role"),
    [
        (np.float16, TensorRole.PARAMETER),
        (np.float32, TensorRole.PARAMETER),
        (np.float64, TensorRole.PARAMETER),
        (np.int32, TensorRole.CONSTANT),
        (np.bool_, TensorRole.CONSTANT),
        (np.complex64, TensorRole.CONSTANT),
    ],
)
def test_only_floats_are_trained(dtype: Any, role: TensorRole) -> None:
    nodes = [helper.make_node("Cast", ["w"], ["c"], to=1), helper.make_node("Add", ["x", "c"], ["y"])]
    if dtype is np.complex64:  # which ONNX does not cast
        value_ = ir.Value(name="w", type=ir.TensorType(ir.DataType.COMPLEX64))
        assert initializer_role(value_) is role
    else:
        assert roles(nodes, {"w": np.ones(2, dtype)}, "N", 2) == {"w": role}


def test_settings_of_an_operator_are_not_trained() -> None:
    nodes = [
        helper.make_node("Clip", ["x", "low", "high"], ["c"]),
        helper.make_node("Dropout", ["c", "ratio"], ["d"]),
        helper.make_node("Mul", ["d", "w"], ["y"]),
    ]
    stored = {
        "low": np.float32(0).reshape(()),
        "high": np.float32(6).reshape(()),
        "ratio": np.float32(0.5).reshape(()),
        "w": np.ones(2, np.float32),
    }

    assert roles(nodes, stored, "N", 2) == {
        "low": TensorRole.CONSTANT,
        "high": TensorRole.CONSTANT,
        "ratio": TensorRole.CONSTANT,
        "w": TensorRole.PARAMETER,
    }


def test_setting_that_is_used_as_a_weight_too_is_trained() -> None:
    nodes = [helper.make_node("Clip", ["x", "w"], ["c"]), helper.make_node("Mul", ["c", "w"], ["y"])]

    assert roles(nodes, {"w": np.float32(1).reshape(())}, "N", 2) == {"w": TensorRole.PARAMETER}


def test_operators_of_another_domain_have_no_states() -> None:
    node = helper.make_node("BatchNormalization", ["x", "a", "b", "c", "d"], ["y"], domain="mine")
    stored = {name: np.ones(2, np.float32) for name in "abcd"}
    network = Network.load(make_model([node], [value("x", 2)], [value("y", 2)], stored, domains=["mine"]))

    assert list(network.parameters) == list("abcd")


@pytest.mark.parametrize("role", list(TensorRole))
def test_written_role_wins_and_survives_saving(role: TensorRole) -> None:
    network = Network.load(batch_normalization())
    for initializer in network.model.graph.initializers.values():
        initializer.metadata_props[ROLE_KEY] = role.value
    loaded = Network.load(network.to_proto())

    assert {initializer_role(v) for v in loaded.model.graph.initializers.values()} == {role}


def test_unknown_written_role_does_not_count() -> None:
    network = Network.load(batch_normalization())
    network.model.graph.initializers["mean"].metadata_props[ROLE_KEY] = "nonsense"

    assert initializer_role(network.model.graph.initializers["mean"]) is TensorRole.STATE


def test_loss_is_told_by_its_mark() -> None:
    network = Network.load(batch_normalization())
    network.append_loss("MeanSquaredError")

    assert [is_loss(v) for v in network.model.graph.outputs] == [False, True]
