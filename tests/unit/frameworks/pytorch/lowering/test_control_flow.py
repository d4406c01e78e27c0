"""Loops that do not run, what they carry, and their derivatives."""

from __future__ import annotations

import numpy as np
import onnx.parser
import pytest
import torch

from deep500.core.errors import InvalidInputError
from deep500.frameworks.pytorch.backend import prepare
from deep500.frameworks.pytorch.executor import from_model


def parsed(text):
    return onnx.parser.parse_model('<ir_version: 10, opset_import: ["": 23]>' + text)


SCAN = """
scan (float[2] start, float[2, N] x) => (float[2] last, float[2, M] sums, float[M, 2] rows)
{
  last, sums, rows = Scan <num_scan_inputs = 1, scan_input_axes = [1], scan_input_directions = [1],
                           scan_output_axes = [-1, 0], scan_output_directions = [1, 0],
    body = step (float[2] s, float[2] v) => (float[2] t, float[2] p, float[2] q)
    { t = Add(s, v)  p = Identity(t)  q = Mul(t, v) }> (start, x)
}
"""

LOOP = """
loop (int64 n, float[2] x) => (float[2] y, float[K, 2] squares, seq(float[2]) kept, int64 count)
<float[2] w = {0.5, 1.5}>
{
  none = SequenceEmpty <dtype = 1> ()
  y, kept, squares = Loop <body = step (int64 i, bool go, float[2] a, seq(float[2]) s)
      => (bool still, float[2] b, seq(float[2]) r, float[2] c)
    { b = Mul(a, w)  r = SequenceInsert(s, b)  c = Mul(b, b)  still = Identity(go) }> (n, , x, none)
  count = SequenceLength(kept)
}
"""


def spaced(text):
    """The parser of ONNX wants every statement on a line of its own."""
    return (
        text.replace("  p =", "\n p =")
        .replace("  q =", "\n q =")
        .replace("  r =", "\n r =")
        .replace("  c =", "\n c =")
        .replace("  still =", "\n still =")
    )


@pytest.mark.parametrize("length", [0, 1, 4])
def test_scan_of_any_length_goes_backwards(length):
    x = np.arange(2 * length, dtype=np.float32).reshape(2, length)
    start = np.array([1, 2], np.float32)
    last, sums, rows = prepare(parsed(spaced(SCAN))).run([start, x])
    state, expected_sums, expected_rows = start, [], []
    for column in x.T[::-1]:
        state = state + column
        expected_sums.insert(0, state)
        expected_rows.append(state * column)
    np.testing.assert_array_equal(last, state)
    np.testing.assert_array_equal(sums, np.array(expected_sums, np.float32).reshape(length, 2).T)
    np.testing.assert_array_equal(rows, np.array(expected_rows, np.float32).reshape(length, 2))


@pytest.mark.parametrize("rounds", [0, 3])
def test_loop_carries_tensors_and_sequences(rounds):
    x = np.array([1, 2], np.float32)
    y, squares, kept, count = prepare(parsed(spaced(LOOP))).run([np.array(rounds), x])
    powers = [x * np.array([0.5, 1.5], np.float32) ** (i + 1) for i in range(rounds)]
    np.testing.assert_allclose(y, powers[-1] if powers else x)
    np.testing.assert_allclose(squares, np.array(powers, np.float32).reshape(rounds, 2) ** 2)
    assert (len(kept), int(count)) == (rounds, rounds)


def test_loop_is_differentiated_by_what_it_carries_and_captures():
    module = from_model(parsed(spaced(LOOP))).graph_module().double()

    def loss(x, w):
        return torch.func.functional_call(module, {"w": w}, (torch.tensor(3), x))[:2]

    x, w = (torch.tensor(v, dtype=torch.float64, requires_grad=True) for v in ([1.0, 2.0], [0.5, 1.5]))
    assert torch.autograd.gradcheck(loss, (x, w))


def test_limit_alone_ignores_the_condition_of_the_body():
    text = """
    loop (int64 n, float x) => (float y)
    {
      y = Loop <body = step (int64 i, bool go, float a) => (bool still, float b)
        { b = Add(a, a)
          still = Constant <value = bool {0}> () }> (n, , x)
    }
    """
    (y,) = prepare(parsed(text)).run([np.array(3), np.array(1, np.float32)])
    assert y == 8


@pytest.mark.parametrize("position", [-3, 2])
def test_places_that_a_sequence_does_not_have_are_refused(position):
    text = """
    at (float[2] x, int64 p) => (float[2] y)
    { s = SequenceConstruct(x, x)
      y = SequenceAt(s, p) }
    """
    with pytest.raises(InvalidInputError, match="accepted is -2 to 1"):
        prepare(parsed(text)).run([np.zeros(2, np.float32), np.array(position)])
