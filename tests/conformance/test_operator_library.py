"""Every operator of the library keeps one contract: ONNX' values, right derivatives, dtypes, no side effects."""

from __future__ import annotations

import copy
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from onnx.reference import ReferenceEvaluator

from deep500.core.errors import OperatorError
from deep500.core.registry import Registry
from deep500.operators.operator import Operator
from deep500.operators.validation import test_op_gradient
from tests.conformance.library_cases import CASES
from tests.conformance.operator_cases import Case

LIBRARY = Registry("operator", "deep500.operators.library")
NAMES = LIBRARY.names()

quick = settings(
    max_examples=20, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
)
each_operator = pytest.mark.parametrize("name", NAMES)


def draw_case(data: st.DataObject, name: str) -> Case:
    if name not in CASES:
        pytest.fail(
            f"The operator deep500/operators/library/{name}.py has no sample case. Add a strategy that draws "
            f"attributes and inputs to its family's file in tests/conformance/onnx_gradients."
        )
    return data.draw(CASES[name])


def make(name: str, case: Case) -> Operator:
    return LIBRARY.get(name)(**case.attributes)


def converted(case: Case, dtype: Any) -> list[np.ndarray | None]:
    return [x if x is None or x.dtype != np.float64 else x.astype(dtype) for x in case.inputs]


def reference(op_type: str, case: Case, inputs: list[np.ndarray | None]) -> list[np.ndarray]:
    if case.oracle is not None:
        return list(case.oracle(case.attributes, *inputs))
    names = ["" if x is None else f"x{i}" for i, x in enumerate(inputs)]
    attributes = {
        key: onnx.numpy_helper.from_array(value) if isinstance(value, np.ndarray) else value
        for key, value in case.attributes.items()
    }
    node = onnx.helper.make_node(op_type, names, [f"y{i}" for i in range(case.outputs)], **attributes)
    return ReferenceEvaluator(node).run(None, {n: x for n, x in zip(names, inputs, strict=True) if n})


def random_gradients(outputs: tuple[np.ndarray, ...], dtype: Any, skip: tuple[int, ...]) -> list[np.ndarray | None]:
    rng = np.random.default_rng(1)
    grads = [rng.uniform(-1, 1, y.shape).astype(dtype) if y.dtype == dtype else None for y in outputs]
    return [None if i in skip else g for i, g in enumerate(grads)]


def test_every_operator_has_a_sample_case() -> None:
    missing = sorted(set(NAMES) - set(CASES))

    assert not missing, f"operators without a sample case in tests/conformance/onnx_gradients: {missing}"
    assert not set(CASES) - set(NAMES)


@each_operator
def test_name_is_that_of_the_onnx_operator(name: str) -> None:
    operator = LIBRARY.get(name)

    assert operator.__name__.lower() == name.replace("_", "")
    assert onnx.defs.get_schema(operator.__name__).domain == ""
    assert f"version {onnx.defs.get_schema(operator.__name__).since_version}" in operator.__doc__


@each_operator
@quick
@given(data=st.data())
def test_forward_is_that_of_the_onnx_reference(name: str, data: st.DataObject) -> None:
    case = draw_case(data, name)
    dtype = data.draw(st.sampled_from(case.dtypes))
    inputs = converted(case, dtype)

    outputs = make(name, case).forward(inputs)

    expected = reference(LIBRARY.get(name).__name__, case, inputs)
    assert len(outputs) == len(expected)
    tolerance = 64 * np.finfo(dtype).eps
    for y, e in zip(outputs, expected, strict=True):
        assert isinstance(y, np.ndarray)
        assert (y.shape, y.dtype) == (e.shape, e.dtype)
        scale = max(1.0, float(np.abs(e[np.isfinite(e)]).max(initial=0)))
        np.testing.assert_allclose(y, e, rtol=tolerance, atol=tolerance * scale)


@each_operator
@quick
@given(data=st.data())
def test_backward_is_the_numerical_derivative(name: str, data: st.DataObject) -> None:
    case = draw_case(data, name)

    # Windows that hold nothing but padding have no largest element, and no mean.
    report = test_op_gradient(
        make(name, case),
        case.inputs,
        skip_inputs=case.skip_inputs,
        skip_outputs=case.skip_outputs,
        require_finite=False,
    )

    assert report.passed
    assert report.excluded == 0


class Scaled(Operator):
    """An operator whose gradients are all multiplied by a factor."""

    def __init__(self, operator: Operator, factor: float) -> None:
        self.operator, self.factor = operator, factor

    def forward(self, inputs: Any) -> Any:
        return self.operator.forward(inputs)

    def backward(self, grads: Any, fwd_inputs: Any, fwd_outputs: Any) -> Any:
        gradients = self.operator.backward(grads, fwd_inputs, fwd_outputs)
        return tuple(None if g is None else np.asarray(g * g.dtype.type(self.factor)) for g in gradients)


@each_operator
@quick
@given(data=st.data())
def test_a_backward_that_is_wrong_by_one_percent_is_found(name: str, data: st.DataObject) -> None:
    case = draw_case(data, name)
    operator = make(name, case)
    outputs = operator.forward(case.inputs)
    grads = random_gradients(outputs, np.float64, case.skip_outputs)
    with np.errstate(invalid="ignore"):
        sizes = [np.abs(g).max(initial=0) for g in operator.backward(grads, case.inputs, outputs) if g is not None]
    if max(sizes, default=0) < 1e-3:
        return  # nothing there that could be wrong

    with pytest.raises(OperatorError, match="is wrong"):
        test_op_gradient(
            Scaled(operator, 1.01),
            case.inputs,
            skip_inputs=case.skip_inputs,
            skip_outputs=case.skip_outputs,
            directions=data.draw(st.none() | st.just(2)),
            require_finite=False,
        )


@each_operator
@quick
@given(data=st.data())
def test_calls_leave_no_trace(name: str, data: st.DataObject) -> None:
    case = draw_case(data, name)
    operator = make(name, case)
    before_inputs, before_state = copy.deepcopy(case.inputs), copy.deepcopy(vars(operator))

    outputs = operator.forward(case.inputs)
    grads = random_gradients(outputs, np.float64, case.skip_outputs)
    before_grads, before_outputs = copy.deepcopy(grads), copy.deepcopy(outputs)
    first = operator.backward(grads, case.inputs, outputs)
    operator.forward([None if x is None else x.copy() for x in case.inputs])
    second = operator.backward(grads, case.inputs, outputs)

    for now, before in zip(
        [*case.inputs, *grads, *outputs, *second], [*before_inputs, *before_grads, *before_outputs, *first], strict=True
    ):
        np.testing.assert_array_equal(now, before)
    assert str(vars(operator)).split(" at ")[0] == str(before_state).split(" at ")[0]


@each_operator
@quick
@given(data=st.data())
def test_gradients_have_the_shape_and_dtype_of_the_inputs(name: str, data: st.DataObject) -> None:
    case = draw_case(data, name)
    dtype = data.draw(st.sampled_from([np.float16, ml_dtypes.bfloat16, np.float32, np.float64]))
    inputs = converted(case, dtype)
    operator = make(name, case)
    outputs = operator.forward(inputs)

    gradients = operator.backward(random_gradients(outputs, dtype, case.skip_outputs), inputs, outputs)
    nothing = operator.backward([None] * len(outputs), inputs, outputs)

    assert len(gradients) == len(nothing) == len(inputs)
    assert all(gradient is None for gradient in nothing)
    for gradient, x in zip(gradients, inputs, strict=True):
        if gradient is not None:
            assert isinstance(gradient, np.ndarray)
            assert (gradient.shape, gradient.dtype) == (x.shape, x.dtype)


@each_operator
@quick
@given(data=st.data())
def test_optional_outputs_need_not_be_passed_back(name: str, data: st.DataObject) -> None:
    case = draw_case(data, name)
    operator = make(name, case)
    outputs = operator.forward(case.inputs)
    grads = random_gradients(outputs, np.float64, tuple(range(1, len(outputs))))

    # A network's node names only the outputs that it uses.
    some = operator.backward(grads[:1], case.inputs, outputs[:1])

    for one, other in zip(some, operator.backward(grads, case.inputs, outputs), strict=True):
        np.testing.assert_array_equal(one, other)


@each_operator
@quick
@given(data=st.data())
def test_sixteen_and_thirty_two_bits_are_rounded_float64(name: str, data: st.DataObject) -> None:
    case = draw_case(data, name)
    dtype = data.draw(st.sampled_from([np.float16, ml_dtypes.bfloat16, np.float32]))
    narrow = converted(case, dtype)
    wide = [x if x is None or x.dtype != dtype else x.astype(np.float64) for x in narrow]
    operator = make(name, case)
    outputs, expected = operator.forward(narrow), operator.forward(wide)
    grads = random_gradients(outputs, dtype, case.skip_outputs)
    wide_grads = [None if g is None else g.astype(np.float64) for g in grads]
    if LIBRARY.get(name).__name__ == "Cast":
        wide_grads = [None] * len(expected)
        grads = wide_grads

    gradients = operator.backward(grads, narrow, outputs)
    expected_gradients = operator.backward(wide_grads, wide, expected)

    # One rounding of the result, one of an output that the backward reads; BatchNormalization amplifies those of its
    # inputs by the inverse deviation, which is at most 1 / sqrt(epsilon).
    tolerance = 16 * float(ml_dtypes.finfo(dtype).eps)
    for y, e in zip([*outputs, *gradients], [*expected, *expected_gradients], strict=True):
        if e is None or y is None:
            assert y is e
            continue
        scale = max(1.0, float(np.abs(e[np.isfinite(e)]).max(initial=0)))
        np.testing.assert_allclose(y.astype(np.float64), e, rtol=tolerance, atol=tolerance * scale)
