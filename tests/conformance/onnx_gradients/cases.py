"""What a case is, and how the files of strategies, one an operator family, register theirs."""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from hypothesis import strategies as st

from tests.conformance.layer_cases import LAYER_CASES
from tests.conformance.operator_cases import CASES, Case

Array = np.ndarray
Draw = Callable[[st.SearchStrategy[Any]], Any]


@dataclass(frozen=True)
class GradientCase:
    """One call of an operator, whose inputs are named ``x0``, ``x1``, ... and whose outputs are ``y0``, ``y1``, ...

    Attributes:
        operator: The operator's name.
        inputs: One array an input, ``None`` for an optional input that is absent; floats by which one differentiates
            are float64.
        attributes: Its attributes; arrays become tensors, graphs (``onnx.GraphProto``) may read ``x0``, ... by name.
        differentiable: Numbers of the inputs by which to differentiate; these are the network's parameters.
        outputs: How many outputs the node names; ``""`` is not among them.
        differentiable_outputs: Numbers of the outputs through which gradients flow.
        stored: Numbers of the other inputs that are stored in the network as constants; those that are neither stored
            nor differentiable are fed at run time. ``None`` leaves it to the strategy's wrapper: all or none.
        captured: Numbers of the inputs that only the node's graphs read; the node itself does not name them.
        domain: The operator's domain.
        version: Version of the domain's operators; by default the newest that the installed ONNX knows.
        nodes: The nodes that compute ``y0``, ... from ``x0``, ..., where it takes more than one.
    """

    operator: str
    inputs: Sequence[Array | None]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    differentiable: tuple[int, ...] = (0,)
    outputs: int = 1
    differentiable_outputs: tuple[int, ...] = (0,)
    stored: tuple[int, ...] | None = None
    captured: tuple[int, ...] = ()
    domain: str = ""
    version: int | None = None
    nodes: tuple[onnx.NodeProto, ...] = ()

    @property
    def label(self) -> str:
        """The operator, with its domain unless it is ONNX' own."""
        return f"{self.domain}::{self.operator}".removeprefix("::")

    def __repr__(self) -> str:
        """Say what one needs to repeat the case by hand."""
        inputs = ["None" if x is None else f"{x.dtype}{list(x.shape)}={x.tolist()}" for x in self.inputs]
        return (
            f"<{self.label} attributes={dict(self.attributes)} differentiable={self.differentiable} "
            f"stored={self.stored} inputs=[{', '.join(inputs)}]>"
        )


#: The strategies by label of the operator.
STRATEGIES: dict[str, st.SearchStrategy[GradientCase]] = {}

_Cases = st.SearchStrategy[GradientCase] | Callable[[], st.SearchStrategy[GradientCase]]


def strategy(operator: str, domain: str = "") -> Callable[[Any], Any]:
    """Return a decorator that registers a strategy, or a function (``st.composite``) that returns one."""

    def register(cases: _Cases) -> _Cases:
        label = f"{domain}::{operator}".removeprefix("::")
        assert label not in STRATEGIES, f"two strategies for {label}"
        found = cases if isinstance(cases, st.SearchStrategy) else cases()
        STRATEGIES[label] = st.builds(_with_stored, found, st.booleans())
        return cases

    return register


def _with_stored(case: GradientCase, is_stored: bool) -> GradientCase:
    if case.stored is not None:
        return case
    others = tuple(i for i, x in enumerate(case.inputs) if x is not None and i not in case.differentiable)
    return replace(case, stored=others if is_stored else ())


def from_library(operator: str, file: str, **changes: Any) -> st.SearchStrategy[GradientCase]:
    """Return the samples of an operator of the NumPy library as a strategy.

    Args:
        operator: The operator.
        file: Its entry in ``operator_cases.py`` or ``layer_cases.py``.
        **changes: Fields of the cases that are not those of the samples.
    """

    def converted(case: Case) -> GradientCase:
        by = [i for i, x in enumerate(case.inputs) if x is not None and x.dtype == np.float64]
        known = {
            "differentiable": tuple(i for i in by if i not in case.skip_inputs),
            "outputs": case.outputs,
            "differentiable_outputs": tuple(i for i in range(case.outputs) if i not in case.skip_outputs),
        }
        return GradientCase(operator, case.inputs, case.attributes, **(known | changes))

    return (CASES | LAYER_CASES)[file].map(converted)


@functools.cache
def load_strategies() -> dict[str, st.SearchStrategy[GradientCase]]:
    """Import all files of strategies; return the strategies by label of the operator."""
    for module in pkgutil.iter_modules([str(Path(__file__).parent)]):
        if module.name not in ("cases", "harness", "values") and not module.name.startswith("test_"):
            importlib.import_module(f"{__package__}.{module.name}")
    return dict(sorted(STRATEGIES.items()))
