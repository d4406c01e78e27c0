"""Attention."""

import numpy as np
import onnx
import onnx.helper as oh
from hypothesis import strategies as st

from tests.conformance.onnx_gradients.cases import Draw, GradientCase, strategy
from tests.conformance.onnx_gradients.values import flags, in_float32, normal, seeds, sizes, within


def _draw_heads(draw: Draw) -> tuple[int, int, int]:
    """Draw the number of heads of queries and of keys, and their size."""
    keys = draw(st.integers(1, 2))
    return keys * draw(st.integers(1, 2)), keys, draw(st.integers(1, 3))


@strategy("Attention")
@st.composite
def attention(draw: Draw) -> GradientCase:
    """Heads in an axis of their own or not, shared by queries; masks, windows, earlier keys and values."""
    rng, (q_heads, heads, size) = draw(seeds), _draw_heads(draw)
    batch, queries, keys, past = draw(sizes), draw(sizes), draw(sizes), draw(st.integers(0, 2))
    wide = draw(sizes)
    inputs = [
        normal(rng, shape)
        for shape in ((batch, q_heads, queries, size), (batch, heads, keys, size), (batch, heads, keys, wide))
    ]
    attributes = {"is_causal": draw(flags)}
    if draw(st.booleans()):
        attributes |= {"scale": 0.5, "softcap": draw(st.sampled_from([0.0, 2.0]))}
    if draw(st.booleans()):
        attributes |= {"q_num_heads": q_heads, "kv_num_heads": heads}
        inputs = [x.swapaxes(1, 2).reshape(batch, x.shape[2], -1) for x in inputs]
    if draw(st.booleans()):
        inputs.append(normal(rng, (queries, keys + past)))
    outputs = 1
    if past:
        inputs += [None] * (4 - len(inputs))
        inputs += [normal(rng, (batch, heads, past, size)), normal(rng, (batch, heads, past, wide))]
        outputs = 3
    given = tuple(i for i, x in enumerate(inputs) if x is not None)
    return GradientCase("Attention", inputs, attributes, given, outputs, tuple(range(outputs)))


@strategy("LinearAttention")
@st.composite
def linear_attention(draw: Draw) -> GradientCase:
    """Every rule of update, with and without an earlier state."""
    rng, (q_heads, heads, size) = draw(seeds), _draw_heads(draw)
    batch, steps, wide = draw(sizes), draw(sizes), draw(sizes)
    rule = draw(st.sampled_from(["linear", "gated", "delta", "gated_delta"]))
    attributes = {"q_num_heads": q_heads, "kv_num_heads": heads, "update_rule": rule}
    if draw(st.booleans()):
        attributes["scale"] = 0.7
    inputs = [normal(rng, (batch, steps, count)) for count in (q_heads * size, heads * size, heads * wide)]
    inputs.append(normal(rng, (batch, heads, size, wide)) if draw(st.booleans()) else None)
    gates = heads * size if draw(st.booleans()) else heads
    inputs.append(within(-1.0, -0.1)(rng, (batch, steps, gates)) if "gated" in rule else None)
    rates = heads if draw(st.booleans()) else 1
    inputs.append(within(0.1, 0.9)(rng, (batch, steps, rates)) if "delta" in rule else None)
    while inputs[-1] is None:
        inputs.pop()
    given = tuple(i for i, x in enumerate(inputs) if x is not None)
    return in_float32(GradientCase("LinearAttention", inputs, attributes, given, 2, (0, 1)))


@strategy("RotaryEmbedding")
@st.composite
def rotary_embedding(draw: Draw) -> GradientCase:
    """Whole or part of the heads, in pairs or halves, by positions or without."""
    rng, batch, heads, steps, half = draw(seeds), draw(sizes), draw(sizes), draw(sizes), draw(st.integers(1, 2))
    size = 2 * half + (2 if draw(st.booleans()) else 0)
    attributes = {"interleaved": draw(flags), "num_heads": heads}
    if size > 2 * half:
        attributes["rotary_embedding_dim"] = 2 * half
    shape = (batch, heads, steps, size) if draw(st.booleans()) else (batch, steps, heads * size)
    inputs = [normal(rng, shape)]
    if draw(st.booleans()):
        inputs += [normal(rng, (4, half)), normal(rng, (4, half)), rng.integers(0, 4, (batch, steps))]
    else:
        inputs += [normal(rng, (batch, steps, half)) for _ in range(2)]
    return in_float32(GradientCase("RotaryEmbedding", inputs, attributes, (0, 1, 2)))


def _function(operator: str, shape: tuple[int, ...]) -> onnx.GraphProto:
    tensor = [oh.make_tensor_value_info(name, onnx.TensorProto.DOUBLE, shape) for name in ("before", "after")]
    return oh.make_graph([oh.make_node(operator, ["before"], ["after"])], "modifier", tensor[:1], tensor[1:])


@strategy("FlexAttention", "ai.onnx.preview")
@st.composite
def flex_attention(draw: Draw) -> GradientCase:
    """With and without functions of the scores and of the probabilities."""
    rng, (q_heads, heads, size) = draw(seeds), _draw_heads(draw)
    batch, queries, keys = draw(sizes), draw(sizes), draw(sizes)
    inputs = [
        normal(rng, shape)
        for shape in ((batch, q_heads, queries, size), (batch, heads, keys, size), (batch, heads, keys, draw(sizes)))
    ]
    shape = (batch, q_heads, queries, keys)
    attributes: dict[str, float | onnx.GraphProto] = {}
    if draw(st.booleans()):
        attributes["score_mod"] = _function("Tanh", shape)
    if draw(st.booleans()):
        attributes["prob_mod"] = _function("Sqrt", shape)
    if draw(st.booleans()):
        attributes["scale"] = float(np.float32(0.5))
    return GradientCase("FlexAttention", inputs, attributes, (0, 1, 2), domain="ai.onnx.preview")
