"""Calls with generated inputs, each of which has to be right or refused."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st
from ml_dtypes import finfo

from tests.sanitizer.operators import CASES, Case, Refused
from tests.sanitizer.target import UNKNOWN, Given, Target
from tests.unit.operators.array_forms import SHAPES

__all__ = ["Session"]

#: How an argument is drawn; the right ones are in the majority, else nearly every call would be refused.
_KINDS = [*["right"] * 40, *["earlier"] * 8, "absent", "odd", "any dtype", "any shape", "high rank", "high rank"]

#: The operators; those that can only throw, less often.
_WEIGHTED = [case for case in CASES for _ in range(1 if case.backward is None else 4)]

#: Largest absolute value of an earlier result that is given again, so that whole numbers stay exact in float32.
_LARGEST = 1000


class Session:
    """Draws calls, runs and checks them.

    Attributes:
        counts: How many calls ended how: "right", or why they were refused.
    """

    def __init__(self, target: Target, tell: Callable[[str], None]) -> None:
        """Take a framework, and who is told of each call before it is made, should it be the last."""
        self.target = target
        self.counts: Counter[str] = Counter()
        self._tell = tell

    def run(self, data: Any) -> None:
        """Run a few calls that may use each other's tensors; perhaps several at once."""
        pool: list[Given] = []
        if _rarely(data, 20):
            self._run_at_once([_Call(self.target, data, pool) for _ in range(4)])
        if _rarely(data, 20):
            self._tell("a call below the functions")
            ending = self.target.raw(data)
            if ending is not None:
                self.counts[ending] += 1
        for _ in range(data.draw(st.integers(1, 3), label="calls")):
            call = _Call(self.target, data, pool)
            self._tell(str(call))
            call.run()
            self.counts[call.check()] += 1
            pool += call.found()
            if call.is_right and call.draw_gradients(data):
                self._tell(f"{call}, differentiated")
                self.counts[f"gradient {call.differentiate()}"] += 1

    def _run_at_once(self, calls: Sequence[_Call]) -> None:
        self._tell(" beside ".join(map(str, calls)))
        barrier = threading.Barrier(len(calls))

        def run(call: _Call) -> None:
            barrier.wait()
            call.run()

        threads = [threading.Thread(target=run, args=(call,)) for call in calls]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for call in calls:
            self.counts[call.check()] += 1


class _Call:
    """One call: drawn, run, checked."""

    def __init__(self, target: Target, data: Any, pool: Sequence[Given]) -> None:
        self.target = target
        self.case: Case = data.draw(st.sampled_from(_WEIGHTED), label="operator")
        ways = target.ways()
        way, wrap = data.draw(st.sampled_from(ways)) if _rarely(data, 10) else ways[0]
        self.inputs = self._inputs(data, pool)
        self.function = wrap(target.function(self.case.op))
        self.text = f"{way}{self.case.name}({', '.join(given.label for given in self.inputs)})"
        self.returned: Any = None
        self.raised: Exception | None = None
        self.is_right = False

    def __str__(self) -> str:
        return self.text

    def run(self) -> None:
        """Call the operator."""
        try:
            self.returned = self.function(*[given.value for given in self.inputs])
        except Exception as error:  # noqa: BLE001 - what may be raised is checked later, in the main thread
            self.raised = error

    def check(self) -> str:
        """Return how the call ended.

        Raises:
            AssertionError: Neither right nor refused.
        """
        try:
            expected = self._expected()
        except Refused as reason:
            return f"refused: {self._refusal(str(reason))}"
        if self.raised is not None and any(given.may_be_refused for given in self.inputs):
            return f"refused: {self._refusal('by the framework')}"
        if self.raised is not None:
            raise AssertionError(f"{self} was refused without need") from self.raised
        dtypes = self.case.op.signature(self._names()).outputs
        _compare(str(self), self.target.arrays(self.returned), expected, dtypes)
        self.is_right = True
        return "right"

    def found(self) -> list[Given]:
        """Return inputs and outputs that a later call may be given again."""
        values = [given for given in self.inputs if isinstance(given.array, np.ndarray) and not given.may_be_refused]
        if self.is_right:
            results = self.returned if isinstance(self.returned, tuple) else (self.returned,)
            pairs = zip(results, self.target.arrays(self.returned))
            values += [Given(value, y.copy(), f"output of {y.dtype}{list(y.shape)}") for value, y in pairs]
        return [given for given in values if _is_small(given.array)]

    def draw_gradients(self, data: Any) -> bool:
        """Draw gradients by the outputs; say whether the call is to be differentiated."""
        if self.case.backward is None or not data.draw(st.booleans(), label="differentiate"):
            return False
        self.grads, self.has_wrong = list[Given | None](), False
        for y in self.target.arrays(self.returned):
            self.grads.append(self._gradient(data, y))
        return any(g is not None for g in self.grads)

    def differentiate(self) -> str:
        """Compute gradients; return how it ended.

        Raises:
            AssertionError: Neither right nor refused.
        """
        case, arrays = self.case, [given.array for given in self.inputs]
        assert case.backward is not None
        outputs = [_wide(y) for y in self.target.arrays(self.returned)]
        try:
            found = self.target.gradients(case.op, self.inputs, self.returned, self.grads, self.function)
        except self.target.refusals as error:
            if self.has_wrong:
                return "refused: shape or dtype"
            raise AssertionError(f"the gradient of {self} was refused without need") from error
        assert not self.has_wrong, f"the gradient of {self} was not refused for {self.grads}"
        grads = [np.zeros(y.shape) if g is None else _wide(g.array) for g, y in zip(self.grads, outputs)]
        expected = case.backward(grads, [None if x is None else _wide(x) for x in arrays], outputs)
        for index, (value, right) in enumerate(zip(found, self._summed(expected), strict=True)):
            if value is None:  # a framework may say so of zeros
                assert right is None or not np.any(right), f"gradient {index} of {self} is missing"
            else:
                assert right is not None, f"gradient {index} of {self} should be none"
                _compare(f"gradient {index} of {self}", [value], [right], [str(self._names()[index])])
        return "right"

    def _summed(self, expected: Sequence[Any]) -> list[Any]:
        """Add up the gradients by an input that is given several times, unless NumPy tells them apart."""
        if self.target.name == "reference":
            return list(expected)
        sums: dict[int, Any] = {}
        for given, gradient in zip(self.inputs, expected):
            if gradient is not None:
                sums[id(given.value)] = sums.get(id(given.value), 0) + gradient
        return [None if gradient is None else sums[id(given.value)] for given, gradient in zip(self.inputs, expected)]

    def _names(self) -> list[str | None]:
        return [None if given.array is None else given.array.dtype.name for given in self.inputs]

    def _expected(self) -> list[np.ndarray]:
        if len(self.inputs) == len(self.case.inputs) and any(given.array is UNKNOWN for given in self.inputs):
            raise Refused("no array")
        return self.case.expected([given.array for given in self.inputs])

    def _refusal(self, reason: str) -> str:
        if self.raised is None:
            raise AssertionError(f"{self} was not refused ({reason}); it returned {self.returned!r}")
        if not isinstance(self.raised, self.target.refusals) or not str(self.raised):
            raise AssertionError(f"{self} was refused ({reason}) by another error") from self.raised
        return reason

    # --- drawing -----------------------------------------------------------------------------------------------------

    def _inputs(self, data: Any, pool: Sequence[Given]) -> list[Given]:
        case, found = self.case, list[Given]()
        dtypes = case.dtypes(data.draw(st.sampled_from(case.variants), label="T"))
        count = len(dtypes)
        if _rarely(data, 30):
            count = data.draw(st.integers(0, count + 2))
        for index in range(count):
            place = min(index, len(dtypes) - 1)
            known = [*pool, *[given for given in found if isinstance(given.array, np.ndarray)]]
            kind = data.draw(st.sampled_from(_KINDS), label="kind")
            if kind == "earlier" and known:
                found.append(data.draw(st.sampled_from(known)))
            elif kind == "absent" or (case.inputs[place].endswith("?") and _rarely(data, 3)):
                found.append(Given(None, None, "None"))
            elif kind == "odd":
                found.append(data.draw(st.sampled_from(self.target.odd()))())
            else:
                shape = self._shape(data, kind, case.shapes[min(place, len(case.shapes) - 1)], found)
                dtype = data.draw(st.sampled_from(self.target.dtypes)) if kind == "any dtype" else dtypes[place]
                found.append(self._drawn(data, shape, dtype, case.ranges[place]))
        return found

    def _shape(self, data: Any, kind: str, rule: str, found: Sequence[Given]) -> tuple[int, ...]:
        first = found[0].array if found else None
        if kind == "high rank":
            return (1,) * data.draw(st.integers(6, self.target.highest_rank), label="rank")
        if kind == "any shape" or rule == "any" or (rule == "first" and not isinstance(first, np.ndarray)):
            return data.draw(SHAPES)
        if rule == "first":
            return first.shape
        rank = {"vector": 1, "matrix": 2}[rule]
        return data.draw(st.tuples(*[st.integers(0, 4)] * rank))

    def _drawn(self, data: Any, shape: tuple[int, ...], dtype: str, limits: tuple[int, int] = (-8, 8)) -> Given:
        stream = np.random.default_rng(data.draw(st.integers(0, 999), label="values"))
        low, high = (max(limits[0], 0), limits[1]) if dtype[0] in "ub" else limits
        numbers = np.asarray(stream.integers(low, high + 1, shape))
        form = data.draw(st.sampled_from(self.target.forms), label="form")
        return self.target.given(numbers.astype(self.target.dtype(dtype)), form)

    def _gradient(self, data: Any, y: np.ndarray) -> Given | None:
        """Draw the gradient by an output; ``None`` where nobody uses it."""
        if y.dtype.kind == "i" or _rarely(data, 5):
            return None
        if self.target.wrong_gradients() and _rarely(data, 10):
            wrong = [((*y.shape, 2), y.dtype), (y.shape, np.int16), (y.shape, np.complex64)]
            shape, dtype = data.draw(st.sampled_from(wrong))
            self.has_wrong = True
            return self.target.given(np.zeros(shape, dtype), "plain")
        drawn = self._drawn(data, y.shape, y.dtype.name)
        if (drawn.array.shape, drawn.array.dtype) == (y.shape, y.dtype):
            return drawn
        return self.target.given(np.zeros_like(y), "plain")  # a list knows no dtype


def _rarely(data: Any, often: int) -> bool:
    """Draw what is true once in so many times; numbers at the ends of a range are drawn more often than others."""
    return bool(data.draw(st.integers(0, often - 1)) == often // 2)


def _is_small(array: np.ndarray) -> bool:
    if array.dtype.kind not in "fi" and array.dtype.name != "bfloat16":
        return False
    wide = _wide(array)
    return bool(np.isfinite(wide).all() and (np.abs(wide) <= _LARGEST).all())


def _wide(array: np.ndarray) -> np.ndarray:
    return array if array.dtype.kind in "iub" else array.astype(np.float64)


def _compare(what: str, found: Sequence[np.ndarray], expected: Sequence[np.ndarray], dtypes: Sequence[str]) -> None:
    assert len(found) == len(expected), f"{what} gave {len(found)} tensors, not {len(expected)}"
    for value, right, dtype in zip(found, expected, dtypes):
        assert (value.dtype.name, value.shape) == (dtype, right.shape), f"{what} gave {value.dtype} of {value.shape}"
        if value.dtype.kind in "iub":
            np.testing.assert_array_equal(value, right, what)
            continue
        roundings = 2 if value.dtype.itemsize == 2 else 16  # narrow floats are rounded once, at the end
        slack = roundings * float(finfo(value.dtype).eps)
        rounded = right.astype(value.dtype).astype(np.float64)
        np.testing.assert_allclose(value.astype(np.float64), rounded, rtol=slack, atol=8 * slack, err_msg=what)
