"""What the tensors stored in a network are for: parameters that are trained, running states, constants."""

from __future__ import annotations

import enum

import onnx_ir as ir

__all__ = ["ROLE_KEY", "TensorRole", "initializer_role", "is_loss"]

#: Key of the ONNX value metadata in which a role is written down.
ROLE_KEY = "deep500.role"


class TensorRole(str, enum.Enum):
    """Role of an initializer."""

    PARAMETER = "parameter"  #: trained by the optimizer
    STATE = "state"  #: updated by training-mode operators, such as running statistics
    CONSTANT = "constant"  #: never changed


#: Inputs that hold running statistics, by operator type.
_STATE_INPUTS = {"BatchNormalization": (3, 4)}

#: Inputs that say how an operator works, by operator type: nothing to train, whatever their element type.
_SETTING_INPUTS = {
    "Attention": (3,),
    "Clip": (1, 2),
    "DequantizeLinear": (1, 2),
    "Dropout": (1, 2),
    "NegativeLogLikelihoodLoss": (2,),
    "OneHot": (1, 2),
    "Pad": (1, 2, 3),
    "Pow": (1,),
    "QuantizeLinear": (1, 2),
    "Range": (0, 1, 2),
    "Resize": (1, 2, 3),
    "RotaryEmbedding": (1, 2),
    "SoftmaxCrossEntropyLoss": (2,),
    "Upsample": (1,),
}

#: Element types that can be trained; initializers of any other type are constants.
_FLOATING = (ir.DataType.FLOAT, ir.DataType.DOUBLE, ir.DataType.FLOAT16, ir.DataType.BFLOAT16)


def initializer_role(value: ir.Value) -> TensorRole:
    """Return the role of an initializer: the one written in its metadata, else the one that its use shows."""
    written = value.metadata_props.get(ROLE_KEY)
    if written in {role.value for role in TensorRole}:
        return TensorRole(written)
    uses = [(node.op_type if node.domain == "" else "", index) for node, index in value.uses()]
    if any(index in _STATE_INPUTS.get(op_type, ()) for op_type, index in uses):
        return TensorRole.STATE
    if uses and all(index in _SETTING_INPUTS.get(op_type, ()) for op_type, index in uses):
        return TensorRole.CONSTANT
    return TensorRole.PARAMETER if value.dtype in _FLOATING else TensorRole.CONSTANT


def is_loss(value: ir.Value) -> bool:
    """Whether a graph output was appended as a loss."""
    return value.metadata_props.get(ROLE_KEY) == "loss"
