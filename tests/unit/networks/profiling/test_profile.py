from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

from deep500.core.errors import Deep500Error, InvalidInputError, UnknownNameError, UnsupportedOperatorError
from deep500.frameworks import FRAMEWORKS
from deep500.measure.sampling.plan import SamplingPlan
from deep500.networks.creation import create_model
from deep500.networks.network import Network
from deep500.networks.profiling.profile import profile
from deep500.networks.profiling.report import NetworkProfile
from tests.unit.networks.support import make_model, value

MAKE = FRAMEWORKS.get("reference").from_model
PLAN = SamplingPlan(minimum_time_s=0, time_limit_s=0.4, warm_up=2, calls_per_sample=1)


def profiled(network: Network, **options: Any) -> NetworkProfile:
    return profile(network, MAKE, plan=PLAN, measure_peak=False, **options)


def small() -> Network:
    network = create_model("mlp", shape=(6,), classes=3, hidden=[5])
    network.append_loss("SoftmaxCrossEntropyLoss")
    return network


def test_every_node_is_timed_and_counted() -> None:
    network = small()
    found = profiled(network, sizes={"batch": 4})
    rows = {node.node: node for node in found.nodes}
    gemm = next(node for node in found.nodes if node.operator == "Gemm")

    assert list(rows) == [str(node.name) for node in network.model.graph]
    assert all(node.time is not None and node.seconds is not None and node.seconds > 0 for node in found.nodes)
    assert gemm.flops == 4 * (2 * 6 * 5 + 5)
    assert gemm.bytes == 4 * (4 * 6 + 6 * 5 + 5 + 4 * 5)
    assert found.flops == network.flops(4)
    assert found.inputs == {"input": "float32[4, 6]", "label": "int64[4]"}
    assert (found.framework, found.device, found.mode, found.loss) == ("reference", "cpu", "eval", None)
    assert sum(found.share(node) for node in found.nodes) == pytest.approx(1.0)
    assert found.seconds > 0
    assert found.memory.peak_bytes > 0


def test_tensors_that_are_needed_at_one_time() -> None:
    nodes = [helper.make_node("Relu", [a], [b]) for a, b in zip("xabc", "abcy", strict=True)]
    network = Network.load(make_model(nodes, [value("x", 1000)], [value("y", 1000)]))

    assert profiled(network).memory.live_bytes == 3 * 4000  # what is fed, what a node reads and what it computes


def test_gradients_count_three_times_and_nodes_without_one_say_so() -> None:
    network = small()
    forward, both = profiled(network), profiled(network, backprop=True)

    assert both.loss == "loss"
    assert both.memory.live_bytes is None
    for before, after in zip(forward.nodes, both.nodes, strict=True):
        assert before.flops is not None
        assert after.flops == before.flops * (1 if after.forward_only else 3), after
    assert "weighted sum of its outputs" in str(both)
    with pytest.raises(InvalidInputError, match="no loss to differentiate"):
        profiled(create_model("mlp", shape=(6,)), backprop=True)
    with pytest.raises(Deep500Error, match="no output named 'los'"):
        profiled(network, backprop=True, loss="los")


def test_values_of_any_kind_and_nested_graphs() -> None:
    then = helper.make_graph([helper.make_node("Neg", ["h"], ["a"])], "then", [], [value("a", "N", 2)])
    other = helper.make_graph([helper.make_node("Abs", ["h"], ["b"])], "other", [], [value("b", "N", 2)])
    nodes = [
        helper.make_node("Exp", ["x"], ["h"], name="exp"),
        helper.make_node("ReduceSum", ["h"], ["total"], name="total", keepdims=0),
        helper.make_node("Greater", ["total", "zero"], ["on"], name="compare"),
        helper.make_node("If", ["on"], ["c"], name="choice", then_branch=then, else_branch=other),
        helper.make_node("SequenceConstruct", ["c", "h"], ["s"], name="list"),
        helper.make_node("SequenceAt", ["s", "first"], ["y"], name="take"),
    ]
    stored = {"zero": np.float32(0), "first": np.array(0)}
    found = profiled(Network.load(make_model(nodes, [value("x", "N", 2)], [value("y", "N", 2)], stored)))
    rows = {node.node: node for node in found.nodes}

    assert all(rows[name].time is not None for name in ("exp", "total", "compare", "choice"))
    assert all(rows[name].time is None for name in ("list", "take"))
    assert rows["choice"].flops is None
    assert found.flops is None
    assert "list: not timed: " in str(found)


def test_inputs_are_those_given() -> None:
    nodes = [helper.make_node("Gather", ["table", "i"], ["y"])]
    stored = {"table": np.zeros((5, 2), np.float32)}
    network = Network.load(
        make_model(nodes, [value("i", "N", element=TensorProto.INT64)], [value("y", "N", 2)], stored)
    )

    assert profiled(network, inputs={"i": np.array([4, 4, 4])}).inputs == {"i": "int64[3]"}
    with pytest.raises(Deep500Error):
        profiled(network, inputs={"j": np.array([4])})


def test_what_is_not_accepted() -> None:
    network = small()

    for arguments, message in (
        (("net", MAKE), "profile was given 'net'; accepted is a Network"),
        ((network, "pytorch"), "the executor 'pytorch'; accepted is a function"),
    ):
        with pytest.raises(InvalidInputError, match=message):
            profile(*arguments)  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="plan was given as 3"):
        profile(network, MAKE, plan=3)  # type: ignore[arg-type]
    with pytest.raises(UnknownNameError, match="size named 'bath'"):
        profiled(network, sizes={"bath": 3})
    with pytest.raises(InvalidInputError, match="seed"):
        profiled(network, seed=-1)


def test_network_that_the_framework_cannot_run() -> None:
    nodes = [helper.make_node("Mine", ["x"], ["y"], domain="mine")]
    network = Network.load(make_model(nodes, [value("x", 1)], [value("y", 1)], domains=["mine"]))

    with pytest.raises(UnsupportedOperatorError, match="mine::Mine"):
        profiled(network)
