"""Every native operator keeps one contract: right values and gradients in every dtype, the same in every framework.

The operators and their cases are in ``native_op_cases.py``.
"""

from __future__ import annotations

import doctest
import importlib
import math
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from threadpoolctl import threadpool_limits

import native_ops
from deep500.core.errors import OperatorError
from deep500.frameworks import FRAMEWORKS
from deep500.operators.custom.cpp_op import CppOp
from deep500.operators.library.conv import Conv
from deep500.operators.validation import test_op_gradient
from native_ops import AdamStep, BatchNorm, Conv2d, Gemm, IPow, MaxPool2d, SoftmaxCrossEntropy, SparseTopK
from tests.conformance.custom_harnesses import Harness
from tests.conformance.native_calls import call, check_margins, room_for
from tests.conformance.native_op_cases import CASES, ONE_EACH, Case, cast, check_close, compile_all, is_float, make_case

DTYPES = [np.dtype(d) for d in (np.float32, np.float64, ml_dtypes.bfloat16, np.float16)]
NAN, INF = math.nan, math.inf

#: Cases with ties, or of an operator that has no backward.
WITHOUT_DERIVATIVE = {"sparse_topk, ties", "adam_step", "adam_step, later"}

#: Cases whose derivatives would take seconds, and that a smaller one has as well.
LARGE = {"softmax_crossentropy, sum", "softmax_crossentropy, none", "gemm, larger than a block", "gemm, scalar C"}

each_case = pytest.mark.parametrize("name", sorted(CASES))
each_operator = pytest.mark.parametrize("name", ONE_EACH)
each_dtype = pytest.mark.parametrize("dtype", DTYPES, ids=str)


@pytest.fixture(scope="module", autouse=True)
def compiled() -> None:
    compile_all()


def strided(x: np.ndarray | None) -> np.ndarray | None:
    """Return the same values in memory with gaps."""
    return None if x is None or x.ndim == 0 else np.repeat(x, 2, axis=-1)[..., ::2]


# --- values and gradients ---------------------------------------------------------------------------------------------


@each_case
@each_dtype
def test_values_and_gradients(name: str, dtype: Any) -> None:
    case = make_case(name)
    inputs, grads = case.cast(dtype), case.gradients(dtype)
    outputs = case.op.run_forward(inputs)
    gradients = case.op.run_backward(grads, inputs, outputs) if case.op.differentiable else ()

    assert outputs[0].dtype == dtype
    case.check(inputs, grads, outputs, gradients)


@pytest.mark.parametrize("name", sorted(set(CASES) - WITHOUT_DERIVATIVE - LARGE))
def test_gradients_are_those_of_differences(name: str) -> None:
    case = make_case(name)

    assert test_op_gradient(case.op, case.cast(np.float64)).passed


def test_adam_step_has_no_gradient() -> None:
    case = make_case("adam_step")

    with pytest.raises(OperatorError, match="adam_step cannot be differentiated"):
        case.op.run_backward([None] * 3, case.cast(np.float64), [None] * 3)


@pytest.mark.parametrize("name", sorted(set(ONE_EACH) - {"adam_step"}))
def test_each_output_may_go_unused(name: str) -> None:
    case = make_case(name)
    inputs, grads = case.cast(np.float64), case.gradients(np.float64)
    outputs = case.op.run_forward(inputs)
    for unused in range(len(outputs)):
        missing = [None if i == unused else g for i, g in enumerate(grads)]
        zeros = [g if g is None or i != unused else np.zeros_like(g) for i, g in enumerate(grads)]
        found, expected = (case.op.run_backward(g, inputs, outputs) for g in (missing, zeros))
        for gradient, wanted in zip(found, expected, strict=True):
            if wanted is None:
                assert gradient is None
            else:
                np.testing.assert_allclose(gradient, wanted, rtol=1e-14, atol=1e-14)


@each_case
@pytest.mark.parametrize("dtype", [DTYPES[1], DTYPES[2]], ids=str)
def test_nothing_is_written_beside_the_outputs(name: str, dtype: Any) -> None:
    op = make_case(name).op
    inputs, grads = make_case(name).cast(dtype), make_case(name).gradients(dtype)
    outputs = room_for(op.run_forward(inputs))
    assert call(op.library, "forward", inputs, outputs, op.attributes).status == 0
    check_margins(outputs)
    if not op.differentiable:
        return
    gradients = room_for([x if x is not None and is_float(x) else None for x in inputs])
    assert call(op.library, "backward", [*grads, *inputs, *outputs], gradients, op.attributes).status == 0
    check_margins(gradients)


@each_operator
def test_threads_change_nothing(name: str) -> None:
    op = make_case(name).op
    inputs = cast(op, op.example_inputs(np.random.default_rng(5), "float32", large=True) or (), np.float32)
    results = []
    for threads in (1, 3):
        with threadpool_limits(threads, user_api="openmp"):
            outputs = op.run_forward(inputs)
            grads = [np.ones_like(y) if is_float(y) else None for y in outputs]
            results.append([*outputs, *(op.run_backward(grads, inputs, outputs) if op.differentiable else ())])

    # No sum is divided among threads, so that every bit is the same.
    for one, other in zip(*results, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("name", ["ipow", "gemm", "conv2d"])
def test_large_values_are_right(name: str) -> None:
    op: CppOp = {"ipow": IPow(power=3), "gemm": Gemm(), "conv2d": Conv2d()}[name]
    inputs = cast(op, op.example_inputs(np.random.default_rng(5), "float32", large=True) or (), np.float32)
    formula, terms = {
        "ipow": (lambda x: x**3, 3),
        "gemm": (lambda a, b, c: a @ b + c, 257),
        "conv2d": (lambda *tensors: Conv().forward(tensors)[0], 16 * 9 + 1),
    }[name]
    wide = [x.astype(np.float64) for x in inputs if x is not None]

    check_close(op(*inputs), formula(*wide), terms + 1, float(formula(*map(np.abs, wide)).max()))


# --- in every framework -----------------------------------------------------------------------------------------------


@each_operator
@pytest.mark.parametrize("dtype", [DTYPES[0], DTYPES[2]], ids=str)
def test_in_every_framework(harness: Harness, name: str, dtype: Any) -> None:
    case = make_case(name)
    inputs, grads = case.cast(dtype), case.gradients(dtype)

    outputs = harness.forward(case.op, inputs)
    gradients = harness.gradients(case.op, inputs, grads) if case.op.differentiable else []

    case.check(inputs, grads, outputs, gradients)


@each_operator
def test_memory_with_gaps(harness: Harness, name: str) -> None:
    case = make_case(name)
    inputs, grads = case.cast(np.float32), case.gradients(np.float32)
    gappy, gappy_grads = [x if x is None or x.ndim == 0 else strided(x) for x in inputs], [strided(g) for g in grads]
    gappy_grads = [g if gap is None else gap for g, gap in zip(grads, gappy_grads)]

    outputs = harness.forward(case.op, gappy)
    gradients = harness.gradients(case.op, gappy, gappy_grads) if case.op.differentiable else []

    case.check(inputs, grads, outputs, gradients)


def empty(*shape: int) -> np.ndarray:
    return np.empty(shape, np.float32)


ONE = np.ones(1, np.float32)

#: Operators, inputs without elements, and what comes out.
EMPTY: dict[str, tuple[Callable[[], CppOp], list[Any], list[Any]]] = {
    "ipow": (lambda: IPow(power=2), [empty(0, 3)], [empty(0, 3)]),
    "conv2d, images": (Conv2d, [empty(0, 1, 3, 3), ONE.reshape(1, 1, 1, 1), ONE], [empty(0, 1, 3, 3)]),
    "conv2d, channels": (Conv2d, [empty(1, 0, 1, 2), empty(1, 0, 1, 1), ONE], [np.ones((1, 1, 1, 2), np.float32)]),
    "conv2d, maps": (Conv2d, [np.ones((1, 1, 2, 2), np.float32), empty(0, 1, 1, 1), None], [empty(1, 0, 2, 2)]),
    "conv2d, pads only": (
        lambda: Conv2d(pads=(1, 1, 1, 1)),
        [empty(1, 1, 0, 1), np.ones((1, 1, 2, 3), np.float32), ONE],
        [np.ones((1, 1, 1, 1), np.float32)],
    ),
    "gemm, M": (Gemm, [empty(0, 2), np.ones((2, 3), np.float32), empty(0, 3)], [empty(0, 3)]),
    "gemm, K": (Gemm, [empty(2, 0), empty(0, 3), ONE], [np.ones((2, 3), np.float32)]),
    "maxpool2d": (
        lambda: MaxPool2d(kernel_shape=(1, 1)), [empty(0, 2, 1, 1)], [empty(0, 2, 1, 1), np.empty((0, 2, 1, 1), int)],
    ),
    "softmax_crossentropy": (
        lambda: SoftmaxCrossEntropy(reduction="sum"),
        [empty(0, 3), np.empty(0, np.int64), None],
        [np.zeros((), np.float32), empty(0, 3)],
    ),
    "batchnorm": (BatchNorm, [empty(0, 1, 2), ONE, ONE, ONE, ONE], [empty(0, 1, 2), ONE, ONE]),
    "batchnorm, training": (
        lambda: BatchNorm(training_mode=1, momentum=0.5),
        [empty(0, 1), ONE, ONE, ONE, ONE],
        [empty(0, 1), NAN * ONE, NAN * ONE],
    ),
    "sparse_topk": (lambda: SparseTopK(k=0), [empty(0)], [empty(0), np.empty(0, np.int64)]),
    "sparse_topk, nothing taken": (lambda: SparseTopK(k=0), [ONE], [empty(0), np.empty(0, np.int64)]),
    "adam_step": (AdamStep, [*[empty(0, 2)] * 4, np.array(1)], [empty(0, 2)] * 3),
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(EMPTY))
def test_no_elements(harness: Harness, name: str) -> None:
    make, inputs, expected = EMPTY[name]
    op = make()
    outputs = harness.forward(op, inputs)

    for y, wanted in zip(outputs, expected, strict=True):
        assert (y.shape, y.dtype) == (wanted.shape, wanted.dtype)
        np.testing.assert_array_equal(y, wanted)
    if not op.differentiable:
        return
    grads = [np.ones_like(y) if is_float(y) else None for y in outputs]
    for x, g in zip(inputs, harness.gradients(op, inputs, grads), strict=True):
        if g is None:
            assert x is None or not is_float(x)
        else:
            assert g.shape == x.shape


@pytest.mark.parametrize("name", ONE_EACH)
def test_sizes_that_a_framework_does_not_know_yet(name: str) -> None:
    """In a graph, shapes are known when it runs; the code itself then refuses what does not fit."""
    if not FRAMEWORKS.get("tensorflow").REQUIREMENT.is_installed():
        pytest.skip("tensorflow is not installed")
    import tensorflow as tf

    case = make_case(name)
    inputs = case.cast(np.float32)
    present = [x for x in inputs if x is not None]
    function = FRAMEWORKS.get("tensorflow").custom_op(case.op)

    @tf.function(input_signature=[tf.TensorSpec([None] * x.ndim, x.dtype) for x in present])
    def run(*tensors: Any) -> Any:
        rest = iter(tensors)
        return function(*[None if x is None else next(rest) for x in inputs])

    outputs = run(*present)
    outputs = outputs if isinstance(outputs, (tuple, list)) else [outputs]
    for y, expected in zip(outputs, case.op.run_forward(inputs), strict=True):
        np.testing.assert_array_equal(y.numpy(), expected)
    refusals = {
        "conv2d": "x has 3 channels, and the weight 1 for each of 1 groups",
        "gemm": r"A has 7 columns and B 1 rows \(both as they are multiplied\), accepted are equal numbers",
        "adam_step": "the parameter and its gradient must have one shape",
    }
    if name in refusals:
        present[1] = present[1][:, :1] if name == "conv2d" else present[1][:1]
        with pytest.raises(tf.errors.OpError, match=refusals[name]):
            run(*present)


def test_symbolic_sizes_under_torch_compile() -> None:
    if not FRAMEWORKS.get("pytorch").REQUIREMENT.is_installed():
        pytest.skip("pytorch is not installed")
    import torch

    function = FRAMEWORKS.get("pytorch").custom_op(Conv2d(strides=(2, 1), pads=(1, 1, 0, 0)))
    compiled = torch.compile(lambda x, w: function(x, w, None) * 2, backend="aot_eager", fullgraph=True, dynamic=True)
    for images, size in ((1, 5), (3, 8), (2, 6)):
        x, weight = torch.randn(images, 2, size, size + 1), torch.randn(3, 2, 2, 2, requires_grad=True)
        y = compiled(x, weight)
        y.sum().backward()
        torch.testing.assert_close(y, 2 * function(x, weight, None))


@pytest.mark.parametrize("name", native_ops.__all__)
def test_examples_of_the_documentation(name: str) -> None:
    module = importlib.import_module(getattr(native_ops, name).__module__)
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    failed, tried = doctest.testmod(module, optionflags=flags)

    assert tried > 0
    assert failed == 0


def test_a_planted_fault_is_found() -> None:
    case = make_case("conv2d")
    inputs, grads = case.cast(np.float32), case.gradients(np.float32)
    outputs = case.op.run_forward(inputs)
    gradients = list(case.op.run_backward(grads, inputs, outputs))
    case.check(inputs, grads, outputs, gradients)

    with pytest.raises(AssertionError, match="differ"):
        case.check(inputs, grads, [outputs[0] * np.float32(1.0001)], gradients)
    gradients[1] = gradients[1] * np.float32(1.0001)
    with pytest.raises(AssertionError, match="differ"):
        case.check(inputs, grads, outputs, gradients)


def cases_by_operator() -> dict[str, list[Case]]:
    found: dict[str, list[Case]] = {}
    for name in CASES:
        case = make_case(name)
        found.setdefault(type(case.op).__name__, []).append(case)
    return found


def test_every_operator_has_a_case() -> None:
    assert sorted(cases_by_operator()) == sorted(native_ops.__all__)
