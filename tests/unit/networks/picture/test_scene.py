from __future__ import annotations

import numpy as np
from onnx import TensorProto, helper

from deep500.networks.network import Network
from deep500.networks.picture.scene import Scene, build_scene
from tests.unit.networks.support import make_model, value


def branching() -> Network:
    """A network with a branch that reads a tensor around it, stored tensors and two outputs of a node."""
    one = helper.make_graph([helper.make_node("Mul", ["h", "w"], ["a"], name="in")], "one", [], [value("a", "N", 4)])
    two = helper.make_graph([helper.make_node("Neg", ["h"], ["b"])], "two", [], [value("b", "N", 4)])
    nodes = [
        helper.make_node("Relu", ["x"], ["h"], name="first"),
        helper.make_node("If", ["on"], ["c"], name="choice", then_branch=one, else_branch=two),
        helper.make_node("Split", ["c"], ["p", "q"], name="split", axis=1, num_outputs=2),
    ]
    inputs = [value("x", "N", 4), value("on", element=TensorProto.BOOL)]
    stored = {"w": np.ones(4, np.float32)}
    return Network.load(make_model(nodes, inputs, [value("p", "N", 2), value("q", "N", 2)], stored))


def titles(scene: Scene) -> list[str]:
    return [card.title for card in scene.cards]


def test_cards_and_edges() -> None:
    scene = build_scene(branching().model.graph)
    edges = {(scene.cards[a].title, scene.cards[b].title) for a, b in scene.edges}

    assert titles(scene) == ["x", "on", "Relu", "If", "Split", "p", "q"]
    assert edges == {("x", "Relu"), ("on", "If"), ("Relu", "If"), ("If", "Split"), ("Split", "p"), ("Split", "q")}
    assert scene.cards[2].lines == ("first", "float32[N, 4]")
    assert scene.cards[4].lines[1].endswith("and 1 more")
    assert "axis = 1" in scene.cards[4].tooltip
    assert "output 1: q: float32[N, 2]" in scene.cards[4].tooltip


def test_graphs_within_nodes() -> None:
    choice = build_scene(branching().model.graph).cards[3]
    then = choice.inner["then_branch"]

    assert set(choice.inner) == {"then_branch", "else_branch"}
    assert [(card.kind, card.title) for card in then.cards] == [("captured", "h"), ("node", "Mul"), ("output", "a")]
    assert "w: float32[4], stored" in then.cards[1].tooltip
    assert choice.size[0] > sum(scene.outer_size[0] for scene in choice.inner.values())
    assert choice.size[1] > max(scene.outer_size[1] for scene in choice.inner.values())


def test_notes_of_a_heat_map() -> None:
    scene = build_scene(branching().model.graph, {"first": ("2 ms", 0.5)})

    assert (scene.cards[2].heat, scene.cards[2].lines[-1]) == (0.5, "2 ms")
    assert scene.cards[4].heat == 0.0
    assert scene.cards[0].heat is None


def test_long_names_keep_both_ends() -> None:
    name = "layers.0/" + "very_" * 20 + "long_17"
    node = helper.make_node("Relu", ["x"], ["y"], name=name)
    card = build_scene(Network.load(make_model([node], [value("x", 1)], [value("y", 1)])).model.graph).cards[1]

    assert len(card.lines[0]) == 30
    assert card.lines[0].startswith("layers.0/")
    assert card.lines[0].endswith("long_17")
    assert name in card.tooltip
