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

#: Element types that can be trained; initializers of any other type are constants.
_FLOATING = (ir.DataType.FLOAT, ir.DataType.DOUBLE, ir.DataType.FLOAT16, ir.DataType.BFLOAT16)


def initializer_role(value: ir.Value) -> TensorRole:
    """Return the role of an initializer: the one written in its metadata, else the one that its use shows."""
    written = value.metadata_props.get(ROLE_KEY)
    if written in {role.value for role in TensorRole}:
        return TensorRole(written)
    for node, index in value.uses():
        if index in _STATE_INPUTS.get(node.op_type, ()):
            return TensorRole.STATE
    return TensorRole.PARAMETER if value.dtype in _FLOATING else TensorRole.CONSTANT


def is_loss(value: ir.Value) -> bool:
    """Whether a graph output was appended as a loss."""
    return value.metadata_props.get(ROLE_KEY) == "loss"
