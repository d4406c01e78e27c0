from __future__ import annotations

import numpy as np
import pytest

from deep500.core.errors import UnsupportedOperatorError
from deep500.networks import program_model as tested
from deep500.networks.creation import create_model
from deep500.networks.program_model import program_model


def test_what_protobuf_cannot_hold_becomes_an_input(monkeypatch: pytest.MonkeyPatch) -> None:
    network = create_model("mlp", shape=(3,), hidden=(4,), classes=2)
    program = network.program(frozenset({"input"}))
    stored = dict(zip(network.parameters, network.fetch_tensors([*network.parameters])))
    whole = program_model(network, program, stored=stored)
    monkeypatch.setattr(tested, "INLINE_LIMIT", 40)
    split = program_model(network, program, stored=stored)

    assert [value.name for value in whole.graph.input] == ["input"]
    assert {tensor.name for tensor in whole.graph.initializer} == set(stored)
    assert [value.name for value in split.graph.input] == ["input", *network.parameters]
    assert not split.graph.initializer


def test_constants_that_protobuf_cannot_hold_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    network = create_model("mlp", shape=(3,), hidden=(), classes=2)
    program = network.program(frozenset({"input"}))
    monkeypatch.setattr(tested, "INLINE_LIMIT", 40)
    monkeypatch.setattr(type(program), "constants", ("big",), raising=False)
    object.__setattr__(program, "constants", ("big",))

    with pytest.raises(UnsupportedOperatorError, match="The constants of network 'mlp' have 80 bytes"):
        program_model(network, program, stored={"big": np.ones(10)})
