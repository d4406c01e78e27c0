from __future__ import annotations

import numpy as np
import pytest

from deep500.core.random import random_stream
from deep500.networks.layers import (
    BatchNormalization,
    Convolution,
    Dropout,
    InitializedParameter,
    Linear,
    TransposedConvolution,
    flat_size,
    glorot_normal,
    he_normal,
    normal,
    ones,
    truncated_normal,
    uniform,
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


def test_glorot_normal_scales_by_both_sizes() -> None:
    drawn = glorot_normal(30, 20)(random_stream(0), [3, 4])

    np.testing.assert_array_equal(drawn, random_stream(0).standard_normal((3, 4)) * 0.2)


def test_normal_has_mean_and_deviation() -> None:
    drawn = normal(0.5, 3.0)(random_stream(0), [2, 3])

    np.testing.assert_array_equal(drawn, random_stream(0).standard_normal((2, 3)) * 0.5 + 3)


@pytest.mark.parametrize("shape", [[100, 50], [7], []])
def test_truncated_normal_draws_anew_beyond_two_deviations(shape: list[int]) -> None:
    drawn = truncated_normal(0.5)(random_stream(0), shape)
    first = random_stream(0).standard_normal(tuple(shape)) * 0.5

    assert drawn.shape == tuple(shape)
    assert (np.abs(drawn) <= 1).all()
    np.testing.assert_array_equal(drawn[np.abs(first) <= 1], first[np.abs(first) <= 1])
    np.testing.assert_array_equal(drawn, truncated_normal(0.5)(random_stream(0), shape))


def test_uniform_stays_within_its_limit() -> None:
    drawn = uniform(0.25)(random_stream(0), [100, 100])

    assert np.abs(drawn).max() <= 0.25
    assert drawn.std() == pytest.approx(0.5 / np.sqrt(12), rel=0.02)


def test_shapes_of_grouped_and_transposed_convolutions() -> None:
    layers = (
        Convolution(4, 6, 3, groups=2),
        TransposedConvolution(4, 6, 3),
        TransposedConvolution(4, 6, 3, bias=False),
    )
    shapes = [{name: list(p.shape.numpy()) for name, p in layer.named_parameters() if p.shape} for layer in layers]

    assert shapes == [
        {"weight": [6, 2, 3, 3], "bias": [6]},
        {"weight": [4, 6, 3, 3], "bias": [6]},
        {"weight": [4, 6, 3, 3]},
    ]


def test_transposed_convolution_starts_at_the_scale_of_he() -> None:
    # Each output pixel sums 8 maps of (4 / 2)^2 pixels.
    weight = TransposedConvolution(8, 50, 4, stride=2).weight.initial(random_stream(0), [8, 50, 4, 4])

    assert weight.std() == pytest.approx(np.sqrt(2 / (8 * 4)), rel=0.05)


def test_dropout_has_no_parameters() -> None:
    assert list(Dropout(0.5).parameters()) == []
