"""Checks of operators on NumPy's arrays that other frameworks do not hand over: odd strides, empty ones, in threads."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from deep500.core.device import Device, parse_device
from deep500.core.errors import OperatorError
from deep500.core.texts import message_of
from deep500.frameworks.reference.device import check_device
from deep500.operators.custom import Check, CustomOp, NotRunError
from deep500.operators.custom.findings import check_agreement, random_gradients
from deep500.operators.operator import OptionalArray

__all__ = ["custom_op_checks"]

Inputs = Sequence[OptionalArray]
Cases = Callable[[], Sequence[Inputs]]

#: Threads that call an operator at once, and how often each does.
_THREADS, _CALLS = 4, 8


def custom_op_checks(op: CustomOp, cases: Cases, *, device: str | Device | None = None) -> list[Check]:
    """Return what is to be looked at beside plain calls and gradients.

    Args:
        op: The operator.
        cases: Makes inputs, and further ones of other sizes where there are some; called by each check.
        device: The processor.

    Raises:
        DeviceError: Another device was named.
    """
    check_device(parse_device(device))
    return [
        Check("odd strides", functools.partial(_check_strides, op, cases)),
        Check("inputs unchanged", functools.partial(_check_unchanged, op, cases)),
        Check("empty tensors", functools.partial(_check_empty, op, cases)),
        Check(f"{_THREADS} threads", functools.partial(_check_threads, op, cases)),
    ]


def _check_strides(op: CustomOp, cases: Cases) -> str:
    """Call the operator on arrays of the same values that lie otherwise in memory."""
    inputs = cases()[0]
    if all(x is None or x.ndim == 0 for x in inputs):
        raise NotRunError("all inputs are scalars")
    expected = op.run_forward(inputs)
    for name, layout in _LAYOUTS.items():
        try:
            check_agreement("output", op.run_forward([None if x is None else layout(x) for x in inputs]), expected)
        except OperatorError as error:
            raise OperatorError(f"with {name}: {message_of(error)}") from error
    return ", ".join(_LAYOUTS)


def _with_gaps(x: Any) -> Any:
    if x.ndim == 0:
        return x
    wide = np.zeros([2 * size for size in x.shape], x.dtype)
    view = wide[tuple(slice(None, None, 2) for _ in x.shape)]
    view[...] = x
    return view


def _backwards(x: Any) -> Any:
    return np.flip(np.ascontiguousarray(np.flip(x))).reshape(x.shape)


_LAYOUTS: dict[str, Callable[[Any], Any]] = {
    "gaps": _with_gaps,
    "Fortran's order": np.asfortranarray,
    "negative strides": _backwards,
}


def _check_unchanged(op: CustomOp, cases: Cases) -> str:
    """Call forward and backward on arrays that nobody may write to, and look whether somebody did."""
    inputs = cases()[0]
    given = [None if x is None else np.array(x) for x in inputs]
    for x in given:
        if x is not None:
            x.flags.writeable = False
    outputs = op.run_forward(given)
    gradients = random_gradients(outputs, np.random.default_rng(0))
    if op.differentiable:
        op.run_backward(gradients, given, outputs)
    for index, (x, before) in enumerate(zip(given, inputs)):
        if x is not None and before is not None and x.tobytes() != np.ascontiguousarray(before).tobytes():
            raise OperatorError(f"input {index} was written to; an operator leaves its inputs as they are.")
    return "by forward and backward" if op.differentiable else "by forward"


def _check_empty(op: CustomOp, cases: Cases) -> str:
    """Call the operator on tensors without elements: it computes what it promises, or refuses."""
    inputs = cases()[0]
    if all(x is None or x.ndim == 0 for x in inputs):
        raise NotRunError("all inputs are scalars")
    empty = [x if x is None or x.ndim == 0 else x[:0] for x in inputs]
    try:
        outputs = op.run_forward(empty)
    except Exception as error:  # noqa: BLE001 - an author may refuse them by any exception
        return f"refused: {message_of(error)}"
    shapes, dtypes = op.infer_outputs(
        [None if x is None else x.shape for x in empty], [None if x is None else x.dtype.name for x in empty]
    )
    for index, (y, shape, dtype) in enumerate(zip(outputs, shapes, dtypes)):
        if op.infers and (tuple(y.shape), y.dtype.name) != (shape, dtype):
            raise OperatorError(
                f"output {index} is {y.dtype.name} of shape {tuple(y.shape)}; infer says {dtype} of shape {shape}."
            )
    return "taken"


def _check_threads(op: CustomOp, cases: Cases) -> str:
    """Call the operator from several threads at once."""
    inputs = cases()[0]
    expected = op.run_forward(inputs)
    with ThreadPoolExecutor(_THREADS) as pool:
        for outputs in pool.map(lambda _: op.run_forward(inputs), range(_THREADS * _CALLS)):
            check_agreement("output", outputs, expected)
    return f"{_THREADS * _CALLS} calls alike"
