"""ONNX Cast."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx

from deep500.core.errors import OperatorError
from deep500.operators import attributes
from deep500.operators.library._tensors import is_float, present, returned, take_inputs
from deep500.operators.operator import Array, Operator, OptionalArray

__all__ = ["Cast"]

_TYPES = (
    "FLOAT",
    "DOUBLE",
    "FLOAT16",
    "BFLOAT16",
    "INT8",
    "INT16",
    "INT32",
    "INT64",
    "UINT8",
    "UINT16",
    "UINT32",
    "UINT64",
    "BOOL",
)


class Cast(Operator):
    """Convert to another dtype.

    Input of any shape; from and to float16, bfloat16, float32, float64, the integers of 8 to 64 bits, and bool. Floats
    are rounded to the nearest float (beyond the range: infinity), and towards zero to an integer (beyond the range: not
    defined); integers lose their high bits; bool is whether a number is not 0. The gradient of a conversion between
    floats is converted back; other conversions have none. 8-bit and smaller floats, 4-bit and smaller integers, strings
    and complex numbers are refused, so ``saturate`` and ``round_mode`` have nothing to act upon.

    Source: ONNX Cast, version 28.
    """

    def __init__(self, *, to: int, saturate: int = 1, round_mode: str = "up") -> None:
        """Set the attributes.

        Args:
            to: The dtype, a value of ``onnx.TensorProto.DataType``.
            saturate: What happens to 8-bit floats beyond the range; accepted and not used.
            round_mode: How to round to float8e8m0; accepted and not used.

        Raises:
            OperatorError: The dtype is not among those that are accepted.
        """
        code = attributes.integer("Cast", "to", to)
        accepted = {int(onnx.TensorProto.DataType.Value(name)): name for name in _TYPES}
        if code not in accepted:
            known = {int(value): name for name, value in onnx.TensorProto.DataType.items()}
            raise OperatorError(
                f"Cast: the attribute to is {code} ({known.get(code, 'no dtype')}); accepted are "
                + ", ".join(f"{value} ({name})" for value, name in accepted.items())
            )
        self.dtype = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(code))
        self.saturate = attributes.flag("Cast", "saturate", saturate)
        self.round_mode = attributes.choice("Cast", "round_mode", round_mode, ("up", "down", "nearest"))

    @np.errstate(all="ignore")
    def forward(self, inputs: Sequence[OptionalArray]) -> tuple[Array, ...]:
        """Convert the input (the output is the input itself where it has the dtype already).

        Raises:
            OperatorError: The input is not of numbers or bool.
        """
        x = present(take_inputs("Cast", inputs, ["input"])[0])
        if not is_float(x.dtype) and x.dtype.kind not in "biu":
            raise OperatorError(f"Cast: received an input of {x.dtype}; accepted are floats, integers and bool.")
        return (x.astype(self.dtype, copy=False),)

    @np.errstate(all="ignore")
    def backward(
        self, grads: Sequence[OptionalArray], fwd_inputs: Sequence[OptionalArray], fwd_outputs: Sequence[OptionalArray]
    ) -> tuple[OptionalArray, ...]:
        """Compute the gradient by the input: the output's, converted back; ``None`` unless both are floats."""
        if grads[0] is None or not is_float(self.dtype) or not is_float(np.asarray(fwd_inputs[0]).dtype):
            return (None,)
        return returned([grads[0]], fwd_inputs)
