"""Which layout each tensor of a program has in TensorFlow: ONNX's, or channels last.

ONNX puts the channels first (``[N, C, H, W]``); TensorFlow's convolutions, poolings and normalisations run, on the
processor, with the channels last (``[N, H, W, C]``). The plan is made for a whole program before it is traced: those
operators get channels last, element-wise operators follow what they are given, everything else gets ONNX's layout. So
a transposition stands only where the two kinds meet, never between two convolutions. A Transpose itself moves nothing
either: what it gives is known to be its input in another order, and is brought into the order that its reader wants.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deep500.networks.operator_node import OperatorNode, Subprogram
from deep500.networks.program import Program

__all__ = [
    "Layout",
    "NodePlan",
    "channels_first_order",
    "channels_last_order",
    "composed",
    "inverse",
    "kernel_order",
    "order_of",
    "plan_layouts",
]


class Layout(enum.Enum):
    """Order of a tensor's dimensions."""

    ONNX = "as ONNX declares it"
    CHANNELS_LAST = "[N, spatial..., C] in place of [N, C, spatial...]"
    KERNEL = "[spatial..., I, O] in place of [O, I, spatial...]"


@dataclass(frozen=True)
class NodePlan:
    """How one node is to be run.

    Attributes:
        node: The node; axes that it names are those of the planned layout.
        inputs: Layout in which each input is to be given.
        outputs: Layout in which each output comes.
        broadcast_rank: Rank to which inputs of a lower one are brought (by leading ones) before their layout is
            changed, ``None`` where the inputs do not broadcast.
        constants: What is given in the place of inputs, by their number: vectors about axes, as the planned layout has
            them.
        permutation: The node is a Transpose with this permutation, and is not run.
    """

    node: OperatorNode
    inputs: tuple[Layout, ...]
    outputs: tuple[Layout, ...]
    broadcast_rank: int | None = None
    constants: Mapping[int, NDArray[Any]] = field(default_factory=dict)
    permutation: tuple[int, ...] | None = None


def channels_last_order(rank: int) -> tuple[int, ...]:
    """Return the permutation from ``[N, C, spatial...]`` to ``[N, spatial..., C]``."""
    return (0, *range(2, rank), 1)


def channels_first_order(rank: int) -> tuple[int, ...]:
    """Return the permutation from ``[N, spatial..., C]`` to ``[N, C, spatial...]``."""
    return (0, rank - 1, *range(1, rank - 1))


def kernel_order(rank: int) -> tuple[int, ...]:
    """Return the permutation from ``[O, I, spatial...]`` to ``[spatial..., I, O]``."""
    return (*range(2, rank), 1, 0)


def order_of(layout: Layout, rank: int) -> tuple[int, ...]:
    """Return the permutation from ONNX's layout to another one."""
    if layout is Layout.CHANNELS_LAST:
        return channels_last_order(rank)
    return kernel_order(rank) if layout is Layout.KERNEL else tuple(range(rank))


def inverse(order: Sequence[int]) -> tuple[int, ...]:
    """Return the permutation that undoes another one."""
    return tuple(order.index(axis) for axis in range(len(order)))


def composed(first: Sequence[int], second: Sequence[int]) -> tuple[int, ...]:
    """Return the permutation that does one and then another."""
    return tuple(first[axis] for axis in second)


def plan_layouts(program: Program | Subprogram, stored: Mapping[str, Layout] | None = None) -> list[NodePlan]:
    """Plan the layouts of a program, or of a graph that a node holds.

    Args:
        program: The program; its inputs arrive, and its outputs leave, in ONNX's layout.
        stored: Layouts of the stored tensors that are not held as ONNX declares them.

    Returns:
        A plan for every node, in the program's order.
    """
    layouts = dict(stored or {})
    orders: dict[str, tuple[int, ...]] = {}  # of what Transposes give
    plans = []
    for node in program.nodes:
        given = [layouts.get(name, Layout.ONNX) for name in node.inputs]
        if node.op_type == "Transpose" and node.domain == "" and _rank(node, 0):
            plan = _transposition(node, given[0], orders)
        else:
            rule = _RULES.get(node.op_type) if node.domain == "" else None
            plan = (rule and rule(node, given)) or _in_onnx_layout(node)
        plans.append(plan)
        layouts.update(zip(node.outputs, plan.outputs, strict=True))
    return plans


def _transposition(node: OperatorNode, given: Layout, orders: dict[str, tuple[int, ...]]) -> NodePlan:
    """Plan a Transpose: its output is the tensor that its input is, which may be what some layout wants of it."""
    rank = _rank(node, 0) or 0
    permutation = tuple(node.attributes.get("perm") or reversed(range(rank)))
    held = orders.get(node.inputs[0], order_of(given, rank))
    # Held is the input in an order; the output in the order below is the same.
    orders[node.outputs[0]] = order = composed(inverse(permutation), held)
    layouts = [layout for layout in Layout if rank > 2 and order == order_of(layout, rank)]
    return NodePlan(node, (given,), (layouts[0] if layouts else Layout.ONNX,), permutation=permutation)


_Rule = Callable[[OperatorNode, Sequence[Layout]], NodePlan | None]


def _in_onnx_layout(node: OperatorNode) -> NodePlan:
    return NodePlan(node, (Layout.ONNX,) * len(node.inputs), (Layout.ONNX,) * len(node.outputs))


def _rank(node: OperatorNode, index: int) -> int | None:
    """Return the rank of an input, ``None`` when it is unknown."""
    descriptor = node.input_types[index] if index < len(node.input_types) else None
    return None if descriptor is None else descriptor.rank


def _channels_last(node: OperatorNode, given: Sequence[Layout]) -> NodePlan | None:
    """The first input and the first output are images; all other tensors are vectors."""
    rank = node.rank()
    if rank < 3:
        return None
    others = (Layout.ONNX,) * (len(node.inputs) - 1)
    return NodePlan(
        node,
        (Layout.CHANNELS_LAST, *others),
        (Layout.CHANNELS_LAST, *(Layout.ONNX,) * (len(node.outputs) - 1)),
    )


def _convolution(node: OperatorNode, given: Sequence[Layout]) -> NodePlan | None:
    """An image, its kernel and, perhaps, a bias."""
    bias = (Layout.ONNX,) * (len(node.inputs) - 2)
    return NodePlan(node, (Layout.CHANNELS_LAST, Layout.KERNEL, *bias), (Layout.CHANNELS_LAST,))


def _cross_entropy(node: OperatorNode, given: Sequence[Layout]) -> NodePlan | None:
    """Scores are read with the classes last; the second output, their logarithm, comes so too."""
    if node.rank() < 3:
        return None
    inputs = (Layout.CHANNELS_LAST, *(Layout.ONNX,) * (len(node.inputs) - 1))
    return NodePlan(node, inputs, (Layout.ONNX, Layout.CHANNELS_LAST)[: len(node.outputs)])


def _first_followed(node: OperatorNode, given: Sequence[Layout]) -> NodePlan | None:
    """The output has the layout of the first input; further inputs are scalars."""
    if given[0] is not Layout.CHANNELS_LAST:
        return None
    others = (Layout.ONNX,) * (len(node.inputs) - 1)
    return NodePlan(node, (Layout.CHANNELS_LAST, *others), (Layout.CHANNELS_LAST,) * len(node.outputs))


def _broadcasting(node: OperatorNode, given: Sequence[Layout]) -> NodePlan | None:
    """Channels last when an input of the full rank is; the others are brought to that rank and layout."""
    ranks = [_rank(node, index) for index in range(len(node.inputs))]
    if any(rank is None for rank in ranks):
        return None
    full = max(rank for rank in ranks if rank is not None)
    if not any(rank == full and layout is Layout.CHANNELS_LAST for rank, layout in zip(ranks, given, strict=True)):
        return None
    # A scalar means the same in every layout.
    inputs = tuple(Layout.CHANNELS_LAST if rank else Layout.ONNX for rank in ranks)
    return NodePlan(node, inputs, (Layout.CHANNELS_LAST,), full)


def _along_axis(node: OperatorNode, given: Sequence[Layout]) -> NodePlan | None:
    """Channels last when an input is, with the axis renamed."""
    rank = _rank(node, 0)
    if rank is None or Layout.CHANNELS_LAST not in given:
        return None
    renamed = _with_axis(node, rank, -1)
    return NodePlan(renamed, (Layout.CHANNELS_LAST,) * len(node.inputs), (Layout.CHANNELS_LAST,))


def _parts(node: OperatorNode, given: Sequence[Layout]) -> NodePlan | None:
    """The parts of a tensor are channels last when it is; how large they are is a vector."""
    rank = _rank(node, 0)
    if rank is None or given[0] is not Layout.CHANNELS_LAST:
        return None
    inputs = (Layout.CHANNELS_LAST, *(Layout.ONNX,) * (len(node.inputs) - 1))
    return NodePlan(_with_axis(node, rank, 0), inputs, (Layout.CHANNELS_LAST,) * len(node.outputs))


def _with_axis(node: OperatorNode, rank: int, default: int) -> OperatorNode:
    axis = channels_last_order(rank).index(int(node.attributes.get("axis", default)) % rank)
    return dataclasses.replace(node, attributes={**node.attributes, "axis": axis})


def _resizing(node: OperatorNode, given: Sequence[Layout]) -> NodePlan | None:
    """Channels last when the input is; the other inputs are about the axes that the attribute then names."""
    rank = _rank(node, 0)
    if rank is None or given[0] is not Layout.CHANNELS_LAST:
        return None
    order = channels_last_order(rank)
    axes = [order.index(int(axis) % rank) for axis in node.attributes.get("axes") or range(rank)]
    renamed = dataclasses.replace(node, attributes={**node.attributes, "axes": axes})
    inputs = (Layout.CHANNELS_LAST, *(Layout.ONNX,) * (len(node.inputs) - 1))
    return NodePlan(renamed, inputs, (Layout.CHANNELS_LAST,))


def _with_axes_at(index: int) -> _Rule:
    """Return the rule of an operator whose further inputs are about the axes that one of them names, or about all."""

    def rule(node: OperatorNode, given: Sequence[Layout]) -> NodePlan | None:
        rank = _rank(node, 0)
        if rank is None or given[0] is not Layout.CHANNELS_LAST:
            return None
        named = node.constant(index) if node.is_given(index) else None
        if node.is_given(index) and named is None:
            return None
        if named is None:
            count = _first_size(node, 1)
            if count is None:
                return None
            named = np.arange(count if node.op_type == "Slice" else count // 2)
        order = channels_last_order(rank)
        axes = np.array([order.index(int(axis) % rank) for axis in np.ravel(named)], np.int64)
        inputs = (Layout.CHANNELS_LAST, *(Layout.ONNX,) * (len(node.inputs) - 1))
        return NodePlan(node, inputs, (Layout.CHANNELS_LAST,), constants={index: axes})

    return rule


def _first_size(node: OperatorNode, index: int) -> int | None:
    """Return how many entries an input has that is a vector, ``None`` when it is unknown."""
    if index in node.constants:
        return int(node.constants[index].size)
    kind = node.input_types[index] if index < len(node.input_types) else None
    shape = getattr(kind, "shape", None)
    return shape[0] if shape and isinstance(shape[0], int) else None


def _reduction(node: OperatorNode, given: Sequence[Layout]) -> NodePlan | None:
    """Channels last when the input is, with the axes renamed; unless the remaining ones would come in another order."""
    rank = _rank(node, 0)
    if rank is None or given[0] is not Layout.CHANNELS_LAST:
        return None
    if node.is_given(1) and 1 not in node.constants:
        return None
    given_axes = node.constant(1)
    axes = [] if given_axes is None else [int(axis) % rank for axis in given_axes]
    reduced = set(axes) or (set() if node.attributes.get("noop_with_empty_axes", 0) else set(range(rank)))
    order = channels_last_order(rank)
    kept = bool(node.attributes.get("keepdims", 1)) or not reduced
    remaining = [axis for axis in order if axis not in reduced]
    if not kept and remaining != sorted(remaining):
        return None
    renamed = node
    if axes:
        constants = {**node.constants, 1: np.array([order.index(axis) for axis in axes], np.int64)}
        renamed = dataclasses.replace(node, constants=constants)
    output = Layout.CHANNELS_LAST if kept else Layout.ONNX
    return NodePlan(renamed, (Layout.CHANNELS_LAST, *(Layout.ONNX,) * (len(node.inputs) - 1)), (output,))


#: Operators of one tensor, element by element; what else they are given is scalars, or only told the type of.
_UNARY = """
    Abs Acos Acosh Asin Asinh Atan Atanh BitCast BitwiseNot Cast CastLike Ceil Celu Clip Cos Cosh Dropout Elu
    Erf Exp Floor Gelu HardSigmoid HardSwish Identity IsInf IsNaN LeakyRelu Log Mish Neg Not
    Reciprocal Relu Round Selu Shrink Sigmoid Sign Sin Sinh Softplus Softsign Sqrt Swish Tan Tanh
    ThresholdedRelu
"""

#: Operators of several tensors that broadcast, element by element.
_POINTWISE = """
    Add And BitShift BitwiseAnd BitwiseOr BitwiseXor Div Equal Greater GreaterOrEqual Less LessOrEqual
    Max Mean Min Mod Mul Or PRelu Pow Sub Sum SwiGLU Where Xor
"""

_REDUCTIONS = """
    ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum
    ReduceSumSquare
"""

#: Operators of an image and vectors.
_IMAGES = """
    AveragePool BatchNormalization GlobalAveragePool GlobalLpPool GlobalMaxPool GroupNormalization
    InstanceNormalization LRN LpPool MaxPool
"""

_RULES: dict[str, _Rule] = {
    "Conv": _convolution,
    "ConvTranspose": _convolution,
    "Pad": _with_axes_at(3),
    "Resize": _resizing,
    "Slice": _with_axes_at(3),
    "Split": _parts,
    "SoftmaxCrossEntropyLoss": _cross_entropy,
    **dict.fromkeys(_IMAGES.split(), _channels_last),
    **dict.fromkeys(_UNARY.split(), _first_followed),
    **dict.fromkeys(_POINTWISE.split(), _broadcasting),
    **dict.fromkeys(("Concat", "Hardmax", "LogSoftmax", "Softmax"), _along_axis),
    **dict.fromkeys(_REDUCTIONS.split(), _reduction),
}
