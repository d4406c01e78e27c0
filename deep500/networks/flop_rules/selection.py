"""Operators that choose, place, draw and count elements, and those on lists of values and on texts."""

from __future__ import annotations

import math

from deep500.networks.flop_rules import flop_rules
from deep500.networks.flop_rules._sizes import input_shape, input_size, output_size
from deep500.networks.operator_node import OperatorNode

__all__: list[str] = []


def nothing(node: OperatorNode) -> int:
    """Nothing: values are moved, named or looked at, and no arithmetic is done with them."""
    return 0


for _name in (
    *("BitCast", "CenterCropPad", "ConcatFromSequence", "ImageDecoder", "MaxUnpool", "Optional", "OptionalGetElement"),
    *("OptionalHasElement", "RegexFullMatch", "SequenceAt", "SequenceConstruct", "SequenceEmpty", "SequenceErase"),
    *("SequenceInsert", "SequenceLength", "SplitToSequence", "StringConcat", "StringNormalizer", "StringSplit"),
    *("TensorScatter",),
):
    flop_rules.register(_name, since=1)(nothing)
for _name in ("ArrayFeatureExtractor", "CastMap", "CategoryMapper", "DictVectorizer", "LabelEncoder", "ZipMap"):
    flop_rules.register(_name, since=1, domain="ai.onnx.ml")(nothing)


def one_each(node: OperatorNode) -> int:
    """One for every output element."""
    return output_size(node)


for _name in (
    *("Bernoulli", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Range"),
    "TfIdfVectorizer",
):
    flop_rules.register(_name, since=1)(one_each)


@flop_rules.register("Scatter", since=9)
@flop_rules.register("ScatterElements", since=11)
@flop_rules.register("ScatterND", since=11)
def scatter(node: OperatorNode) -> int:
    """One for every update that is added, multiplied or compared; nothing where it replaces."""
    return 0 if node.attributes.get("reduction", "none") == "none" else input_size(node, 2)


@flop_rules.register("TopK", since=1)
@flop_rules.register("Unique", since=11)
def sort(node: OperatorNode) -> int:
    """``log2 n`` comparisons an element, rounded, where ``n`` are sorted."""
    shape = input_shape(node)
    axis = node.attributes.get("axis", -1 if node.op_type == "TopK" else None)
    length = (shape[axis] if shape else 1) if axis is not None else math.prod(shape)
    return round(math.prod(shape) * math.log2(length)) if length > 1 else 0


@flop_rules.register("Multinomial", since=7)
def multinomial(node: OperatorNode) -> int:
    """Three an element of the input (exponential, sum, division), and ``classes`` comparisons a number drawn."""
    return 3 * input_size(node) + output_size(node) * input_shape(node)[-1]


@flop_rules.register("NonMaxSuppression", since=10)
def non_max_suppression(node: OperatorNode) -> int:
    """Twelve (an intersection over a union) for every pair of boxes, of every class: the most that can be needed."""
    batch, classes, boxes = input_shape(node, 1)
    return 12 * batch * classes * boxes * (boxes - 1) // 2
