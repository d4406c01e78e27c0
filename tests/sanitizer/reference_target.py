"""Calls with NumPy arrays."""

from __future__ import annotations

import contextlib
import gc
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from deep500.core.errors import OperatorError
from deep500.operators.custom import CustomOp
from tests.sanitizer.target import UNKNOWN, Function, Given, Target
from tests.unit.operators.array_forms import FORMS, in_form

__all__ = ["ReferenceTarget"]


#: After how many new objects garbage is collected: at one of them, the operator makes the tuple of its results.
_THRESHOLDS = itertools.cycle(range(1, 12))


class _Array:
    """What NumPy makes an array of by asking it."""

    def __init__(self, array: np.ndarray) -> None:
        self._array = array

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return np.array(self._array, dtype)


class _Broken:
    """What fails when NumPy asks it for an array."""

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        raise RuntimeError("nothing is here")


class ReferenceTarget(Target):
    name = "reference"
    forms = (*FORMS, "matrix", "masked", "list", "asked", "subclass")
    dtypes = (
        "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32",
        "float64", "longdouble", "complex64", "complex128", "clongdouble", "bfloat16", "float8_e5m2", "int4",
        "S8", "U3", "O", "M8[s]", "m8[ms]", "V8",
    )  # fmt: skip
    highest_rank = 64
    refusals = (OperatorError, MemoryError)

    def dtype(self, name: str) -> np.dtype[Any]:
        return np.dtype(getattr(ml_dtypes, name, name))

    def given(self, array: np.ndarray, form: str) -> Given:
        if array.dtype.kind in "SUOMmV" and array.dtype != ml_dtypes.bfloat16:
            form = "plain"
        value: Any = in_form(array, form) if form in FORMS else _of_type(array, form)
        if form == "list" and not isinstance(value, np.ndarray):  # which forgets what NumPy does not choose by itself
            array = np.asarray(value)
        elif form in FORMS:
            array = np.array(value, value.dtype.newbyteorder("=") if form == "swapped" else None)
        return Given(value, array, f"{form} {array.dtype}{list(array.shape)}")

    def odd(self) -> Sequence[Callable[[], Given]]:
        huge = np.broadcast_to(np.float64(1), (2**40, 3))  # a copy takes 24 TiB
        return [
            *(lambda x=x: Given(x, np.asarray(x), repr(x)) for x in (1, 2.5, True, [1.0, 2.0], (), np.float32(3))),
            *(
                lambda x=x: Given(x, UNKNOWN, f"{x!r:.40}")
                for x in ("text", b"bytes", {}, object(), np, [[1], [2, 3]], [1, "a", None], _Broken(), Ellipsis)
            ),
            lambda: Given(np.zeros(2, [("a", "f4"), ("b", "i8")]), UNKNOWN, "a record"),
            lambda: Given(memoryview(bytearray(8)), UNKNOWN, "a memoryview"),
            lambda: Given(huge, UNKNOWN, "more than there is memory"),
        ]

    def arrays(self, results: Any) -> list[np.ndarray]:
        return list(results) if isinstance(results, tuple) else [results]

    def gradients(
        self, op: CustomOp, inputs: Sequence[Given], outputs: Any, grads: Sequence[Given | None], call: Function
    ) -> list[np.ndarray | None]:
        values = [None if g is None else g.value for g in grads]
        return list(op.run_backward(values, [given.value for given in inputs], self.arrays(outputs)))

    def wrong_gradients(self) -> bool:
        return True

    def ways(self) -> Sequence[tuple[str, Callable[[Function], Function]]]:
        return [("", lambda function: function), ("while garbage is collected, ", _while_collecting)]


def _of_type(array: np.ndarray, form: str) -> Any:
    if form == "matrix" and array.ndim == 2:
        return np.asmatrix(array)
    if form == "masked":
        return np.ma.masked_array(array, array == array.max() if array.size else False)
    if form == "list" and array.dtype != ml_dtypes.bfloat16:
        return array.tolist()
    if form == "asked":
        return _Array(array)
    if form == "subclass":
        return array.view(type("Subclass", (np.ndarray,), {}))
    return array


def _while_collecting(function: Function) -> Function:
    """Return a function during whose calls garbage is collected that calls it again, with other shapes."""

    class Finalized:
        def __init__(self, number: int) -> None:
            self.itself, self.number = self, number

        def __del__(self) -> None:
            for size in range(10):
                for dtype in (np.float32, np.float64):
                    with contextlib.suppress(OperatorError):
                        function(np.ones((size, self.number), dtype))
            if self.number:
                Finalized(self.number - 1)  # what the next collection finds

    def call(*values: Any) -> Any:
        before = gc.get_threshold()
        function(*values)  # what is met for the first time makes other objects before
        gc.collect()  # which also gives back the tuples that Python keeps, so that new ones are counted
        Finalized(3)
        gc.set_threshold(next(_THRESHOLDS), 1, 1)
        try:
            return function(*values)
        finally:
            gc.set_threshold(*before)

    return call
