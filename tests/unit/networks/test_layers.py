from __future__ import annotations

import numpy as np
import pytest

from deep500.core.random import random_stream
from deep500.networks.layers import (
    BatchNormalization,
    Convolution,
    InitializedParameter,
    Linear,
    flat_size,
    he_normal,
    ones,
    zeros,
)
from deep500.networks.tensor_roles import TensorRole, initializer_role


@pytest.mark.parametrize("gain", [1.0, 2.0**0.5])
def test_he_normal_scales_a_standard_normal(gain: float) -> None:
    drawn = he_normal(50, gain)(random_stream(0), [3, 4])

    np.testing.assert_array_equal(drawn, random_stream(0).standard_normal((3, 4)) * (gain / np.sqrt(50)))
    assert drawn.dtype == np.float64


def test_constants_leave_the_stream_alone() -> None:
    stream = random_stream(0)

    assert zeros(stream, [2]).tolist() == [0, 0]
    assert ones(stream, [2, 1]).tolist() == [[1], [1]]
    assert stream.random() == random_stream(0).random()


def test_flat_size() -> None:
    assert flat_size((2, 3, 4)) == 24
    assert flat_size(()) == 1


def test_layers_declare_their_parameters() -> None:
    layers = (Linear(3, 4), Convolution(2, 5, 3), Convolution(2, 5, 3, bias=False), BatchNormalization(6))
    shapes = [{name: list(p.shape.numpy()) for name, p in layer.named_parameters() if p.shape} for layer in layers]

    assert shapes == [
        {"weight": [4, 3], "bias": [4]},
        {"weight": [5, 2, 3, 3], "bias": [5]},
        {"weight": [5, 2, 3, 3]},
        {"scale": [6], "bias": [6], "running_mean": [6], "running_var": [6]},
    ]


def test_statistics_are_states() -> None:
    norm = BatchNormalization(3)
    roles = {n: initializer_role(p) for n, p in norm.named_parameters() if isinstance(p, InitializedParameter)}

    assert roles == {
        "scale": TensorRole.PARAMETER,
        "bias": TensorRole.PARAMETER,
        "running_mean": TensorRole.STATE,
        "running_var": TensorRole.STATE,
    }
