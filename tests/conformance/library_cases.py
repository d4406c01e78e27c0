"""Sample cases for every operator of the NumPy library: those of ``operator_cases.py`` and ``layer_cases.py``, else of
the gradients.

An operator without an entry there is drawn by its strategy in ``onnx_gradients``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import strategies as st

from deep500.core.registry import Registry
from tests.conformance.layer_cases import LAYER_CASES
from tests.conformance.onnx_gradients.cases import GradientCase, load_strategies
from tests.conformance.operator_cases import CASES as OWN_CASES
from tests.conformance.operator_cases import Array, Case

LIBRARY = Registry("operator", "deep500.operators.library")


def _gather_elements(attributes: dict[str, Any], data: Array, indices: Array) -> tuple[Array, ...]:
    """Take the part of the data that the indices reach: ``onnx.reference`` accepts equal sizes only."""
    axis = attributes["axis"] % data.ndim
    part = data[tuple(slice(None) if i == axis else slice(size) for i, size in enumerate(indices.shape))]
    return (np.take_along_axis(part, indices % data.shape[axis], axis),)


#: Used in place of ``onnx.reference`` where that is known to be wrong or to refuse what ONNX allows.
ORACLES: dict[str, Callable[..., tuple[Array, ...]]] = {"gather_elements": _gather_elements}


def _converted(name: str) -> Callable[[GradientCase], Case]:
    def convert(case: GradientCase) -> Case:
        floats = [i for i, x in enumerate(case.inputs) if x is not None and x.dtype == np.float64]
        return Case(
            dict(case.attributes),
            list(case.inputs),
            skip_inputs=tuple(i for i in floats if i not in case.differentiable),
            skip_outputs=tuple(i for i in range(case.outputs) if i not in case.differentiable_outputs),
            outputs=case.outputs,
            oracle=ORACLES.get(name),
        )

    return convert


def _all_cases() -> dict[str, st.SearchStrategy[Case]]:
    strategies, cases = load_strategies(), {**OWN_CASES, **LAYER_CASES}
    for name in LIBRARY.names():
        operator = LIBRARY.get(name).__name__
        if name not in cases and operator in strategies:
            cases[name] = strategies[operator].map(_converted(name))
    return cases


CASES = _all_cases()
