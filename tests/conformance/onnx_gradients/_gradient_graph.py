"""The gradient as a graph in the place of a framework: the reference runs it, in float64."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from deep500.frameworks import FRAMEWORKS
from deep500.networks import Network
from deep500.networks.gradient_graph import gradient_model
from deep500.networks.program import Program

__all__ = ["GRADIENT_GRAPH", "REFUSED", "find_adapter"]

GRADIENT_GRAPH = "gradient_graph"

#: Operators that are not differentiated as a graph, or not in every form, and what the refusal says. None at present.
REFUSED: dict[str, str] = {}


class GradientGraphExecutor(FRAMEWORKS.get("reference").ReferenceExecutor):  # type: ignore[misc]
    """An executor whose gradients come from a graph that computes them."""

    def _run_and_differentiate(self, program: Program, inputs: Sequence[Any], loss: str) -> dict[str, Any]:
        model, names = gradient_model(self.network, program, loss)
        listed = {value.name for value in model.graph.input}
        stored = {name: self.tensors[name] for name in (*program.parameters, *program.states) if name in listed}
        feeds = {**dict(zip(program.inputs, inputs, strict=True)), **stored}
        executor = FRAMEWORKS.get("reference").from_model(Network.load(model).as_declared())
        results = executor.inference(feeds)
        self._gradients = {parameter: results[gradient] for parameter, gradient in names.items()}
        return {name: results[name] for name in program.outputs}


class _Adapter:
    from_model = GradientGraphExecutor


def find_adapter(framework: str) -> Any:
    """Return a framework's adapter, or what stands for the gradient graph."""
    return _Adapter if framework == GRADIENT_GRAPH else FRAMEWORKS.get(framework)
