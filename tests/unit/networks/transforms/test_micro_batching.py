from __future__ import annotations

from typing import Any

import pytest

from deep500.core.errors import InvalidInputError, InvalidNetworkError
from deep500.frameworks.reference import from_model
from deep500.networks.creation import create_model
from deep500.networks.network import Network
from deep500.networks.transformation import transform
from deep500.networks.transforms import micro_batching as module
from deep500.networks.transforms.micro_batching import MicroBatching

BATCH = 24
ENOUGH, TIGHT = 10**8, 1_030_000


def residual() -> Network:
    network = create_model("resnet", depth=8, shape=(3, 8, 8))
    network.append_loss("SoftmaxCrossEntropyLoss")
    return network


def test_nothing_is_divided_where_there_is_enough_memory() -> None:
    original = residual()

    result = transform(original, MicroBatching(BATCH, ENOUGH))

    assert len(result.model.graph) == len(original.model.graph)
    assert result.inputs["input"].shape == (BATCH, 3, 8, 8)


def test_layers_that_need_much_are_divided_and_the_network_computes_the_same() -> None:
    original = residual()

    result = transform(original, MicroBatching(BATCH, TIGHT), executor=from_model)

    operators = [node.op_type for node in result.model.graph]
    assert operators.count("Split") == operators.count("Concat") == 2
    assert result.parameters == original.parameters
    assert Network.load(result.to_proto()).outputs == result.outputs


def test_training_mode_is_kept_where_only_convolutions_are_divided() -> None:
    result = transform(residual().train(), MicroBatching(BATCH, TIGHT), executor=from_model)

    assert result.mode == "train"


def test_plan_fits_and_gets_finer_as_memory_gets_less() -> None:
    def parts(bound: int) -> int:
        return sum(map(len, MicroBatching(BATCH, bound).plan(residual()).values()))

    assert parts(ENOUGH) < parts(1_240_000) < parts(TIGHT)
    assert all(sum(sizes) == BATCH for sizes in MicroBatching(BATCH, TIGHT).plan(residual()).values())


def test_measured_times_can_decide() -> None:
    network = create_model("simple_cnn", shape=(1, 8, 8))

    result = transform(network, MicroBatching(8, ENOUGH, executor=from_model), executor=from_model)

    assert result.outputs["output"].shape == (8, 10)


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        (
            "for index, (part, size) in enumerate(zip(split.outputs, sizes)):",
            "for index, (part, size) in enumerate(zip([*split.outputs[1:], split.outputs[0]], sizes)):",
        ),
        ("[part, *node.inputs[1:]]", "[split.outputs[0], *node.inputs[1:]]"),
    ],
)
def test_wrong_division_is_caught_by_the_check(monkeypatch: pytest.MonkeyPatch, right: str, wrong: str) -> None:
    import inspect

    source = inspect.getsource(module._divide)
    planted: dict[str, Any] = {}
    assert right in " ".join(source.split()).replace("( ", "(").replace(", )", ")") or right in source
    exec(compile(source.replace(right, wrong), "planted", "exec"), {**vars(module)}, planted)
    monkeypatch.setattr(module, "_divide", planted["_divide"])

    with pytest.raises(InvalidNetworkError, match="MicroBatching changed what"):
        transform(residual(), MicroBatching(BATCH, TIGHT), executor=from_model)


def test_bound_below_what_must_be_there_is_refused() -> None:
    with pytest.raises(InvalidInputError, match=r"memory_bound.*needs [0-9,]+ with the smallest"):
        transform(residual(), MicroBatching(BATCH, 10**5))


def test_fixed_batch_is_refused() -> None:
    with pytest.raises(InvalidNetworkError, match="needs a batch size with a name"):
        transform(create_model("mlp", 4, shape=(4,)), MicroBatching(4, ENOUGH))


def test_network_without_such_layers_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="no node that can be divided"):
        transform(create_model("mlp", shape=(4,)), MicroBatching(4, ENOUGH, operators=["Conv"]))


@pytest.mark.parametrize(
    ("arguments", "match"),
    [((0, 1), "batch_size"), ((True, 1), "batch_size"), ((4, 0), "memory_bound"), ((4, 1.5), "memory_bound")],
)
def test_bad_arguments_are_refused(arguments, match) -> None:
    with pytest.raises(InvalidInputError, match=match):
        MicroBatching(*arguments)
    with pytest.raises(InvalidInputError, match=r"such as \['Conv'\]"):
        MicroBatching(4, 4, operators="Conv")
