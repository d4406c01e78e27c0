"""The graphs that nodes hold, as lists of NumPy calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from deep500.frameworks.reference._calls import Calls, added
from deep500.networks.operator_node import OperatorNode, Subprogram

__all__ = ["Body"]


class Body:
    """A branch, or the body of a loop.

    Attributes:
        inputs: Names of its own inputs.
        outputs: Names of its outputs.
    """

    def __init__(self, node: OperatorNode, graph: Subprogram) -> None:
        """Find the operator of every node.

        Args:
            node: The node that holds the graph.
            graph: The graph.

        Raises:
            UnsupportedOperatorError: There is none for a node.
        """
        self.inputs, self.outputs = graph.inputs, graph.outputs
        self._stored = graph.stored
        # What the node's graphs read around it, and what this one does not read of it.
        self._captured = [name if name in graph.captured else "" for name in node.captured]
        self._calls = Calls(graph.nodes, [*self.inputs, *filter(None, self._captured)])

    def run(self, inputs: Sequence[Any], captured: Sequence[Any]) -> dict[str, Any]:
        """Return all values of one run, by name.

        Args:
            inputs: Its inputs; trailing ones may be left out.
            captured: What the node that holds it captured.
        """
        values: dict[str, Any] = {
            **self._stored,
            **dict(zip(self._captured, captured)),
            **dict(zip(self.inputs, inputs)),
        }
        return self._calls.run(values)

    def results(self, values: dict[str, Any]) -> list[Any]:
        """Return the outputs among the values of a run."""
        return [values[name] for name in self.outputs]

    def differentiate(self, values: dict[str, Any], grads: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """Return the gradients by the inputs, and by what the node captured.

        Args:
            values: What :meth:`run` returned.
            grads: Gradients by the outputs, ``None`` where there is none.
        """
        gradients: dict[str, Any] = {}
        for name, gradient in zip(self.outputs, grads):
            if gradient is not None:
                gradients[name] = added(gradients.get(name), gradient)
        gradients = self._calls.differentiate(values, gradients)
        by_captured = [gradients.get(name) if name else None for name in self._captured]
        return [gradients.get(name) for name in self.inputs], by_captured
