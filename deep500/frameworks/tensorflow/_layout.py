"""Which layout each tensor of a program has in TensorFlow: ONNX's, or channels last.

ONNX puts the channels first (``[N, C, H, W]``); TensorFlow's convolutions, poolings and normalisations run, on the
processor, with the channels last (``[N, H, W, C]``). The plan is made for a whole program before it is traced: those
operators get channels last, element-wise operators follow what they are given, everything else gets ONNX's layout. So
a transposition stands only where the two kinds meet, never between two convolutions.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import numpy as np

from deep500.networks.operator_node import OperatorNode, Subprogram
from deep500.networks.program import Program

__all__ = ["Layout", "NodePlan", "channels_first_order", "channels_last_order", "kernel_order", "plan_layouts"]


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
    """

    node: OperatorNode
    inputs: tuple[Layout, ...]
    outputs: tuple[Layout, ...]
    broadcast_rank: int | None = None


def channels_last_order(rank: int) -> tuple[int, ...]:
    """Return the permutation from ``[N, C, spatial...]`` to ``[N, spatial..., C]``."""
    return (0, *range(2, rank), 1)


def channels_first_order(rank: int) -> tuple[int, ...]:
    """Return the permutation from ``[N, spatial..., C]`` to ``[N, C, spatial...]``."""
    return (0, rank - 1, *range(1, rank - 1))


def kernel_order(rank: int) -> tuple[int, ...]:
    """Return the permutation from ``[O, I, spatial...]`` to ``[spatial..., I, O]``."""
    return (*range(2, rank), 1, 0)


def plan_layouts(program: Program | Subprogram, kernels: Collection[str] = ()) -> list[NodePlan]:
    """Plan the layouts of a program, or of a graph that a node holds.

    Args:
        program: The program; its inputs arrive, and its outputs leave, in ONNX's layout.
        kernels: Names of the stored tensors that are held in :attr:`Layout.KERNEL`.

    Returns:
        A plan for every node, in the program's order.
    """
    layouts = dict.fromkeys(kernels, Layout.KERNEL)
    plans = []
    for node in program.nodes:
        given = [layouts.get(name, Layout.ONNX) for name in node.inputs]
        rule = _RULES.get(node.op_type) if node.domain == "" else None
        plan = (rule and rule(node, given)) or _in_onnx_layout(node)
        plans.append(plan)
        layouts.update(zip(node.outputs, plan.outputs, strict=True))
    return plans


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
    axis = int(node.attributes.get("axis", -1)) % rank
    attributes = {**node.attributes, "axis": channels_last_order(rank).index(axis)}
    renamed = dataclasses.replace(node, attributes=attributes)
    return NodePlan(renamed, (Layout.CHANNELS_LAST,) * len(node.inputs), (Layout.CHANNELS_LAST,))


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
    Abs Acos Acosh Asin Asinh Atan Atanh BitCast BitwiseNot Cast CastLike Ceil Celu Clip Cos Cosh Elu
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

_RULES: dict[str, _Rule] = {
    "Conv": _convolution,
    "SoftmaxCrossEntropyLoss": _cross_entropy,
    **dict.fromkeys(
        ("AveragePool", "BatchNormalization", "GlobalAveragePool", "GlobalMaxPool", "MaxPool"), _channels_last
    ),
    **dict.fromkeys(_UNARY.split(), _first_followed),
    **dict.fromkeys(_POINTWISE.split(), _broadcasting),
    **dict.fromkeys(("Concat", "Hardmax", "LogSoftmax", "Softmax"), _along_axis),
    **dict.fromkeys(_REDUCTIONS.split(), _reduction),
}
