"""ONNX Constant."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from deep500.core.errors import OperatorError
from deep500.operators import attributes
from deep500.operators.operator import Array, Operator, OptionalArray

__all__ = ["Constant"]


class Constant(Operator):
    """Return a tensor that is an attribute.

    No inputs; one output. Exactly one attribute is given: ``value`` (an array, dtype and shape kept), ``value_float``
    (float32, scalar), ``value_floats`` (float32 ``[n]``), ``value_int`` (int64, scalar) or ``value_ints`` (int64
    ``[n]``). Strings and sparse tensors are refused.

    Source: ONNX Constant, version 25.
    """

    def __init__(
        self,
        *,
        value: Array | None = None,
        value_float: float | None = None,
        value_floats: Sequence[float] | None = None,
        value_int: int | None = None,
        value_ints: Sequence[int] | None = None,
        value_string: Any = None,
        value_strings: Any = None,
        sparse_value: Any = None,
    ) -> None:
        """Set the attribute.

        Args:
            value: The tensor.
            value_float: The only element of a scalar.
            value_floats: The elements of a vector.
            value_int: The only element of a scalar.
            value_ints: The elements of a vector.
            value_string: Refused.
            value_strings: Refused.
            sparse_value: Refused.

        Raises:
            OperatorError: Not exactly one of those that are accepted is given, or it has the wrong type.
        """
        accepted = {
            "value": value,
            "value_float": value_float,
            "value_floats": value_floats,
            "value_int": value_int,
            "value_ints": value_ints,
        }
        refused = {"value_string": value_string, "value_strings": value_strings, "sparse_value": sparse_value}
        names = [name for name, given in {**accepted, **refused}.items() if given is not None]
        if len(names) != 1 or names[0] in refused:
            raise OperatorError(
                f"Constant: the attributes {', '.join(names) or 'none'} are given; accepted is exactly one of "
                f"{', '.join(accepted)}."
            )
        self.value = _tensor(names[0], accepted[names[0]])
        # One array serves every call, so nobody may write into it.
        self.value.flags.writeable = False

    def forward(self, inputs: Sequence[OptionalArray]) -> tuple[Array, ...]:
        """Return the tensor, which cannot be written to.

        Raises:
            OperatorError: There are inputs.
        """
        if inputs:
            raise OperatorError(f"Constant: received {len(inputs)} inputs; accepted are none.")
        return (self.value,)

    def backward(
        self, grads: Sequence[OptionalArray], fwd_inputs: Sequence[OptionalArray], fwd_outputs: Sequence[OptionalArray]
    ) -> tuple[OptionalArray, ...]:
        """Return no gradients, as there are no inputs."""
        return ()


def _tensor(name: str, given: Any) -> Array:
    """Return the tensor that an attribute stands for."""
    if name == "value":
        return np.array(given)
    if name == "value_float":
        return np.array(attributes.real("Constant", name, given), np.float32)
    if name == "value_floats":
        return np.array([attributes.real("Constant", name, entry) for entry in given], np.float32)
    if name == "value_int":
        return np.array(attributes.integer("Constant", name, given), np.int64)
    return np.array(attributes.integers("Constant", name, given), np.int64)
