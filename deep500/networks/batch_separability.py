"""Whether a network treats every sample of a batch on its own, and how its loss sums them up."""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deep500.core.errors import InvalidNetworkError
from deep500.core.tensor_descriptor import Dimension, TensorDescriptor
from deep500.networks.operator_node import OperatorNode
from deep500.networks.program import Program

__all__ = ["Batching", "LossReduction", "Reduction", "analyse_batching", "batch_symbol", "is_samplewise"]

_ELEMENTWISE = frozenset(
    (
        *("Abs", "Acos", "Acosh", "Add", "And", "Asin", "Asinh", "Atan", "Atanh", "BitwiseAnd", "BitwiseNot"),
        *("BitwiseOr", "BitwiseXor", "Cast", "Ceil", "Celu", "Clip", "Cos", "Cosh", "Div", "Dropout", "Elu", "Equal"),
        *("Erf", "Exp", "Floor", "Gelu", "Greater", "GreaterOrEqual", "HardSigmoid", "HardSwish", "Identity", "IsInf"),
        *("IsNaN", "LeakyRelu", "Less", "LessOrEqual", "Log", "Max", "Mean", "Min", "Mish", "Mod", "Mul", "Neg", "Not"),
        *("Or", "PRelu", "Pow", "Reciprocal", "Relu", "Round", "Selu", "Shrink", "Sigmoid", "Sign", "Sin", "Sinh"),
        *("Softplus", "Softsign", "Sqrt", "Sub", "Sum", "Swish", "Tan", "Tanh", "ThresholdedRelu", "Where", "Xor"),
    )
)

#: Operators over ``[N, C, ...]`` that never look at another sample.
_IMAGES = frozenset(
    (
        *("AveragePool", "BatchNormalization", "Conv", "ConvTranspose", "DepthToSpace", "GlobalAveragePool"),
        *("GlobalLpPool", "GlobalMaxPool", "GroupNormalization", "InstanceNormalization", "LRN", "LpPool", "MaxPool"),
        "SpaceToDepth",
    )
)

#: Operators along an axis, or from it on, which the attribute names, with its default.
_ALONG = dict.fromkeys(
    ("Softmax", "LogSoftmax", "Hardmax", "LayerNormalization", "RMSNormalization", "LpNormalization"), -1
) | {"Flatten": 1, "Concat": 0, "Split": 0, "ArgMax": 0, "ArgMin": 0}

_LOSSES = ("SoftmaxCrossEntropyLoss", "NegativeLogLikelihoodLoss")


class Reduction(enum.Enum):
    """How a scalar follows from the samples."""

    MEAN = "mean"
    SUM = "sum"


@dataclass(frozen=True)
class LossReduction:
    """How a value sums up the samples.

    Attributes:
        kind: Mean or sum.
        label: Input with the class of each sample, where samples count by it.
        ignore_index: Class that does not count.
        class_weights: What each class counts; 1 where ``None``.
    """

    kind: Reduction
    label: str = ""
    ignore_index: int | None = None
    class_weights: NDArray[Any] | None = None

    def weight(self, labels: Any, count: int) -> float:
        """Return what a part of a batch counts for.

        Args:
            labels: The part's labels, where there are any.
            count: Its number of samples.
        """
        if not self.label:
            return float(count)
        classes = np.asarray(labels)
        counted = np.ones(classes.shape, bool) if self.ignore_index is None else classes != self.ignore_index
        if self.class_weights is None:
            return float(counted.sum())
        return float(self.class_weights[classes[counted]].astype(np.float64).sum())

    def same_kind(self, other: LossReduction) -> bool:
        """Whether two values that sum up alike can be added."""
        return self.kind is other.kind and not self.label and not other.label


@dataclass(frozen=True)
class Batching:
    """What carries the batch.

    Attributes:
        inputs: The inputs whose first dimension it is.
        batched: All tensors whose first dimension it is.
        reduced: How the tensors that sum it up do so, by name.
    """

    inputs: tuple[str, ...]
    batched: frozenset[str]
    reduced: dict[str, LossReduction]


def batch_symbol(program: Program, name: str = "network") -> str:
    """Return the name of the batch size: the symbolic first dimension of the first input.

    Raises:
        InvalidNetworkError: It has none, or is a number.
    """
    first = program.input_types[0] if program.input_types else None
    size: Dimension = first.shape[0] if isinstance(first, TensorDescriptor) and first.shape else None
    if not isinstance(size, str):
        raise InvalidNetworkError(
            f"The first dimension of the first input of {name} is {size!r}; to be run in parts it must have a name, "
            f"such as [batch, 3, 32, 32]."
        )
    return size


def analyse_batching(program: Program, name: str = "network") -> Batching:
    """Follow the batch through a network.

    Args:
        program: The network's program.
        name: How messages call it.

    Raises:
        InvalidNetworkError: A node makes a sample depend on others, or it is not known that it does not.
    """
    symbol = batch_symbol(program, name)
    inputs = tuple(
        n
        for n, kind in zip(program.inputs, program.input_types)
        if isinstance(kind, TensorDescriptor) and kind.shape and kind.shape[0] == symbol
    )
    batched = set(inputs)
    reduced: dict[str, LossReduction] = {}
    for node in program.nodes:
        read = [n for n in (*node.inputs, *node.captured) if n]
        if any(n in reduced for n in read):
            found = _linear(node, batched, reduced)
            reduced.update(dict.fromkeys(filter(None, node.outputs), found))
        elif any(n in batched for n in read):
            reduction = _reduction(node, batched, inputs)
            if reduction is not None:
                reduced[node.outputs[0]] = reduction
                batched.update(n for n in node.outputs[1:] if n)
            elif is_samplewise(node, batched):
                batched.update(n for n in node.outputs if n)
            else:
                raise InvalidNetworkError(_refusal(node))
    return Batching(inputs, frozenset(batched), reduced)


def _refusal(node: OperatorNode) -> str:
    if node.op_type == "BatchNormalization":
        return (
            f"{node.label} in training mode normalises with statistics of the whole batch, which parts do not have. "
            f"Use the network in evaluation mode (network.eval()), where it is exact; an executor that is to train can "
            f"keep the statistics with frozen_statistics=True."
        )
    return (
        f"{node.label} makes samples depend on each other, or it is not known that it does not; it cannot run in parts."
    )


def is_samplewise(node: OperatorNode, batched: set[str] | frozenset[str]) -> bool:
    """Whether a node computes from every sample what it computes from it alone, as far as that is known.

    Args:
        node: A node.
        batched: Names of the tensors whose first dimension is the batch.
    """
    if node.domain or node.captured or node.graphs:
        return False
    carries = [n in batched for n in node.inputs]
    op = node.op_type
    if op in _ELEMENTWISE:
        return _broadcasts(node, carries)
    only_first = carries[0] and not any(carries[1:])
    if op in _IMAGES:
        return only_first and not node.attributes.get("training_mode", 0)
    if op == "Gemm":
        return only_first and not node.attributes.get("transA", 0) and not _has_rows(node, 2)
    if op == "MatMul":
        return _multiplies(node, carries)
    if op in _ALONG:
        every = all(carries) if op == "Concat" else only_first
        return every and _positive(node, node.attributes.get("axis", _ALONG[op])) > 0
    if op == "Transpose":
        return int(next(iter(node.attributes.get("perm", [-1])))) == 0
    if op == "Gather":
        axis = _positive(node, node.attributes.get("axis", 0))
        return (only_first and axis > 0) or (not carries[0] and axis == 0)
    return only_first and _keeps_first(node)


def _keeps_first(node: OperatorNode) -> bool:
    """Whether an operator that reshapes or reduces leaves the first dimension alone."""
    op = node.op_type
    if op == "Reshape":
        return _reshapes_samples(node)
    if op == "Pad":
        pads = node.constants.get(1)
        rank = _rank(node, 0)
        given = len(node.inputs) > 3 and bool(node.inputs[3])
        return pads is not None and rank is not None and not given and pads[0] == 0 and pads[rank] == 0
    if op in ("Squeeze", "Unsqueeze", "Slice") or op.startswith("Reduce"):
        axes = _axes(node, 3 if op == "Slice" else 1)
        return bool(axes) and 0 not in (axes or ())
    return False


def _reshapes_samples(node: OperatorNode) -> bool:
    target = node.constants.get(1)
    kind = node.input_types[0]
    if target is None or kind is None or not kind.shape or not target.size:
        return False
    if target[0] == 0 and not node.attributes.get("allowzero", 0):
        return True
    rest, wanted = kind.shape[1:], [int(d) for d in target[1:]]
    known = [d for d in rest if isinstance(d, int)]
    return bool(target[0] == -1 and len(known) == len(rest) and all(d > 0 for d in wanted)) and math.prod(
        known
    ) == math.prod(wanted)


def _axes(node: OperatorNode, index: int) -> list[int] | None:
    """Return the axes that a node names, counted from the first; ``None`` where they are not known."""
    given = node.constants.get(index)
    listed = node.attributes.get("axes") if given is None else [int(a) for a in np.ravel(given)]
    if not listed:
        return None
    rank = _rank(node, 0)
    if rank is None:
        return None
    rank += len(listed) if node.op_type == "Unsqueeze" else 0
    return [int(a) % rank for a in listed]


def _rank(node: OperatorNode, index: int) -> int | None:
    kind = node.input_types[index] if index < len(node.input_types) else None
    return None if kind is None else kind.rank


def _positive(node: OperatorNode, axis: int) -> int:
    """Return an axis counted from the first dimension; 0 where it is not known."""
    rank = _rank(node, 0)
    return axis if axis >= 0 else 0 if rank is None else axis + rank


def _broadcasts(node: OperatorNode, carries: list[bool]) -> bool:
    """Whether the batch stays the first dimension, and meets no other first dimension."""
    if len(node.inputs) == 1:
        return True
    ranks = [_rank(node, i) for i, name in enumerate(node.inputs) if name]
    if any(rank is None for rank in ranks):
        return False
    most = max(rank or 0 for rank in ranks)
    for index, name in enumerate(node.inputs):
        if name and (
            (carries[index] and _rank(node, index) != most) or (not carries[index] and _has_rows(node, index, most))
        ):
            return False
    return True


def _has_rows(node: OperatorNode, index: int, rank: int = 2) -> bool:
    """Whether an input without the batch has a first dimension of its own where the batch would be."""
    if index >= len(node.inputs) or not node.inputs[index]:
        return False
    kind = node.input_types[index]
    if kind is None or kind.shape is None:
        return True
    return len(kind.shape) == rank and rank > 0 and kind.shape[0] != 1


def _multiplies(node: OperatorNode, carries: list[bool]) -> bool:
    left, right = _rank(node, 0), _rank(node, 1)
    if left is None or right is None:
        return False
    if carries[0] and not carries[1]:
        return left >= 2 and (right <= 2 or right < left)
    return all(carries) and left == right and left >= 3


def _reduction(node: OperatorNode, batched: set[str], inputs: tuple[str, ...]) -> LossReduction | None:
    """Return how a node sums up the batch; ``None`` where it does not."""
    if node.domain:
        return None
    if node.op_type in _LOSSES:
        return _class_loss(node, inputs)
    if node.op_type not in ("ReduceMean", "ReduceSum") or node.inputs[0] not in batched:
        return None
    axes = _axes(node, 1)
    computed = node.is_given(1) and 1 not in node.constants
    keeps_all = node.attributes.get("noop_with_empty_axes", 0)
    if computed or (axes is None and (keeps_all or node.constants.get(1, np.zeros(0)).size)):
        return None
    if axes is not None and 0 not in axes:
        return None
    return LossReduction(Reduction.MEAN if node.op_type == "ReduceMean" else Reduction.SUM)


def _class_loss(node: OperatorNode, inputs: tuple[str, ...]) -> LossReduction | None:
    kind = node.attributes.get("reduction", "mean")
    kind = kind.decode() if isinstance(kind, bytes) else kind
    if kind == "sum":
        return LossReduction(Reduction.SUM)
    ignored = node.attributes.get("ignore_index")
    has_weights = node.is_given(2)
    if kind == "mean" and ignored is None and not has_weights:
        return LossReduction(Reduction.MEAN)
    if kind != "mean":
        raise InvalidNetworkError(
            f"{node.label} gives a loss for every sample; accepted are the reductions mean and sum."
        )
    if node.inputs[1] not in inputs or (has_weights and 2 not in node.constants):
        raise InvalidNetworkError(
            f"{node.label} weighs samples by labels or weights that are computed; accepted are labels that are fed and "
            f"weights that are constants."
        )
    return LossReduction(Reduction.MEAN, node.inputs[1], ignored, node.constants[2] if has_weights else None)


def _linear(node: OperatorNode, batched: set[str], reduced: dict[str, LossReduction]) -> LossReduction:
    """Return how the result of a node that reads summed-up values sums up the batch.

    Raises:
        InvalidNetworkError: The node is not linear in them, or adds values that sum up differently.
    """
    mine = [reduced[n] for n in node.inputs if n in reduced]
    others = [n for n in node.inputs if n and n not in reduced]
    op = "" if node.domain else node.op_type
    scales = op in ("Identity", "Neg", "Cast", "Squeeze", "Unsqueeze", "Reshape", "Mul", "Div")
    adds = op in ("Add", "Sub", "Sum")
    fine = not any(n in batched for n in others) and not node.captured
    if scales:
        fine = fine and len(mine) == 1 and (op != "Div" or node.inputs[0] in reduced)
    elif adds:
        # What does not depend on the batch, such as a penalty on weights, is its own mean, not its own sum.
        plain = all(first.same_kind(mine[0]) or first is mine[0] for first in mine)
        fine = fine and plain and (not others or mine[0].kind is Reduction.MEAN)
    if not fine or not (scales or adds):
        raise InvalidNetworkError(
            f"{node.label} computes from a loss something that the losses of parts do not add up to; accepted are sums "
            f"of losses that are all means or all sums, and their multiples."
        )
    return mine[0]
