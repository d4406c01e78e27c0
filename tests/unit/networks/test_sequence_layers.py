from __future__ import annotations

import numpy as np
import pytest

from deep500.core.random import random_stream
from deep500.networks.layers import InitializedParameter, normal, ones
from deep500.networks.sequence_layers import (
    Embedding,
    LayerNormalization,
    LongShortTermMemory,
    Projection,
    RMSNormalization,
    RotaryPositions,
    VocabularyScores,
    sinusoidal_positions,
)
from deep500.networks.tensor_roles import TensorRole, initializer_role


def test_layers_declare_their_parameters() -> None:
    embedding = Embedding(5, 3, ones)
    layers = (
        embedding,
        Projection(2, 4, ones),
        Projection(2, 4, ones, bias=False),
        VocabularyScores(None, 5, 3, ones),
        VocabularyScores(embedding, 5, 3, ones),
        LayerNormalization(6),
        RMSNormalization(6),
        LongShortTermMemory(3, 2, ones),
    )
    shapes = [{name: list(p.shape.numpy()) for name, p in layer.named_parameters() if p.shape} for layer in layers]

    assert shapes == [
        {"weight": [5, 3]},
        {"weight": [2, 4], "bias": [4]},
        {"weight": [2, 4]},
        {"weight": [5, 3]},
        {},
        {"scale": [6], "bias": [6]},
        {"scale": [6]},
        {"input_weight": [1, 8, 3], "recurrent_weight": [1, 8, 2], "bias": [1, 16]},
    ]


def test_positions_are_constants() -> None:
    tables = dict(RotaryPositions(4, 6, 100.0).named_parameters())

    assert {name: initializer_role(p) for name, p in tables.items()} == {
        "cosines": TensorRole.CONSTANT,
        "sines": TensorRole.CONSTANT,
    }
    angles = np.outer(np.arange(4), [1, 100 ** (-1 / 3), 100 ** (-2 / 3)])
    for name, function in (("cosines", np.cos), ("sines", np.sin)):
        table = tables[name]
        assert isinstance(table, InitializedParameter)
        np.testing.assert_allclose(table.initial(random_stream(0), [4, 3]), function(angles), rtol=1e-12)


@pytest.mark.parametrize("features", [4, 5])
def test_sinusoidal_positions(features: int) -> None:
    table = sinusoidal_positions(random_stream(0), [3, features])

    for position in range(3):
        for pair in range((features + 1) // 2):
            angle = position / 10000 ** (2 * pair / features)
            values = [np.sin(angle), np.cos(angle)][: features - 2 * pair]
            np.testing.assert_allclose(table[position, 2 * pair : 2 * pair + 2], values, atol=1e-15)


def test_embedding_takes_any_rule() -> None:
    drawn = Embedding(50, 40, normal(0.5, 2.0)).weight.initial(random_stream(0), [50, 40])

    assert drawn.std() == pytest.approx(0.5, rel=0.1)
    assert drawn.mean() == pytest.approx(2, abs=0.1)
