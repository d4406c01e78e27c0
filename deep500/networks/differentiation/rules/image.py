"""Derivatives of operators on images."""

from __future__ import annotations

import numpy as np

from deep500.networks.differentiation.builder import GraphBuilder, Value
from deep500.networks.differentiation.reverse_pass import ReversedNode
from deep500.networks.differentiation.rule_table import reverse_rule

__all__: list[str] = []


@reverse_rule("Resize", since=18)
def resize(node: ReversedNode, g: Value) -> Value:
    """``dx = M^T g`` along every axis; M is the identity, resized. Source: ONNX Resize-19."""
    write, x = node.builder, node.input(0)
    if node.get("keep_aspect_ratio_policy", "stretch") != "stretch":
        raise node.refuse("with a keep_aspect_ratio_policy is not differentiated")
    roi, scales, sizes = (_unless_empty(node.optional(i)) for i in (1, 2, 3))
    rank = x.rank
    axes = [axis % rank for axis in node.get("axes", None) or range(rank)]
    dropped = ("axes", "extrapolation_value", "keep_aspect_ratio_policy")
    settings = {key: value for key, value in node.attributes.items() if key not in dropped}
    crops = settings.get("coordinate_transformation_mode") == "tf_crop_and_resize"
    for place, axis in enumerate(axes):
        known = None if scales is None else scales.constant
        if known is not None and known[place] == 1 and not crops:
            continue
        square = _identity(write, write.size(x, axis), g)
        parts = [None if v is None else _entries(write, v, place) for v in (scales, sizes)]
        region = _entries(write, roi, place, place + len(axes)) if crops and roi is not None else None
        matrix = write.op("Resize", square, region, *parts, axes=[0], extrapolation_value=0.0, **settings)
        order = [*(i for i in range(rank) if i != axis), axis]
        back = [int(i) for i in np.argsort(order)]
        g = write.transpose(write.op("MatMul", write.transpose(g, *order), matrix), *back)
    return write.same_type(g, x)


def _unless_empty(value: Value | None) -> Value | None:
    """Return an input; an empty one counts as left out."""
    return None if value is None or value.shape == (0,) else value


def _entries(write: GraphBuilder, vector: Value, *places: int) -> Value:
    return write.op("Gather", vector, write.ints(*places), axis=0)


def _identity(write: GraphBuilder, size: Value, like: Value) -> Value:
    return write.op("EyeLike", write.op("Expand", write.number(1, like), write.sizes(size, size)))


@reverse_rule("AffineGrid", since=20)
def affine_grid(node: ReversedNode, g: Value) -> Value:
    """``dtheta = G^T P`` for the positions P that the identity gives. Source: ONNX AffineGrid-20."""
    write, theta, size = node.builder, node.input(0), node.input(1)
    shape = theta.shape
    rank = None if shape is None else shape[1]
    if not isinstance(rank, int):
        raise node.refuse("of an unknown number of axes is not differentiated; declare the shape of theta")
    unit = write.cast_like(write.constant(np.eye(rank, rank + 1)[None]), g)
    one = write.op("Concat", write.ints(1), write.op("Slice", size, write.ints(1), write.ints(2 + rank)), axis=0)
    grid = write.op("AffineGrid", unit, one, align_corners=node.get("align_corners", 0))
    positions = write.op("Reshape", grid, write.ints(-1, rank))
    ones = write.ones_like(write.op("Slice", positions, write.ints(0), write.ints(1), write.ints(1)))
    whole = write.op("Concat", positions, ones, axis=1)
    flat = write.reshape(g, write.sizes(write.size(theta, 0), write.op("Shape", positions)))
    return write.op("MatMul", write.op("Transpose", flat, perm=[0, 2, 1]), whole)
