"""Edge cases of the recurrent operators; values and derivatives are in the conformance suite."""

from __future__ import annotations

import numpy as np
import pytest

from deep500.core.errors import OperatorError
from deep500.operators.library.gru import GRU
from deep500.operators.library.lstm import LSTM
from deep500.operators.library.rnn import RNN

RNG = np.random.default_rng(0)
ALL = pytest.mark.parametrize(("operator", "gates"), [(RNN, 1), (GRU, 3), (LSTM, 4)])


def draw(gates: int, *, steps: int = 3, batch: int = 2, size: int = 2, hidden: int = 3, count: int = 1) -> list:
    shapes = [(steps, batch, size), (count, gates * hidden, size), (count, gates * hidden, hidden)]
    return [RNG.standard_normal(shape) for shape in shapes]


@ALL
def test_a_sequence_without_steps_keeps_its_state(operator: type, gates: int) -> None:
    inputs, state = draw(gates), RNG.standard_normal((1, 2, 3))

    y, last, *_ = operator().forward([*inputs, None, np.array([0, 3], np.int32), state])

    assert not y[:, :, 0].any()
    np.testing.assert_array_equal(last[:, 0], state[:, 0])
    np.testing.assert_array_equal(last[:, 1], y[-1][:, 1])


@ALL
def test_what_lies_after_a_sequence_has_no_influence_and_no_gradient(operator: type, gates: int) -> None:
    inputs, lengths = draw(gates, count=2), np.array([1, 2], np.int32)
    layer = operator(direction="bidirectional")
    outputs = layer.forward([*inputs, None, lengths])
    changed = [inputs[0].copy(), *inputs[1:]]
    changed[0][1:, 0] = changed[0][2:, 1] = np.nan

    np.testing.assert_array_equal(layer.forward([*changed, None, lengths])[0], outputs[0])
    by_x = layer.backward([np.ones_like(outputs[0])], [*inputs, None, lengths], outputs)[0]
    assert not by_x[1:, 0].any()
    assert not by_x[2:, 1].any()
    assert by_x[0].all()


@ALL
@pytest.mark.parametrize(("steps", "batch"), [(0, 2), (2, 0)])
def test_empty(operator: type, gates: int, steps: int, batch: int) -> None:
    inputs = draw(gates, steps=steps, batch=batch)
    outputs = operator().forward(inputs)

    gradients = operator().backward([np.ones_like(y) for y in outputs], inputs, outputs)

    assert outputs[0].shape == (steps, 1, batch, 3)
    assert outputs[1].shape == (1, batch, 3)
    assert [g.shape for g in gradients] == [x.shape for x in inputs]


def test_parameters_go_to_the_functions_that_have_some() -> None:
    layer = LSTM(
        activations=["Sigmoid", "LeakyRelu", "ScaledTanh"], activation_alpha=[0.25, 2.0], activation_beta=[0.5]
    )

    parameters = [(a.alpha, a.beta) for a in layer.activations[0]]

    assert parameters == [(0.0, 0.0), (0.25, 0.0), (2.0, 0.5)]


def test_functions_do_not_overflow() -> None:
    x, w, r = np.array([[[1e4]], [[-1e4]]]), np.ones((1, 1, 1)), np.zeros((1, 1, 1))

    for name, expected in (("Sigmoid", [1, 0]), ("Softplus", [1e4, 0]), ("Elu", [1e4, -1]), ("Tanh", [1, -1])):
        y = RNN(activations=[name])(x, w, r)[0]
        assert y.ravel().tolist() == expected


@ALL
def test_refusals(operator: type, gates: int) -> None:
    x, w, r = draw(gates)
    for inputs, message in (
        ([x[0], w, r], "accepted is rank 3"),
        ([x, w[:, 1:], r], "received W of shape"),
        ([x, w, r[:, 1:]], "received R of shape"),
        ([x, w, r, np.ones((1, 2))], "received B of shape"),
        ([x, w, r, None, np.ones(3, np.int32)], "received sequence_lens of shape"),
        ([x, w, r, None, np.array([4, 0], np.int32)], "int32 from 0 to 3"),
        ([x, w, r, None, None, np.ones((1, 2, 4))], "received initial_h of shape"),
        ([x, w.astype(np.float32), r], "inputs of one dtype"),
    ):
        with pytest.raises(OperatorError, match=message):
            operator().forward(inputs)
    for attributes, message in (
        ({"direction": "sideways"}, "one of forward, reverse, bidirectional"),
        ({"activations": ["Tanh"] * 7}, "accepted are"),
        ({"activations": ["Sine"] * {1: 1, 3: 2, 4: 3}[gates]}, "activations holds 'Sine'"),
        ({"activation_alpha": [0.1]}, "one entry for each function"),
        ({"layout": 2}, "0 or 1"),
    ):
        with pytest.raises(OperatorError, match=message):
            operator(**attributes)
