from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import helper

from deep500.core.errors import InvalidInputError, InvalidNetworkError
from deep500.frameworks.reference import from_model
from deep500.networks.creation import create_model
from deep500.networks.network import Network
from deep500.networks.transformation import transform
from deep500.networks.transforms import batch_normalization_folding as module
from deep500.networks.transforms.batch_normalization_folding import BatchNormalizationFolding
from tests.unit.networks.support import batch_normalization, make_model, value

STREAM = np.random.default_rng(0)


def network(op: str, weight: tuple[int, ...], x: tuple[int, ...], bias: bool, **attributes: Any) -> Network:
    """Return ``BatchNormalization(op(x, w, b))`` with 6 channels."""
    stored = {"w": STREAM.standard_normal(weight).astype("f4")}
    if bias:
        stored["b"] = STREAM.standard_normal(6).astype("f4")
    linear = list(stored)
    stored |= {n: STREAM.uniform(0.5, 2.0, 6).astype("f4") for n in ("scale", "shift", "mean", "var")}
    nodes = [
        helper.make_node(op, ["x", *linear], ["h"], name="linear", **attributes),
        helper.make_node("BatchNormalization", ["h", "scale", "shift", "mean", "var"], ["y"], name="norm", epsilon=0.1),
    ]
    rank = len(x) + 1
    return Network.load(make_model(nodes, [value("x", "N", *x)], [value("y", *[None] * rank)], stored))


CASES = [
    ("Conv", (6, 2, 3, 3), (4, 7, 7), True, {"group": 2, "pads": [1, 1, 1, 1]}),
    ("Conv", (6, 4, 3), (4, 9), False, {}),
    ("ConvTranspose", (4, 3, 3, 3), (4, 5, 5), True, {"group": 2, "strides": [2, 2]}),
    ("ConvTranspose", (4, 6, 2, 2), (4, 5, 5), False, {}),
    ("Gemm", (5, 6), (5,), True, {"alpha": 0.5, "beta": 2.0}),
    ("Gemm", (6, 5), (5,), False, {"transB": 1}),
    ("MatMul", (5, 6), (5,), False, {}),
]


@pytest.mark.parametrize(("op", "weight", "x", "bias", "attributes"), CASES)
def test_folded_network_computes_the_same(op, weight, x, bias, attributes) -> None:
    original = network(op, weight, x, bias, **attributes)

    result = transform(original, BatchNormalizationFolding(), executor=from_model)

    assert "BatchNormalization" not in [node.op_type for node in result.model.graph]
    assert {node.op_type for node in original.model.graph} == {op, "BatchNormalization"}
    assert set(result.parameters) == {"w.folded", "b.folded" if bias else "w.folded_bias"}
    assert not result.states
    Network.load(result.to_proto())


def test_every_normalisation_of_a_residual_network_is_folded() -> None:
    original = create_model("resnet", depth=8, shape=(3, 8, 8))
    for name, kind in original.states.items():
        original.feed_tensor(name, STREAM.uniform(0.5, 2.0, kind.shape).astype("f4"))
    original.append_loss("SoftmaxCrossEntropyLoss")

    result = transform(original, BatchNormalizationFolding(), executor=from_model)

    assert len(original.model.graph) - len(result.model.graph) == 9
    assert "classifier.weight" in result.parameters


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("factor = scale / np.sqrt(variance + epsilon)", "factor = scale / (variance + epsilon)"),
        ("shift = bias - mean * factor", "shift = bias - mean"),
        ("beta * _array(old_bias) * factor + shift", "_array(old_bias) * factor + shift"),
    ],
)
def test_wrong_fold_is_caught_by_the_check(monkeypatch: pytest.MonkeyPatch, right: str, wrong: str) -> None:
    import inspect

    source = inspect.getsource(module._fold)
    assert right in source
    planted: dict[str, Any] = {}
    exec(compile(source.replace(right, wrong), "planted", "exec"), {**vars(module)}, planted)
    monkeypatch.setattr(module, "_fold", planted["_fold"])

    with pytest.raises(InvalidNetworkError, match="BatchNormalizationFolding changed what"):
        transform(network(*CASES[4][:4], **CASES[4][4]), BatchNormalizationFolding(), executor=from_model)


def test_training_is_refused() -> None:
    with pytest.raises(InvalidNetworkError, match="training mode"):
        transform(network(*CASES[1][:4]).train(), BatchNormalizationFolding())


def test_what_stands_before_must_be_linear() -> None:
    with pytest.raises(InvalidNetworkError, match=r"node 'norm'.*a network's input"):
        transform(Network.load(batch_normalization()), BatchNormalizationFolding())


def test_product_that_others_read_is_refused() -> None:
    original = network(*CASES[1][:4])
    graph = original.model.graph
    graph.outputs.append(next(iter(graph)).outputs[0])

    with pytest.raises(InvalidNetworkError, match=r"node 'norm'.*read by others"):
        transform(original, BatchNormalizationFolding())


def test_shared_weight_is_kept_for_the_other() -> None:
    stored = {"w": STREAM.standard_normal((4, 4)).astype("f4")}
    stored |= {n: STREAM.uniform(0.5, 2.0, 4).astype("f4") for n in ("scale", "shift", "mean", "var")}
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["h"]),
        helper.make_node("BatchNormalization", ["h", "scale", "shift", "mean", "var"], ["n"]),
        helper.make_node("MatMul", ["n", "w"], ["y"]),
    ]
    original = Network.load(make_model(nodes, [value("x", "N", 4)], [value("y", "N", 4)], stored))

    result = transform(original, BatchNormalizationFolding(), executor=from_model)

    assert set(result.parameters) == {"w", "w.folded", "w.folded_bias"}


def test_pattern_without_a_match_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="no BatchNormalization whose name matches 'other"):
        transform(network(*CASES[1][:4]), BatchNormalizationFolding("other*"))
    with pytest.raises(InvalidInputError, match="accepted is a pattern"):
        BatchNormalizationFolding(1)  # type: ignore[arg-type]
