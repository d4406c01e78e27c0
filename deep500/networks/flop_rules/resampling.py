"""Pictures that are scaled, warped, cut out and put together."""

from __future__ import annotations

import math

from deep500.networks.flop_rules import flop_rules
from deep500.networks.flop_rules._sizes import has_input, input_shape, input_size, output_shape, output_size
from deep500.networks.operator_node import OperatorNode

__all__: list[str] = []

#: Neighbours along an axis that an interpolation reads.
_TAPS = {"nearest": 0, "linear": 2, "bilinear": 2, "cubic": 4, "bicubic": 4}


@flop_rules.register("Resize", since=10)
@flop_rules.register("Upsample", since=7)
def resize(node: OperatorNode) -> int:
    """A multiply-add a neighbour: ``2^d`` or ``4^d`` where ``d`` axes change their size; nothing for nearest."""
    taps = _TAPS.get(str(node.attributes.get("mode", "nearest")), 0)
    if not taps:
        return 0
    changed = sum(a != b for a, b in zip(input_shape(node), output_shape(node)))
    return 2 * output_size(node) * taps**changed if changed else 0


@flop_rules.register("GridSample", since=16)
def grid_sample(node: OperatorNode) -> int:
    """A multiply-add for every neighbour of every output element, and three for each coordinate of the grid."""
    taps = _TAPS.get(str(node.attributes.get("mode", "linear")), 2)
    axes = len(output_shape(node)) - 2
    return 3 * input_size(node, 1) + (2 * output_size(node) * taps**axes if taps else 0)


@flop_rules.register("AffineGrid", since=20)
def affine_grid(node: OperatorNode) -> int:
    """``2 (d + 1)`` an element: the product of a matrix and a point of ``d`` coordinates and 1."""
    return 2 * output_size(node) * input_shape(node, 0)[-1]


@flop_rules.register("RoiAlign", since=10)
def roi_align(node: OperatorNode) -> int:
    """Eight (a bilinear interpolation) and one (mean or maximum) for every sampled point; one a bin where adaptive."""
    points = max(1, int(node.attributes.get("sampling_ratio", 0))) ** 2
    return 9 * points * output_size(node)


@flop_rules.register("MaxRoiPool", since=1)
def max_roi_pool(node: OperatorNode) -> int:
    """One comparison an output element at least: how many elements a region has is known only in a run."""
    return output_size(node)


@flop_rules.register("Col2Im", since=18)
def column_to_image(node: OperatorNode) -> int:
    """One addition for every input element."""
    return input_size(node)


@flop_rules.register("DeformConv", since=19)
def deformable_convolution(node: OperatorNode) -> int:
    """A convolution, and for each of its taps a bilinear interpolation of each channel: 8, and 1 for a mask."""
    weights = input_shape(node, 1)
    taps = math.prod(weights[2:])
    batch, _, *places = output_shape(node)
    sampled = batch * input_shape(node, 0)[1] * math.prod(places) * taps
    product = output_size(node) * (2 * math.prod(weights[1:]) + has_input(node, 3))
    return product + sampled * (8 + has_input(node, 4))
