"""Sample cases for every operator of the NumPy library: those of ``operator_cases.py`` and ``layer_cases.py``, else of
the gradients.

An operator without an entry there is drawn by its strategy in ``onnx_gradients``.
"""

from __future__ import annotations

import math
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


def _erf(attributes: dict[str, Any], x: Array) -> tuple[Array, ...]:
    """``onnx.reference`` has the digits of float32."""
    return (np.array([math.erf(value) for value in x.reshape(-1)], x.dtype).reshape(x.shape),)


def _gelu(attributes: dict[str, Any], x: Array) -> tuple[Array, ...]:
    """``onnx.reference`` has constants with the digits of float32."""
    scale = math.sqrt(2 / math.pi)
    functions: dict[str, Callable[[float], float]] = {
        "none": lambda v: 0.5 * v * (1 + math.erf(v / math.sqrt(2))),
        "tanh": lambda v: 0.5 * v * (1 + math.tanh(scale * (v + 0.044715 * v**3))),
    }
    function = functions[attributes["approximate"]]
    return (np.array([function(float(value)) for value in x.reshape(-1)], x.dtype).reshape(x.shape),)


def _hard_swish(attributes: dict[str, Any], x: Array) -> tuple[Array, ...]:
    """``onnx.reference`` has 1 / 6 with the digits of float32."""
    return (x * np.maximum(0, np.minimum(1, x / 6 + x.dtype.type(0.5))),)


def _mean(attributes: dict[str, Any], *tensors: Array) -> tuple[Array, ...]:
    """``onnx.reference`` adds to the first tensor, which may be smaller than the others."""
    return (np.mean(np.broadcast_arrays(*tensors), axis=0, dtype=tensors[0].dtype),)


def _log_sum_exp(attributes: dict[str, Any], data: Array, axes: Array | None = None) -> tuple[Array, ...]:
    """``onnx.reference`` fails on scalars."""
    given = None if axes is None or not axes.size else tuple(axes.tolist())
    over = () if given is None and attributes["noop_with_empty_axes"] else given
    total = np.sum(np.exp(data.astype(np.float64)), axis=over, keepdims=bool(attributes["keepdims"]))
    return (np.asarray(np.log(total), data.dtype),)


def _pad(attributes: dict[str, Any], data: Array, pads: Array, *rest: Array | None) -> tuple[Array, ...]:
    """``onnx.reference`` refuses negative pads."""
    value, axes = [*rest, None, None][:2]
    places = list(range(data.ndim)) if axes is None else [int(axis) % data.ndim for axis in axes]
    ends = [(0, 0)] * data.ndim
    for i, axis in enumerate(places):
        ends[axis] = (int(pads[i]), int(pads[len(places) + i]))
    cut = tuple(
        slice(max(0, -before), size - max(0, -after)) for (before, after), size in zip(ends, data.shape, strict=True)
    )
    widths = [(max(0, before), max(0, after)) for before, after in ends]
    constant = {"constant_values": 0 if value is None else value} if attributes["mode"] == "constant" else {}
    return (np.pad(data[cut], widths, mode=attributes["mode"], **constant),)


def _slice(attributes: dict[str, Any], data: Array, *rest: Array | None) -> tuple[Array, ...]:
    """Take entry after entry, as the specification has it; ``onnx.reference`` takes no entry from before an axis on."""
    starts, ends, axes, steps = [*rest, None, None][:4]
    for i, axis in enumerate(range(len(starts)) if axes is None else axes):
        size, step = data.shape[axis], 1 if steps is None else int(steps[i])
        start, end = (int(v[i]) + size if v[i] < 0 else int(v[i]) for v in (starts, ends))
        low, high = (0, size) if step > 0 else (-1, size - 1)
        place, taken = min(max(start, 0), high), []
        while low <= place < size and (place < min(end, size) if step > 0 else place > max(end, -1)):
            taken.append(place)
            place += step
        data = np.take(data, np.array(taken, np.int64), axis=axis)
    return (data,)


#: Used in place of ``onnx.reference`` where that is known to be wrong or to refuse what ONNX allows.
ORACLES: dict[str, Callable[..., tuple[Array, ...]]] = {
    "erf": _erf,
    "gather_elements": _gather_elements,
    "gelu": _gelu,
    "hard_swish": _hard_swish,
    "mean": _mean,
    "pad": _pad,
    "reduce_log_sum_exp": _log_sum_exp,
    "slice": _slice,
}


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
