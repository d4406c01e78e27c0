from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

from deep500.core.errors import InvalidInputError, UnknownNameError
from deep500.networks.creation import create_model
from deep500.networks.network import Network
from tests.unit.networks.support import make_model, relu_model, value

EXPECTED = """\
Network 'simple_cnn' in evaluation mode
Inputs: input: float32[batch, 1, 4, 4], label: int64[batch]
Outputs: output: float32[batch, 3]
Losses: loss: float32[]

Node                                Operator                  Output                    Parameters   FLOPs
──────────────────────────────────────────────────────────────────────────────────────────────────────────
convolutions.0/Conv_node_0          Conv                      float32[batch, 2, 4, 4]           18   1,152
norms.0/BatchNormalization_node_1   BatchNormalization        float32[batch, 2, 4, 4]            4     128
Relu_node_2                         Relu                      float32[batch, 2, 4, 4]            0      64
AveragePool_node_3                  AveragePool               float32[batch, 2, 2, 2]            0      64
GlobalAveragePool_node_4            GlobalAveragePool         float32[batch, 2, 1, 1]            0      16
Flatten_node_5                      Flatten                   float32[batch, 2]                  0       0
classifier/Gemm_node_6              Gemm                      float32[batch, 3]                  9      30
SoftmaxCrossEntropyLoss_node_7      SoftmaxCrossEntropyLoss   float32[]                          0      36

Parameters: 31 (124 bytes)
States: 4 (16 bytes)
FLOPs of one inference of 2 samples: 1,490"""


def small_network() -> Network:
    network = create_model("simple_cnn", shape=(1, 4, 4), classes=3, widths=(2,))
    network.append_loss("SoftmaxCrossEntropyLoss")
    return network


def test_summary() -> None:
    network = small_network()

    assert network.summary(2) == EXPECTED
    assert network.flops(2) == 1490
    assert Network.load(network.to_proto()).summary(2) == EXPECTED
    assert network.train().summary(2) == EXPECTED.replace("evaluation", "training")


@pytest.mark.parametrize(
    "environment", [{"COLUMNS": "20", "LINES": "5"}, {"FORCE_COLOR": "1", "TERM": "xterm-256color"}, {"NO_COLOR": "1"}]
)
def test_terminal_does_not_matter(monkeypatch: pytest.MonkeyPatch, environment: dict[str, str]) -> None:
    for name, setting in environment.items():
        monkeypatch.setenv(name, setting)

    assert small_network().summary(2) == EXPECTED


def test_one_sample() -> None:
    lines = small_network().summary().splitlines()

    assert lines[-1] == "FLOPs of one inference of 1 sample: 745"
    assert all(line == line.rstrip() for line in lines)


def test_names_are_no_markup_and_shared_parameters_count_once() -> None:
    nodes = [
        helper.make_node("Mul", ["x", "w"], ["h"], name="[red]first[/red]"),
        helper.make_node("Mul", ["h", "w"], ["z"], name=":smile:\nsecond"),
        helper.make_node("Mine", ["z", "v"], ["y"], name="third", domain="mine"),
    ]
    stored: dict[str, Any] = {"w": np.ones(2, np.float32), "v": np.ones(3, np.float32)}
    proto = make_model(nodes, [value("x", "N", 2)], [value("y", "N", 2)], stored, domains=["mine"])

    lines = Network.load(proto).summary(2).splitlines()

    assert [line.split() for line in lines[6:9]] == [
        ["[red]first[/red]", "Mul", "float32[N,", "2]", "2", "4"],
        [":smile:", "second", "Mul", "float32[N,", "2]", "0", "4"],
        ["third", "mine::Mine", "float32[N,", "2]", "3", "?"],
    ]
    assert lines[-1] == "Not counted, for want of a rule: mine::Mine (1 node)"


def test_batch_size_is_checked() -> None:
    with pytest.raises(InvalidInputError, match="batch_size was given as 0"):
        small_network().summary(0)


def test_sizes_that_are_not_known_are_told_and_can_be_given() -> None:
    network = Network.load(relu_model("N", "width"))

    lines = network.summary(2).splitlines()
    assert lines[6].split()[-2:] == ["0", "?"]
    assert "FLOPs of one inference of 2 samples: 0" in lines
    assert lines[-1].startswith("Not counted, for a size that is not known: 1 node. The floating-point operations of")
    assert "'width'" in lines[-1]
    assert network.summary(2, {"width": 5}).splitlines()[-1] == "FLOPs of one inference of 2 samples: 10"
    with pytest.raises(UnknownNameError, match="size named 'with'"):
        network.summary(sizes={"with": 5})


def test_values_of_any_kind_and_nested_graphs() -> None:
    inner = helper.make_graph([helper.make_node("Neg", ["x"], ["a"])], "inner", [], [value("a", "N", 2)])
    other = helper.make_graph(
        [helper.make_node("If", ["on"], ["b"], name="deep", then_branch=inner, else_branch=inner)],
        "other",
        [],
        [value("b", "N", 2)],
    )
    nodes = [
        helper.make_node("If", ["on"], ["y"], name="choice", then_branch=inner, else_branch=other),
        helper.make_node("SequenceConstruct", ["x", "y"], ["s"], name="list"),
        helper.make_node("StringSplit", ["t"], ["parts", "n"], name="texts"),
    ]
    inputs = [value("x", "N", 2), value("on", element=TensorProto.BOOL), value("t", 1, element=TensorProto.STRING)]
    outputs = [
        helper.make_tensor_sequence_value_info("s", TensorProto.FLOAT, None),
        value("parts", 1, None, element=TensorProto.STRING),
    ]
    network = Network.load(make_model(nodes, inputs, outputs))
    lines = network.summary(3).splitlines()
    rows = [line.rstrip() for line in lines if line.startswith((" ", "choice", "list", "texts"))]
    starts = [(row[: len(row) - len(row.lstrip())].count(" "), row.split()[0], row.split()[-1]) for row in rows]

    assert starts == [
        (0, "choice", "?"),
        *((2, "else_branch()", "else_branch()"), (4, "deep", "?")),
        *((6, "else_branch()", "else_branch()"), (8, "a", "6"), (6, "then_branch()", "then_branch()"), (8, "a", "6")),
        *((2, "then_branch()", "then_branch()"), (4, "a", "6")),
        *((0, "list", "0"), (0, "texts", "0")),
    ]
    assert "sequence of float32[N, 2]" in lines[2]
    assert "parts: string[1, " in lines[2]


def test_names_are_no_control_characters() -> None:
    odd = "\x1b[31m\u202e\n"
    nodes = [helper.make_node("Mine" + odd, ["x" + odd], ["y"], name="n" + odd, domain="mine" + odd)]
    proto = make_model(nodes, [value("x" + odd, "N" + odd, 2)], [value("y", "N" + odd, 2)], domains=["mine" + odd])

    assert all(line.isprintable() for line in Network.load(proto).summary().splitlines())
