from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import helper

from deep500.core.errors import FileWriteError, InvalidInputError
from deep500.measure.clock import Stopwatch
from deep500.networks.creation import create_model
from deep500.networks.network import Network
from deep500.networks.picture.drawing import check_picture_path, network_picture
from deep500.networks.picture.families import FAMILIES
from tests.unit.networks.picture.test_scene import branching
from tests.unit.networks.support import make_model, value

SVG = "{http://www.w3.org/2000/svg}"


def cards(svg: str, kind: str = "node") -> list[ET.Element]:
    return [group for group in ET.fromstring(svg).iter(f"{SVG}g") if group.get("class") == kind]


def tooltips(svg: str, kind: str = "node") -> list[str]:
    return [str(card.findtext(f"{SVG}title")).split("\n")[0] for card in cards(svg, kind)]


@pytest.mark.parametrize("name", ["lenet", "mlp", "resnet", "simple_cnn"])
def test_every_node_input_and_output_is_there(name: str) -> None:
    network = create_model(name, shape=(1, 16, 16))
    network.append_loss("SoftmaxCrossEntropyLoss")
    svg = network_picture(network)

    assert sorted(tooltips(svg)) == sorted(str(node.name) for node in network.model.graph)
    assert tooltips(svg, "input") == ["input: input", "input: label"]
    assert (tooltips(svg, "output"), tooltips(svg, "loss")) == (["output: output"], ["loss: loss"])
    assert svg == network_picture(Network.load(network.to_proto()).eval())  # the same network, the same text


def test_nodes_of_branches_are_within_their_node() -> None:
    svg = network_picture(branching())
    (choice,) = (card for card in cards(svg) if str(card.findtext(f"{SVG}title")).startswith("choice"))
    inner = [group for group in choice.iter(f"{SVG}g") if group.get("class") == "node" and group is not choice]

    assert len(cards(svg)) == 5
    assert len(inner) == 2
    assert "graph: 5 nodes" in svg


def test_names_are_escaped() -> None:
    name = "a<b>&\"c'd\x07]]>é\n{x}"
    nodes = [helper.make_node("Relu", ["x"], ["y"], name=name), helper.make_node("Mine", ["y"], ["z"], domain="<mine>")]
    proto = make_model(nodes, [value("x", "<n>", 2)], [value("z", "<n>", 2)], domains=["<mine>"])
    proto.graph.name = "<title>"
    svg = network_picture(Network.load(proto))

    assert tooltips(svg)[0] == "a<b>&\"c'd\\x07]]>é\\n{x}"
    assert ET.fromstring(svg).findtext(f"{SVG}title") == "<title>: 2 nodes, 0 parameters"


def test_colours_are_of_families_or_of_heat() -> None:
    network = branching()
    plain, hot = network_picture(network), network_picture(network, {"first": ("2 ms", 1.0)})

    assert FAMILIES["activation"] in plain
    assert ">control flow, lists</text>" in plain
    assert FAMILIES["activation"] not in hot
    assert ">2 ms</text>" in hot
    colours = [str(card[1].get("fill")) for card in cards(hot)]
    assert len({*colours}) == 2
    assert "#ffffff" in colours


def test_large_networks_take_seconds() -> None:
    stream = np.random.default_rng(0)
    names = ["x", "mask"]
    nodes: list[Any] = []
    for number in range(1000):
        far = int(stream.integers(max(0, len(names) - 10), len(names)))
        nodes.append(helper.make_node("Add", [names[far], names[-1] if number % 3 else "mask"], [f"h{number}"]))
        names.append(f"h{number}")
    read = {name for node in nodes for name in node.input}
    outputs = [value(name, "N", 2) for name in names[2:] if name not in read]
    network = Network.load(make_model(nodes, [value("x", "N", 2), value("mask", "N", 2)], outputs))
    watch = Stopwatch()
    svg = network_picture(network)

    assert len(cards(svg)) == 1000
    assert len(svg) < 2_000_000
    assert watch.elapsed_s() < 20  # two seconds where nothing else runs


def test_network_without_nodes() -> None:
    network = Network.load(make_model([], [value("x", "N")], [value("x", "N")]))

    assert tooltips(network_picture(network), "output") == ["output: x"]


def test_files(tmp_path: Path) -> None:
    network = branching()
    network.picture(tmp_path / "graph.SVG")

    assert (tmp_path / "graph.SVG").read_text(encoding="utf-8") == network_picture(network)
    for path in ("graph.png", "svg", "", 7):
        with pytest.raises(InvalidInputError, match=r"accepted are names that end with \.svg"):
            check_picture_path(path)  # type: ignore[arg-type]
    with pytest.raises(FileWriteError, match="picture"):
        network.picture(tmp_path / "nowhere" / "graph.svg")
