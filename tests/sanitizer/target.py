"""What a framework has to say, so that operators can be called in it with generated values."""

from __future__ import annotations

import abc
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias

import numpy as np

from deep500.core.tensor_descriptor import numpy_dtype
from deep500.frameworks import FRAMEWORKS
from deep500.operators.custom import CustomOp

__all__ = ["UNKNOWN", "Function", "Given", "Target"]

#: A function of a framework's tensors.
Function: TypeAlias = Callable[..., Any]

#: Stands for the array behind a value that is none: it is to be refused.
UNKNOWN = object()


@dataclass(frozen=True)
class Given:
    """An argument of a call.

    Attributes:
        value: What the function is given.
        array: The same in plain NumPy; ``None`` where it is absent, ``UNKNOWN`` where it stands for no array.
        label: What messages call it.
        may_be_refused: Whether the framework itself decides if it takes such a value.
    """

    value: Any
    array: Any
    label: str
    may_be_refused: bool = False


class Target(abc.ABC):
    """A framework.

    Attributes:
        name: Its name among the adapters.
        forms: Names of the forms in which it can hold the same values.
        dtypes: Names of dtypes that operators may be given, most of which they have to refuse.
        highest_rank: The most dimensions that a tensor may have.
        refusals: What it raises for what an operator refuses.
    """

    name: str
    forms: tuple[str, ...]
    dtypes: tuple[str, ...]
    highest_rank: int
    refusals: tuple[type[BaseException], ...]

    @abc.abstractmethod
    def given(self, array: np.ndarray, form: str) -> Given:
        """Return an array as a value of the framework, in a form."""

    @abc.abstractmethod
    def odd(self) -> Sequence[Callable[[], Given]]:
        """Return what makes values of all other kinds."""

    @abc.abstractmethod
    def arrays(self, results: Any) -> list[np.ndarray]:
        """Return what a function returned as arrays."""

    @abc.abstractmethod
    def gradients(
        self, op: CustomOp, inputs: Sequence[Given], outputs: Any, grads: Sequence[Given | None], call: Function
    ) -> list[np.ndarray | None]:
        """Return the gradient by every input; the sum where an input is given several times.

        Args:
            op: The operator.
            inputs: What it was given.
            outputs: What it returned.
            grads: The gradients by the outputs, ``None`` for those that nobody uses.
            call: The function that was called, to be called again where a framework records first.
        """

    def dtype(self, name: str) -> np.dtype[Any]:
        """Return NumPy's dtype of a name in ``dtypes``."""
        return numpy_dtype(name)

    def wrong_gradients(self) -> bool:
        """Whether gradients of wrong shapes and dtypes reach the operator; else the framework refuses them before."""
        return False

    def raw(self, data: Any) -> str | None:
        """Call what lies below the functions, where that can be reached; return how it ended."""
        return None

    def function(self, op: CustomOp) -> Function:
        """Return an operator as a function of the framework."""
        return _function(self.name, op)

    def ways(self) -> Sequence[tuple[str, Callable[[Function], Function]]]:
        """Return the ways to call a function, by name: the first is the usual one."""
        return [("", lambda function: function)]


@cache
def _function(framework: str, op: CustomOp) -> Function:
    function: Function = FRAMEWORKS.get(framework).custom_op(op)
    return function
