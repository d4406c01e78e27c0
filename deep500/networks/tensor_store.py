"""Where the tensors of a network live: in the ONNX model itself, or with an executor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray

from deep500.core.errors import InvalidInputError, UnknownNameError, near_miss
from deep500.core.tensor_descriptor import STRING, TensorDescriptor
from deep500.networks._tensor_values import stored_tensor, tensor_value
from deep500.networks.operator_node import describe_value
from deep500.networks.tensor_roles import TensorRole, initializer_role

__all__ = ["InitializerStore", "TensorStore", "as_array", "check_fed_tensor"]

#: Most names that a message lists.
_MOST_NAMES = 40


class TensorStore(Protocol):
    """Reads and writes the tensors of a network by name."""

    def fetch(self, name: str) -> NDArray[Any]:
        """Return a copy of a tensor as a NumPy array."""
        ...

    def feed(self, name: str, value: Any) -> None:
        """Replace the value of a parameter, state or constant."""
        ...

    def gradient_names(self, loss: str) -> Sequence[tuple[str, str]]:
        """Return the name of each parameter that has a gradient, and the gradient's name."""
        ...


class InitializerStore:
    """The tensors as the ONNX model holds them: initial values, no gradients."""

    def __init__(self, graph: ir.Graph) -> None:
        """Serve the initializers of a graph."""
        self._graph = graph

    def fetch(self, name: str) -> NDArray[Any]:
        """Return a copy of an initializer."""
        return np.array(tensor_value(self._tensor(name)))

    def feed(self, name: str, value: Any) -> None:
        """Replace an initializer."""
        self._tensor(name)
        target = self._graph.initializers[name]
        array = np.array(as_array(name, value))
        check_fed_tensor(name, array.dtype.name, array.shape, describe_value(target))
        target.const_value = stored_tensor(array, name)

    def gradient_names(self, loss: str) -> Sequence[tuple[str, str]]:
        """Raise: only an executor computes gradients."""
        raise UnknownNameError(
            f"The gradient of {loss!r} was not computed: the network is not bound to an executor. "
            f"Use executor.network after executor.inference_and_backprop(inputs, {loss!r})."
        )

    def _tensor(self, name: str) -> ir.TensorProtocol:
        value = self._graph.initializers.get(name)
        if value is None or value.const_value is None:
            roles = self._graph.initializers
            known = sorted(roles, key=lambda n: initializer_role(roles[n]) is TensorRole.CONSTANT)
            raise UnknownNameError(
                f"The network holds no tensor named {name!r}.{near_miss(name, known)} It holds: {_listed(known)}."
            )
        return value.const_value


def _listed(names: Sequence[str]) -> str:
    """Return some of the names: an exported network holds hundreds of constants that nobody asks for."""
    more = len(names) - _MOST_NAMES
    return (", ".join(names[:_MOST_NAMES]) or "none") + (f" and {more} more" if more > 0 else "")


def as_array(name: str, value: Any) -> NDArray[Any]:
    """Return a value, such as a nested list or another framework's tensor, as an array in the machine's byte order.

    Raises:
        InvalidInputError: It cannot be one, for example because its rows differ in length.
    """
    try:
        array = np.asarray(value)
        return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))
    except (ValueError, TypeError, RuntimeError) as error:
        raise InvalidInputError(f"The value given for {name!r} is no tensor: {error}") from error


def check_fed_tensor(name: str, dtype: str, shape: Sequence[int], expected: TensorDescriptor | None) -> None:
    """Check the dtype and shape of a value given for a tensor.

    Raises:
        InvalidInputError: They are not what the network declares.
    """
    if expected is None:
        return
    if dtype == "object" and expected.dtype == STRING:
        dtype = STRING
    if dtype != expected.dtype:
        raise InvalidInputError(
            f"Tensor {name!r} was given as {dtype}{list(shape)}; accepted is {expected}. "
            f"Convert it first, for example with value.astype({expected.dtype!r})."
        )
    if not expected.accepts_shape(shape):
        raise InvalidInputError(f"Tensor {name!r} was given as {dtype}{list(shape)}; accepted is {expected}.")
