"""Lists of NumPy calls: run forward, and differentiated backward."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from deep500.core.errors import Deep500Error, InvalidNetworkError
from deep500.frameworks.reference.lowering import lowerings
from deep500.networks.operator_node import OperatorNode
from deep500.operators.operator import Operator

__all__ = ["Calls", "Course", "added"]


@dataclass(frozen=True)
class _Call:
    """One operator applied to named values."""

    node: OperatorNode
    operator: Operator
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]

    @property
    def kept(self) -> str:
        """Under which name all outputs are kept for the backward, which may need those that the node does not name."""
        return f"\0outputs of {next(name for name in self.outputs if name)}"


@dataclass(frozen=True)
class Course:
    """What is known of a backward sweep before it is made.

    Attributes:
        complete: After how many calls, from the last one backwards, each gradient is complete.
        depends_on_data: The values whose gradient may be missing in one run and not in another: a branch or the body of
            a loop reads them, or what is computed from them.
    """

    complete: Mapping[str, int]
    depends_on_data: frozenset[str]

    def complete_after(self, names: Iterable[str]) -> int:
        """Return after how many calls the gradients by some values are complete; 0 for those that are never begun."""
        return max((self.complete.get(name, 0) for name in names), default=0)


class Calls:
    """The calls of a network, a branch or the body of a loop.

    Values are arrays, lists of them (sequences) or ``None`` (absent optionals); so are gradients.
    """

    def __init__(self, nodes: Iterable[OperatorNode], trained: Iterable[str]) -> None:
        """Find the operator of every node.

        Args:
            nodes: The nodes in an order in which they can run.
            trained: Names of the values by which one differentiates.

        Raises:
            UnsupportedOperatorError: There is none for a node.
        """
        self._calls = [_Call(n, lowerings.find(n)(n), (*n.inputs, *n.captured), n.outputs) for n in nodes]
        reached = set(trained)
        # Only calls that a trained value reaches take part in the backward pass.
        self._differentiated = []
        for call in self._calls:
            is_reached = not reached.isdisjoint(call.inputs)
            if is_reached:
                reached.update(call.outputs)
            self._differentiated.append(is_reached)
        self._reached = reached

    def run(self, values: dict[str, Any]) -> dict[str, Any]:
        """Run all calls.

        Args:
            values: What the calls read and do not compute, by name.

        Returns:
            The same dictionary, with every computed value added.
        """
        for call, is_reached in zip(self._calls, self._differentiated, strict=True):
            arguments = [values[name] if name else None for name in call.inputs]
            try:
                results = call.operator.forward(arguments)
            except Deep500Error as error:
                raise type(error)(f"{call.node.label}: {error}") from error
            if len(results) < len(call.outputs):
                raise InvalidNetworkError(
                    f"{call.node.label} has {len(call.outputs)} outputs; NumPy's operator gives {len(results)}."
                )
            values.update((name, result) for name, result in zip(call.outputs, results) if name)
            if is_reached:
                values[call.kept] = results
        return values

    def course(self, output: str) -> Course:
        """Return what is known of the backward sweep from an output."""
        complete: dict[str, int] = {output: 0}
        depends: set[str] = set()
        for count, (call, is_reached) in enumerate(zip(reversed(self._calls), reversed(self._differentiated)), start=1):
            if not is_reached or complete.keys().isdisjoint(call.outputs):
                continue
            inputs = [name for name in call.inputs if name and name in self._reached]
            complete.update(dict.fromkeys(inputs, count))
            if call.node.graphs or not depends.isdisjoint(call.outputs):
                depends.update(inputs)
        return Course(complete, frozenset(depends))

    def differentiate(
        self,
        values: Mapping[str, Any],
        gradients: dict[str, Any],
        after_call: Callable[[int], None] | None = None,
    ) -> dict[str, Any]:
        """Compute the gradients by all values that a trained one reaches.

        Args:
            values: What :meth:`run` returned.
            gradients: Gradients by some of the values, by name.
            after_call: Called before the sweep and after each call with how many have been differentiated.

        Returns:
            The same dictionary, with the other gradients added.
        """
        if after_call is not None:
            after_call(0)
        for count, (call, is_reached) in enumerate(zip(reversed(self._calls), reversed(self._differentiated)), start=1):
            if is_reached and not gradients.keys().isdisjoint(call.outputs):
                self._differentiate(call, values, gradients)
            if after_call is not None:
                after_call(count)
        return gradients

    def _differentiate(self, call: _Call, values: Mapping[str, Any], gradients: dict[str, Any]) -> None:
        arguments = [values[name] if name else None for name in call.inputs]
        outputs = values[call.kept]
        by_output = [gradients.get(name) if name else None for name in call.outputs]
        by_input = call.operator.backward(by_output, arguments, outputs)
        for name, gradient in zip(call.inputs, by_input):
            if name and gradient is not None and name in self._reached:
                # A value used twice collects both contributions.
                gradients[name] = added(gradients.get(name), gradient)


def added(first: Any, second: Any) -> Any:
    """Return the sum of two gradients, ``None`` being 0, as a new array or list, since either may be shared."""
    if first is None or second is None:
        return second if first is None else first
    if isinstance(first, list):
        return [added(a, b) for a, b in zip(first, second, strict=True)]
    return first + second
