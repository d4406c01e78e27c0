"""What a graph computes from constants alone is computed once, and what nobody reads is dropped."""

from __future__ import annotations

import math

import onnx_ir as ir
import onnx_ir.passes.common as passes

from deep500.core.errors import InvalidNetworkError
from deep500.core.texts import message_of
from deep500.networks.normalise.zero_bias import drop_zero_biases, has_zero_bias
from deep500.networks.operator_node import held_graphs
from deep500.networks.tensor_roles import ROLE_KEY, TensorRole, initializer_role

__all__ = ["fold_constants"]

#: Largest tensors, in elements, that are read and written by what is folded: shapes and tables, not images.
_LARGEST_INPUT, _LARGEST_OUTPUT = 8192, 262144

#: Operators that draw anew each time they run.
_RANDOM = ("Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike")

#: Domain of the Dropout nodes while constants are folded: the optimizer replaces those of ONNX' own by Identity
#: wherever their third input does not say that they train, while here the mode of the network says so.
_ASIDE = "deep500.aside"


def fold_constants(model: ir.Model) -> ir.Model | None:
    """Compute what follows from constants; parameters and states are none.

    The work is done by onnxscript's optimizer. Sizes that are known statically count as constants, so the arithmetic of
    shapes in exported models mostly disappears.

    Args:
        model: A normalised model; it is not changed.

    Returns:
        A model that computes the same from the same inputs, parameters and states, or ``None`` where there is nothing
        to fold.

    Raises:
        InvalidNetworkError: An operator cannot be computed.
    """
    if not _may_fold(model):
        return None
    from onnxscript import optimizer

    folded = model.clone()
    kept = {name: value for name, value in folded.graph.initializers.items() if not _is_constant(value)}
    tensors = {name: value.const_value for name, value in kept.items()}
    before = set(folded.graph.initializers)
    dropouts = [node for node in folded.graph.all_nodes() if node.op_type == "Dropout" and not node.domain]
    for node in dropouts:
        node.domain = _ASIDE
    for value in kept.values():
        value.const_value = None  # so that nobody takes it for a constant
    try:
        optimizer.fold_constants(
            folded,
            onnx_shape_inference=True,
            input_size_limit=_LARGEST_INPUT,
            output_size_limit=_LARGEST_OUTPUT,
            should_fold=_should_fold,
        )
        passes.LiftConstantsToInitializersPass(lift_all_constants=True, size_limit=0)(folded)
        drop_zero_biases(folded)
        passes.RemoveUnusedNodesPass()(folded)
    except Exception as error:
        # The optimizer reports what it cannot compute by exceptions of unrelated types.
        raise InvalidNetworkError(f"The constants of the network cannot be computed: {message_of(error)}") from error
    for node in dropouts:
        node.domain = ""
    for name, value in kept.items():
        value.const_value = tensors[name]
        folded.graph.initializers.pop(name, None)
        folded.graph.initializers[name] = value  # in their order, and also where nobody reads them
    for name, value in folded.graph.initializers.items():
        if name not in before:
            value.metadata_props.setdefault(ROLE_KEY, TensorRole.CONSTANT.value)
    return folded


def _may_fold(model: ir.Model) -> bool:
    """Whether there is a node that reads only constants, asks for a size, or adds zeros as its bias."""
    if has_zero_bias(model):
        return True
    for node in model.graph:
        given = [value for value in node.inputs if value is not None]
        if node.op_type in ("Shape", "Size") and not node.domain:
            return True
        if given and node.op_type not in _RANDOM and all(map(_is_constant, given)) and not any(held_graphs(node)):
            return True
    return False


def _is_constant(value: ir.Value) -> bool:
    return value.is_initializer() and initializer_role(value) is TensorRole.CONSTANT


def _should_fold(node: ir.Node) -> bool | None:
    """Leave what draws numbers, what holds graphs, and what is not ONNX'; the optimizer decides about the rest."""
    if node.domain or node.op_type in _RANDOM or any(held_graphs(node)):
        return False
    # The optimizer leaves these although masks and paddings begin with them.
    return True if node.op_type == "ConstantOfShape" and _count(node.outputs[0]) <= _LARGEST_OUTPUT else None


def _count(value: ir.Value) -> float:
    """Return the number of elements of a tensor, infinite where it is not known."""
    sizes = [math.inf] if value.shape is None else [d if isinstance(d, int) else math.inf for d in value.shape]
    return math.prod(sizes)
