"""Shapes that networks compute reach the operators that use them as numbers and sizes, without a look at tensors."""

from __future__ import annotations

import onnx
import onnx.parser
import pytest
import torch

from deep500.frameworks.pytorch.executor import from_model

#: Merges the last two axes by Shape, Gather, Mul and Concat, and halves the first one by Slice.
MERGED = """
<ir_version: 10, opset_import: ["": 23]>
merged (float[N, L, 4, 3] x) => (float[A, B, C] y, float[D, L, 4, 3] z)
<int64 first = {0}, int64[1] second = {1}, int64[2] lasts = {2, 3}, int64[1] zero = {0}, int64 two = {2},
 int64[1] begin = {0}>
{
  sizes = Shape(x)
  n = Gather(sizes, first)
  row = Unsqueeze(n, zero)
  length = Gather(sizes, second)
  wide = Gather(sizes, lasts)
  width = ReduceProd<keepdims = 1>(wide)
  shape = Concat<axis = 0>(row, length, width)
  y = Reshape(x, shape)
  half = Div(n, two)
  end = Unsqueeze(half, zero)
  z = Slice(x, begin, end, zero)
}
"""


@pytest.fixture
def module():
    return from_model(onnx.parser.parse_model(MERGED)).graph_module()


@pytest.mark.parametrize("batch", [1, 2, 5])
def test_computed_shapes_are_right_for_every_batch(module, batch):
    x = torch.randn(batch, 7, 4, 3)
    y, z = module(x)
    torch.testing.assert_close(y, x.reshape(batch, 7, 12))
    torch.testing.assert_close(z, x[: batch // 2])


def test_computed_shapes_break_no_graph(module):
    torch._dynamo.reset()
    compiled = torch.compile(module, fullgraph=True, backend="eager")
    for batch in (2, 3, 6):
        x = torch.randn(batch, 7, 4, 3)
        torch.testing.assert_close(compiled(x)[0], x.reshape(batch, 7, 12))
        torch.testing.assert_close(compiled(x)[1], x[: batch // 2])


def test_no_tensor_is_made_of_a_shape(module):
    names = {getattr(node.target, "__name__", node.target) for node in module.graph.nodes}
    assert not names & {"shape", "gather", "cat", "div"}
