"""Executors are compared; a fault that is planted in one of them is found at its node."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.helper as oh
import onnx.numpy_helper as onh
import onnx_ir as ir
import pytest

import deep500 as d5
from deep500.cli.main import run_command
from deep500.core.errors import Deep500Error, InvalidInputError, InvalidNetworkError, UnsupportedOperatorError
from deep500.frameworks import FRAMEWORKS, installed_frameworks
from deep500.networks import GraphExecutor, Network
from deep500.networks.random_inputs import random_inputs
from deep500.networks.validation import validate

REFERENCE = FRAMEWORKS.get("reference").from_model
OTHERS = [name for name in installed_frameworks() if name != "reference"]

#: Blocks of a convolution, a normalisation, an activation and a pooling: more than 100 nodes.
BLOCKS = 26


def deep_network(blocks: int = BLOCKS, seed: int = 0) -> Network:
    """A network whose every block has a convolution, a normalisation, an activation and an average pooling."""
    stream = np.random.default_rng(seed)
    nodes, stored, name = [], {}, "x"
    for block in range(blocks):
        stored |= {
            f"w{block}": stream.standard_normal((4, 4, 3, 3)) / 6,
            f"scale{block}": stream.uniform(0.5, 1.5, 4),
            f"bias{block}": stream.standard_normal(4),
            f"mean{block}": stream.standard_normal(4) / 10,
            f"var{block}": stream.uniform(0.5, 1.5, 4),
        }
        statistics = [f"{part}{block}" for part in ("scale", "bias", "mean", "var")]
        nodes += [
            oh.make_node("Conv", [name, f"w{block}"], [f"c{block}"], name=f"conv{block}", pads=[1, 1, 1, 1]),
            oh.make_node("BatchNormalization", [f"c{block}", *statistics], [f"n{block}"], name=f"norm{block}"),
            oh.make_node("Relu", [f"n{block}"], [f"r{block}"], name=f"relu{block}"),
            oh.make_node(
                "AveragePool",
                [f"r{block}"],
                [f"p{block}"],
                name=f"pool{block}",
                kernel_shape=[2, 2],
                pads=[0, 0, 1, 1],
                count_include_pad=1,
            ),
        ]
        name = f"p{block}"
    nodes.append(oh.make_node("GlobalAveragePool", [name], ["y"], name="head"))
    shape = ["batch", 4, 6, 6]
    graph = oh.make_graph(
        nodes,
        "deep",
        [oh.make_tensor_value_info("x", onnx.TensorProto.FLOAT, shape)],
        [oh.make_tensor_value_info("y", onnx.TensorProto.FLOAT, ["batch", 4, 1, 1])],
        [onh.from_array(value.astype(np.float32), key) for key, value in stored.items()],
    )
    return Network.load(oh.make_model(graph, opset_imports=[oh.make_opsetid("", 23)], ir_version=11))


def with_fault(make: Callable[[Network], GraphExecutor], node: str, attribute: ir.Attr) -> Callable[[Network], Any]:
    """Return what makes executors that run one node with another attribute."""

    def faulty(network: Network) -> GraphExecutor:
        changed = network.detached()
        for found in changed.model.graph:
            if found.name == node:
                found.attributes[attribute.name] = attribute
        return make(changed)

    return faulty


FAULTS = {
    "epsilon": ("norm13", ir.AttrFloat32("epsilon", 1e-3)),
    "padding": ("pool7", ir.AttrInt64s("pads", [1, 1, 0, 0])),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_planted_fault_is_found_at_its_node(fault: str) -> None:
    network = deep_network()
    node, attribute = FAULTS[fault]
    assert len(list(network.model.graph)) >= 100

    report = validate(network, [REFERENCE, with_fault(REFERENCE, node, attribute)])

    assert not report.passed
    found = report.first_diverging("reference (2)")
    assert found is not None
    assert found.node == node
    assert [row.node for row in report.nodes if not row.agrees] == [node]
    assert f"the first diverging node is {node!r}" in str(report)


@pytest.mark.parametrize("framework", OTHERS)
def test_planted_fault_is_found_in_every_framework(framework: str) -> None:
    network = deep_network(2)
    make = with_fault(FRAMEWORKS.get(framework).from_model, "norm1", ir.AttrFloat32("epsilon", 1e-3))

    report = validate(network, [REFERENCE, make])

    found = report.first_diverging(framework)
    assert found is not None
    assert found.node == "norm1"


@pytest.mark.parametrize("mode", ["eval", "train"])
def test_frameworks_agree(mode: str) -> None:
    network = deep_network(2)
    network.append_loss("MeanSquaredError")
    getattr(network, mode)()
    feeds = {"x": np.random.default_rng(1).standard_normal((3, 4, 6, 6)).astype(np.float32)}
    feeds["label"] = np.zeros((3, 4, 1, 1), np.float32)

    report = validate(network, [REFERENCE, *(FRAMEWORKS.get(name).from_model for name in OTHERS)], feeds)

    assert report.passed, str(report)
    assert report.frameworks == tuple(OTHERS)
    gradients = {row.what for row in report.outputs if row.what.startswith("gradient of")}
    assert gradients == {f"gradient of {name!r}" for name in network.get_params()}
    assert {node.node for node in report.nodes} >= {"conv0", "norm1", "pool1", "head"}
    assert any("gradient by" in tensor.what for node in report.nodes for tensor in node.tensors)
    assert all(tensor.error > 0 or tensor.allowed > 0 for node in report.nodes for tensor in node.tensors)


def attention_layer() -> Network:
    """Attention over keys with a bias, by which the gradient is zero: softmax does not see it."""
    stream = np.random.default_rng(2)
    stored = {f"{part}.weight": stream.standard_normal((8, 8)) / 3 for part in ("query", "key", "value")}
    stored["key.bias"] = stream.standard_normal(8)
    nodes = [oh.make_node("MatMul", ["x", f"{part}.weight"], [part]) for part in ("query", "key", "value")]
    nodes += [
        oh.make_node("Add", ["key", "key.bias"], ["keys"], name="bias"),
        oh.make_node("Attention", ["query", "keys", "value"], ["y"], name="attend", q_num_heads=2, kv_num_heads=2),
    ]
    infos = [oh.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["batch", 6, 8]) for name in "xy"]
    values = [onh.from_array(value.astype(np.float32), key) for key, value in stored.items()]
    graph = oh.make_graph(nodes, "attention", infos[:1], infos[1:], values)
    network = Network.load(oh.make_model(graph, opset_imports=[oh.make_opsetid("", 23)], ir_version=11))
    network.append_loss("MeanSquaredError")
    return network


@pytest.mark.parametrize("framework", OTHERS)
def test_gradient_that_is_zero_but_for_rounding_is_no_difference(framework: str) -> None:
    report = validate(attention_layer(), [REFERENCE, FRAMEWORKS.get(framework).from_model])

    assert report.passed, str(report)
    (row,) = [row for row in report.outputs if row.what == "gradient of 'key.bias'"]
    assert row.scale < row.allowed < 1e-6


def test_gradient_that_should_be_zero_and_is_not_is_a_difference() -> None:
    def steeper(network: Network) -> GraphExecutor:
        executor = REFERENCE(network)
        fetch = executor.network.fetch_tensors
        executor.network.fetch_tensors = lambda names: [
            value + np.float32(1e-5) if "key.bias" in name else value for name, value in zip(names, fetch(names))
        ]
        return executor

    report = validate(attention_layer(), [REFERENCE, steeper], alone=False)

    assert [row.what for row in report.outputs if not row.agrees] == ["gradient of 'key.bias'"]


class Unable(FRAMEWORKS.get("reference").ReferenceExecutor):  # type: ignore[misc]
    """An executor that cannot run anything."""

    def _run(self, *arguments: Any) -> Any:
        raise UnsupportedOperatorError("there is no kernel")


def test_executor_that_cannot_run_is_told() -> None:
    report = validate(deep_network(1), [REFERENCE, Unable])

    assert not report.passed
    assert "reference (2): could not run: there is no kernel" in str(report)
    with pytest.raises(UnsupportedOperatorError):
        validate(deep_network(1), [Unable, REFERENCE])


def test_whole_network_that_differs_though_every_node_agrees() -> None:
    def other(network: Network) -> GraphExecutor:
        changed = network.detached()
        if {"conv0", "conv1"} <= {node.name for node in changed.model.graph}:  # not where a node is alone
            changed.feed_tensor("w0", 2 * changed.fetch_tensors(["w0"])[0])
        return REFERENCE(changed)

    report = validate(deep_network(2), [REFERENCE, other])

    assert not report.passed
    assert report.first_diverging("reference (2)") is None
    assert "they part at tensor 'c0'" in str(report)


def test_random_nodes_are_not_compared() -> None:
    nodes = [
        oh.make_node("RandomNormalLike", ["x"], ["noise"], name="draw"),
        oh.make_node("Add", ["x", "noise"], ["y"]),
    ]
    infos = [oh.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [2]) for name in "xy"]
    graph = oh.make_graph(nodes, "noisy", infos[:1], infos[1:])
    network = Network.load(oh.make_model(graph, opset_imports=[oh.make_opsetid("", 23)], ir_version=11))
    report = validate(network, [REFERENCE, REFERENCE])

    assert [node.note for node in report.nodes if node.node == "draw"] == ["it draws numbers"]
    assert "draw numbers" in report.notes[0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"executors": [REFERENCE]}, "two or more functions"),
        ({"executors": ["reference", "pytorch"]}, "two or more functions"),
        ({"network": "net.onnx"}, "accepted is a Network"),
        ({"inputs": {"x": np.zeros((2, 4, 6, 6))}}, "float64"),
        ({"sizes": {"batches": 3}}, "Did you mean 'batch'"),
        ({"loss": "y"}, "Only a scalar"),
        ({"tolerance": -1}, "tolerance was given as -1; accepted are numbers from 0"),
        ({"tolerance": float("nan")}, "tolerance was given as nan"),
        ({"tolerance": float("inf")}, "tolerance was given as inf"),
        ({"tolerance": "1"}, "tolerance was given as '1'"),
    ],
)
def test_bad_arguments_are_told(arguments: dict[str, Any], message: str) -> None:
    given = {"network": deep_network(1), "executors": [REFERENCE, REFERENCE], **arguments}

    with pytest.raises(Deep500Error, match=message):
        validate(**given)


def test_executors_are_compared_by_the_published_names() -> None:
    network = deep_network(1)
    network.append_loss("MeanSquaredError")
    first, second = REFERENCE(network), REFERENCE(network)
    before = first.network.weights_hash()

    assert d5.test_executor_inference(second, first).passed
    assert d5.test_executor_backprop(second, first).passed
    assert first.network.weights_hash() == before
    with pytest.raises(InvalidInputError, match="accepted is what from_model returns"):
        d5.test_executor_inference(network, first)


class Wrong(FRAMEWORKS.get("reference").ReferenceExecutor):  # type: ignore[misc]
    """An executor whose outputs are off by a little."""

    def _run(self, *arguments: Any) -> Any:
        return {name: value * np.float32(1.001) for name, value in super()._run(*arguments).items()}


def test_differences_are_errors_of_the_published_names() -> None:
    network = deep_network(1)

    with pytest.raises(InvalidNetworkError, match="the first diverging node is 'conv0'"):
        d5.test_executor_inference(Wrong(network), REFERENCE(network))
    assert not d5.test_executor_inference(Wrong(network), REFERENCE(network), raise_on_failure=False).passed


def test_random_inputs_are_in_range() -> None:
    nodes = [oh.make_node("Gather", ["table", "i"], ["y"]), oh.make_node("Not", ["b"], ["z"])]
    kinds = {"i": onnx.TensorProto.INT64, "b": onnx.TensorProto.BOOL}
    inputs = [oh.make_tensor_value_info(name, kind, ["n", 50]) for name, kind in kinds.items()]
    outputs = [
        oh.make_tensor_value_info("y", onnx.TensorProto.FLOAT, ["n", 50, 3]),
        oh.make_tensor_value_info("z", onnx.TensorProto.BOOL, ["n", 50]),
    ]
    graph = oh.make_graph(nodes, "g", inputs, outputs, [onh.from_array(np.zeros((7, 3), np.float32), "table")])
    network = Network.load(oh.make_model(graph, opset_imports=[oh.make_opsetid("", 23)], ir_version=11))
    found = random_inputs(network, {"n": 4})

    assert found["i"].shape == (4, 50)
    assert set(np.unique(found["i"])) == set(range(7))
    assert found["b"].dtype == np.bool_
    np.testing.assert_array_equal(found["i"], random_inputs(network, {"n": 4})["i"])
    assert not np.array_equal(found["i"], random_inputs(network, {"n": 4}, seed=1)["i"])


@pytest.fixture
def saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    deep_network(1).save("deep.onnx")
    return tmp_path


def test_command(saved: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.save("x.npy", np.ones((2, 4, 6, 6), np.float32))
    frameworks = ",".join(["reference", *OTHERS[:1]])
    options = ["--framework", frameworks, "--input", "x=x.npy", "--output", "report.json"]

    assert run_command(["validate", "deep.onnx", *options]) == 0
    assert "Network 'deep' against reference: PASSED" in capsys.readouterr().out
    report = json.loads(Path("report.json").read_text())
    assert report["passed"] is True
    assert set(report["first_diverging_node"].values()) == {None}
    assert run_command(["validate", "lenet", "--framework", frameworks, "--loss", "SoftmaxCrossEntropyLoss"]) == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["missing.onnx"], "missing.onnx"),
        (["deep.onnx", "--framework", "reference"], "two or more different names"),
        (["deep.onnx", "--framework", "reference,pytorchh"], "Did you mean 'pytorch'"),
        (["deep.onnx", "--mode", "test"], "accepted are eval, train, declared"),
        (["deep.onnx", "--size", "batch"], "accepted is NAME=N"),
        (["deep.onnx", "--input", "x"], "accepted is NAME=FILE"),
        (["deep.onnx", "--input", "x=deep.onnx"], "is no file of one array"),
        (["deep.onnx", "--loss", "Missing"], "There is no loss named"),
    ],
)
def test_mistakes_in_the_command_are_told(
    saved: Path, options: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command(["validate", *options]) == 2
    assert message in capsys.readouterr().err
