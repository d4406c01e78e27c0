from __future__ import annotations

import gc
import sys
import threading
import weakref
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deep500.core.errors import OperatorError
from deep500.operators.custom.compiling import compile_custom_cppop_inline
from deep500.operators.custom.native_op import NativeOp
from deep500.operators.native.binding import make_caller
from tests.unit.operators.array_forms import FORMS, SHAPES, in_form
from tests.unit.operators.sources import cube_sum, mixed

DTYPES = [np.float32, np.float64, np.float16, ml_dtypes.bfloat16]


@pytest.fixture(scope="module")
def op() -> NativeOp:
    return mixed(scale=3.0)


@st.composite
def arrays(draw: Any, shapes: st.SearchStrategy[tuple[int, ...]], dtype: Any) -> np.ndarray:
    """Draw an array in one of the many forms that NumPy has for the same values."""
    values = np.random.default_rng(draw(st.integers(0, 99))).integers(-8, 9, draw(shapes))
    return in_form(np.asarray(values, dtype), draw(st.sampled_from(FORMS)))


@settings(max_examples=300)
@given(data=st.data(), dtype=st.sampled_from(DTYPES))
def test_every_form_of_an_array(op: NativeOp, data: Any, dtype: Any) -> None:
    shape = data.draw(SHAPES)
    x = data.draw(arrays(st.just(shape), dtype))
    labels = data.draw(arrays(SHAPES, np.int64))
    shift = data.draw(st.none() | arrays(st.just(shape), dtype))
    before = [None if a is None else a.copy() for a in (x, labels, shift)]

    y, n = op.numpy_forward(x, labels, shift)

    added = np.zeros(shape) if shift is None else shift.astype(np.float64)
    assert (y.shape, y.dtype, n.shape) == (shape, np.dtype(dtype), (1,))
    np.testing.assert_array_equal(y.astype(np.float64), 3.0 * x.astype(np.float64) + added)
    assert n[0] == labels.sum() - 1
    for array, copied in zip((x, labels, shift), before):
        assert array is None or np.array_equal(array, copied)

    by_x, by_labels, by_shift = op.numpy_backward(y, n, x, labels, shift, y, n)
    np.testing.assert_array_equal(
        by_x.astype(np.float64), (3.0 * y.astype(np.float64)).astype(dtype).astype(np.float64)
    )
    assert by_labels is None
    assert (by_shift is None) == (shift is None)


ANYTHING = st.one_of(
    st.none(),
    st.sampled_from([1, 2.5, "text", b"bytes", [], [1.0, 2.0], [[1], [2, 3]], {}, object(), np, np.float32(3)]),
    st.sampled_from("?bBhHiIlLqQefdgFDGSUVOmM").flatmap(
        lambda letter: SHAPES.map(lambda shape: np.zeros(shape, np.dtype(letter + ("8" if letter in "SUV" else ""))))
    ),
    st.sampled_from([np.ma.masked_array([1.0], [True]), np.zeros(2, [("a", "f4"), ("b", "f4")])]),
    st.sampled_from([np.zeros(3, dtype) for dtype in (ml_dtypes.int4, ml_dtypes.float8_e5m2, ml_dtypes.bfloat16)]),
)


@settings(max_examples=300)
@given(arguments=st.lists(ANYTHING, max_size=5))
def test_anything_is_computed_or_refused(op: NativeOp, arguments: list[Any]) -> None:
    try:
        y, n = op.numpy_forward(*arguments)
    except (OperatorError, ValueError, TypeError):
        return
    assert len(arguments) == 3
    assert y.dtype in DTYPES
    assert n.shape == (1,)


def test_refusals_say_why(op: NativeOp) -> None:
    x, labels = np.ones(2), np.ones(2, np.int64)

    with pytest.raises(OperatorError, match="mixed: tensors are given without names"):
        op.numpy_forward(x, labels, shift=None)
    with pytest.raises(OperatorError, match="mixed was given 0 tensors; accepted are 3"):
        op.numpy_forward()
    with pytest.raises(OperatorError, match="mixed was given inputs of the dtypes"):
        op.numpy_forward(x.astype(np.complex64), labels, None)


@pytest.mark.parametrize("value", [[[1.0], [2.0, 3.0]], [1.0, "a", None, []]])
def test_what_numpy_makes_no_array_of_is_refused(op: NativeOp, value: Any) -> None:
    with pytest.raises(OperatorError, match=r"mixed was given something as input 1 of which NumPy makes no array: .*"):
        op.numpy_forward(np.ones(2), value, None)


def test_what_an_argument_raises_is_the_cause(op: NativeOp) -> None:
    class Broken:
        def __init__(self, error: BaseException) -> None:
            self.error = error

        def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
            raise self.error

    with pytest.raises(OperatorError, match="makes no array: nothing is here") as caught:
        op.numpy_forward(Broken(RuntimeError("nothing is here")), np.ones(1, np.int64), None)
    assert isinstance(caught.value.__cause__, RuntimeError)
    for error in (MemoryError(), KeyboardInterrupt()):
        with pytest.raises(type(error)):
            op.numpy_forward(Broken(error), np.ones(1, np.int64), None)


def test_garbage_that_calls_the_operator_while_it_runs() -> None:
    """What a call knows of its outputs stays, although calls in the meantime push it out (Python before 3.12)."""
    function = cube_sum().numpy_forward

    class Garbage:
        def __init__(self) -> None:
            self.itself = self

        def __del__(self) -> None:
            for size in range(20):
                function(np.ones((size, 2)))

    before = gc.get_threshold()
    gc.freeze()  # what other tests have left is not looked at each time
    try:
        for threshold in range(1, 12):
            function(np.ones((3, 4)))
            gc.collect()
            Garbage()
            gc.set_threshold(threshold, 1, 1)
            cubes, sums = function(np.ones((3, 4)))
            gc.set_threshold(*before)
            assert (cubes.tolist(), sums.tolist()) == ([[1.0] * 4] * 3, [4.0] * 3)
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()


def test_aliased_arrays() -> None:
    op = compile_custom_cppop_inline(
        "add_twice",
        """
        #include <deep500/operator.h>
        struct AddTwice {
            static void forward(deep500::View<const float> a, deep500::View<const float> b, deep500::View<float> y) {
                for (int64_t i = 0; i < y.size(); ++i) y[i] = a[i] + 2 * b[i];
            }
        };
        D500_OPERATOR(add_twice, AddTwice)
        """,
    )
    x = np.arange(4, dtype=np.float32)

    assert op(x, x).tolist() == [0.0, 3.0, 6.0, 9.0]
    assert op(x[:3], x[1:]).tolist() == [2.0, 5.0, 8.0]
    assert op(x[::2], x[::-2]).tolist() == [6.0, 4.0]


def test_outputs_are_new_each_time(op: NativeOp) -> None:
    x, labels = np.ones(2), np.ones(1, np.int64)
    first, second = op(x, labels, None)[0], op(x, labels, None)[0]
    first[:] = 7

    assert second.tolist() == [3.0, 3.0]
    assert not np.shares_memory(first, x)
    assert first.flags.writeable
    assert first.flags.owndata


def test_many_shapes_in_turn(op: NativeOp) -> None:
    asked: list[Any] = []
    resolve = op._resolve_forward
    caller = make_caller(
        op.library.symbol("forward"), "mixed", 3, op.attributes, op.library.description.attributes,
        lambda shapes, dtypes: asked.append(shapes) or resolve(shapes, dtypes),
    )  # fmt: skip
    labels = np.ones(1, np.int64)

    for size in [*range(20), *range(12, 20), 3]:
        assert caller(np.ones(size), labels, None)[0].tolist() == [3.0] * size

    assert len(asked) == 21  # the last eight are remembered
    caller(np.ones(3, np.float32), labels, None)
    caller(np.ones(3), labels, np.ones(3))
    assert len(asked) == 23  # other dtypes, another input that is absent


def test_many_tensors() -> None:
    count = 16
    views = ", ".join(f"deep500::View<const double> x{i}" for i in range(count))
    outputs = ", ".join(f"deep500::View<double> y{i}" for i in range(count))
    body = " ".join(f"for (int64_t i = 0; i < y{k}.size(); ++i) y{k}[i] = x{k}[i] + {k};" for k in range(count))
    op = compile_custom_cppop_inline(
        "many",
        f"#include <deep500/operator.h>\nstruct Many {{ static void forward({views}, {outputs}) {{ {body} }} }};\n"
        "D500_OPERATOR(many, Many)\n",
    )

    results = op(*[np.full(2, float(i)) for i in range(count)])

    assert [y.tolist() for y in results] == [[2.0 * i] * 2 for i in range(count)]


def test_threads_share_an_operator_and_the_lock_is_free(op: NativeOp) -> None:
    waiting = compile_custom_cppop_inline(
        "waiting",
        """
        #include <atomic>
        #include <deep500/operator.h>
        static std::atomic<int> inside{0};
        struct Waiting {  // until as many calls are inside as the input says
            static void forward(deep500::View<const int32_t> x, deep500::View<int32_t> y) {
                ++inside;
                for (int64_t i = 0; i < 20000000000 && inside < x[0]; ++i) {}
                y[0] = inside;
            }
        };
        D500_OPERATOR(waiting, Waiting)
        """,
    )
    found: list[int] = []
    wanted = np.array([3], np.int32)
    threads = [threading.Thread(target=lambda: found.append(int(waiting(wanted)[0]))) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [3, 3, 3]

    errors: list[Exception] = []

    def work(size: int) -> None:
        try:
            for i in range(300):
                x = np.full(size + i % 13, float(size))
                assert op(x, np.ones(1, np.int64), None)[0].tolist() == (3.0 * x).tolist()
        except (AssertionError, OperatorError) as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(size,)) for size in range(1, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []


def test_no_reference_is_lost_or_kept(op: NativeOp) -> None:
    x, labels, dtype = np.ones(100), np.ones(1, np.int64), np.dtype(np.float64)
    wrong = np.ones(100, np.int8)
    op(x, labels, None)
    before = [sys.getrefcount(o) for o in (x, labels, wrong, dtype, None)]

    for _ in range(1000):
        op(x, labels, None)
        op(x[::2], labels, None)
        op.numpy_backward(x, None, x, labels, None, x, labels)
        with pytest.raises(OperatorError):
            op(wrong, labels, None)

    after = [sys.getrefcount(o) for o in (x, labels, wrong, dtype, None)]
    assert all(abs(b - a) < 200 for a, b in zip(before, after))


def test_memory_of_an_operator_is_freed() -> None:
    found = cube_sum()
    found(np.ones((1, 1)))
    reference = weakref.ref(found)
    del found
    gc.collect()

    assert reference() is None


def resolving(answer: Any) -> Callable[..., Any]:
    op = cube_sum()
    return make_caller(op.library.symbol("forward"), "cube_sum", 1, {}, {}, lambda shapes, dtypes: answer)


FLOAT64 = np.dtype(np.float64)


@pytest.mark.parametrize(
    "answer",
    [
        None,
        3,
        [3],
        [((2,),)],
        [((2,), "float64")] * 2,
        [([2], FLOAT64)] * 2,
        [(("a",), FLOAT64)] * 2,
        [((-5,), FLOAT64)] * 2,
        [((2**63,), FLOAT64)] * 2,
        [((2**62,), FLOAT64)] * 2,
        [((1,) * 70, FLOAT64)] * 2,
    ],
)
def test_planted_answers_that_would_break_memory(answer: Any) -> None:
    with pytest.raises((TypeError, ValueError, OverflowError, MemoryError)):
        resolving(answer)(np.ones((2, 2)))


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ([((2, 2), FLOAT64)], "cube_sum: 1 outputs were given, accepted are 2"),
        ([((2, 2), FLOAT64)] * 3, "cube_sum: 3 outputs were given, accepted are 2"),
        ([((2, 2), np.dtype(np.float32)), ((2,), FLOAT64)], "cube_sum: there is no variant"),
        ([((2, 2), FLOAT64), None], "cube_sum: output 1 is absent; it has to be given"),
    ],
)
def test_planted_answers_that_the_library_refuses(answer: Any, message: str) -> None:
    with pytest.raises(OperatorError, match=message):
        resolving(answer)(np.ones((2, 2)))


def test_wrong_arguments_of_a_caller() -> None:
    with pytest.raises(ValueError, match="the address of the function is 0"):
        make_caller(0, "x", 1, {}, {}, lambda shapes, dtypes: [])
    with pytest.raises(TypeError):
        make_caller(1, "x", 1, {"a": "text"}, {"a": "int"}, lambda shapes, dtypes: [])
    with pytest.raises(OverflowError):
        make_caller(1, "x", 1, {"a": 2**63}, {"a": "int"}, lambda shapes, dtypes: [])
