from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from deep500.core.errors import InvalidInputError, OperatorError
from deep500.measure.metrics.l2_error import L2Error
from deep500.measure.metrics.max_error import MaxError
from deep500.measure.tolerance import Tolerance
from deep500.operators.library.conv import Conv
from deep500.operators.library.exp import Exp
from deep500.operators.library.log import Log
from deep500.operators.library.mat_mul import MatMul
from deep500.operators.library.softmax import Softmax
from deep500.operators.operator import Operator
from deep500.operators.validation.forward import test_op_forward
from tests.unit.operators.sources import cube_sum, failing, mixed
from tests.unit.operators.validation import operators

STREAM = np.random.default_rng(0)
X = STREAM.standard_normal((3, 4))
SINGLE = X.astype(np.float32)


class Scaled(operators.Cube):
    """x**3 times a factor."""

    def __init__(self, factor: float) -> None:
        super().__init__()
        self.factor = factor

    def forward(self, x: Any) -> Any:
        return (x**3 * x.dtype.type(self.factor)).astype(x.dtype)


class Returns(Operator):
    """Returns what it was made with."""

    def __init__(self, *outputs: Any) -> None:
        self.outputs = outputs

    def forward(self, inputs: Any) -> Any:
        return self.outputs

    def backward(self, grads: Any, fwd_inputs: Any, fwd_outputs: Any) -> Any:
        return (None,) * len(fwd_inputs)


@pytest.mark.parametrize(
    "reference",
    [None, lambda x: x**3, operators.Cube(), [X**3], X**3, (X.astype(np.float32) ** 3,)],
    ids=["itself", "function", "operator", "list", "array", "narrow"],
)
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, ml_dtypes.bfloat16])
def test_right_outputs_pass(reference: Any, dtype: Any) -> None:
    x = X.astype(dtype)
    if isinstance(reference, (list, np.ndarray)):
        reference = [x.astype(np.float64) ** 3]
    elif isinstance(reference, tuple):
        reference = [(x.astype(np.float64) ** 3).astype(np.float32)]

    report = test_op_forward(operators.Cube(), [x], reference)

    assert report.passed
    assert report.is_deterministic
    (output,) = report.outputs
    assert (output.dtype, output.shape) == (np.dtype(dtype).name, (3, 4))
    assert output.comparison is not None
    assert output.comparison.is_close


@pytest.mark.parametrize("reference", [operators.Cube(), lambda x: x**3, [SINGLE.astype(float) ** 3]])
def test_wrong_outputs_are_named(reference: Any) -> None:
    worst = tuple(map(int, np.unravel_index(np.argmax(np.abs(X)), X.shape)))

    with pytest.raises(OperatorError, match=r"Output 0 of Scaled is wrong: \d+ of 12 elements differ from") as caught:
        test_op_forward(Scaled(1.01), [SINGLE], reference)

    assert "is allowed" in str(caught.value)
    report = test_op_forward(Scaled(1.01), [SINGLE], reference, raise_on_failure=False)
    found = report.outputs[0].comparison
    assert found is not None
    assert found.relative_error == pytest.approx(0.01, rel=0.01)
    assert found.count > 8
    assert found.index == worst


def test_rounding_in_the_wrong_dtype_is_found() -> None:
    class Halved(operators.Cube):
        def forward(self, x: Any) -> Any:
            return (x.astype(np.float16) ** 3).astype(x.dtype) if x.dtype == np.float32 else x**3

    with pytest.raises(OperatorError, match="differ from itself in float64 by more than allowed"):
        test_op_forward(Halved(), [SINGLE])


def test_the_length_of_reductions_sharpens_the_check() -> None:
    a, b = STREAM.standard_normal((30, 40)).astype(np.float32), STREAM.standard_normal((40, 30)).astype(np.float32)
    slightly_wrong = Returns((a.astype(float) @ b.astype(float) * (1 + 2e-6)).astype(np.float32))

    assert test_op_forward(MatMul(), [a, b], np.matmul, reduction_length=40).passed
    assert test_op_forward(slightly_wrong, [a, b], np.matmul).passed
    assert not test_op_forward(slightly_wrong, [a, b], np.matmul, reduction_length=5, raise_on_failure=False).passed


def test_tolerance_that_is_given() -> None:
    for tolerance in (0.02, Tolerance(0.02)):
        assert test_op_forward(Scaled(1.01), [SINGLE], operators.Cube(), tolerance=tolerance).passed
    with pytest.raises(OperatorError, match="is wrong"):
        test_op_forward(Scaled(1.01), [SINGLE], operators.Cube(), tolerance=0.001)
    with pytest.raises(OperatorError, match="The tolerance was given as 'none'"):
        test_op_forward(Scaled(1.01), [SINGLE], tolerance="none")  # type: ignore[arg-type]


@pytest.mark.parametrize("reference", [None, operators.Cube(), lambda x: x**3, [X**3]])
def test_nan_is_reported_with_its_place(reference: Any) -> None:
    why = "although all inputs are finite" if reference is None else r"where .* has -?\d"

    with pytest.raises(OperatorError, match=rf"Output 0 of WritesNan is nan at \[0, 1\], {why}"):
        test_op_forward(operators.WritesNan("forward"), [X], reference)


def test_nan_that_belongs_there_is_right() -> None:
    x = np.array([1.0, np.nan, -np.inf, np.inf], np.float32)

    assert test_op_forward(Exp(), [x]).passed
    assert test_op_forward(Exp(), [x], np.exp).passed
    assert test_op_forward(Log(), [np.array([0.0, -1.0, 1.0])], [np.array([-np.inf, np.nan, 0.0])]).passed
    with pytest.raises(OperatorError, match="is wrong"):
        test_op_forward(Returns(np.zeros(4, np.float32)), [x], np.exp)


@pytest.mark.parametrize(
    ("op", "reference", "message"),
    [
        (Returns(np.ones((4, 3))), X, r"has the shape \(4, 3\); that of the reference has \(3, 4\)"),
        (Returns(np.ones((3, 4), np.int64)), X, "is of int64; that of the reference is of float64"),
        (Returns(X**3, X), operators.Cube(), "returned 2 outputs; Cube in float64 has 1"),
        (Returns(X**3), operators.Cube(), "Output 0 of Returns is of float64; that of Cube is of float32"),
        (operators.ModifiesInput(), None, "forward modified its input 0"),
        (operators.Noisy(0.1), None, "forward returned other values as output 0 when it ran again"),
        (failing("runtime_error"), None, "the pump is broken"),
        (Returns(3), None, "forward returned a tuple|forward returned .*; accepted is a tuple of arrays"),
    ],
    ids=lambda p: type(p).__name__ if isinstance(p, Operator) else "",
)
def test_what_is_wrong_is_said(op: Operator, reference: Any, message: str) -> None:
    inputs = [np.ones((4, 4), np.float32)] * 2 if isinstance(op, operators.ModifiesInput) else [SINGLE.copy()]

    with pytest.raises(OperatorError, match=message):
        test_op_forward(op, inputs, reference)
    report = test_op_forward(op, inputs, reference, raise_on_failure=False)
    assert not report.passed
    assert "FAILED" in str(report)


def test_an_operator_off_by_one_at_the_border() -> None:
    right, wrong = Conv(pads=[1, 1, 1, 1]), Conv(pads=[0, 1, 2, 1])
    x, w = STREAM.standard_normal((1, 2, 6, 5)), STREAM.standard_normal((3, 2, 3, 3))

    assert test_op_forward(right, [x, w], right).passed
    with pytest.raises(OperatorError, match="Output 0 of Conv is wrong"):
        test_op_forward(wrong, [x, w], right)


def test_native_operators_with_several_outputs() -> None:
    report = test_op_forward(cube_sum(), [SINGLE], lambda x: (x**3, x.sum(1)))

    assert [output.index for output in report.outputs] == [0, 1]
    labels = np.array([1, 2, 3])
    assert test_op_forward(mixed(), [SINGLE, labels, None], [2 * SINGLE, np.array([5])]).passed
    with pytest.raises(OperatorError, match=r"Output 1 of mixed is wrong: 1 of 1 element differs .* by 1 where 0"):
        test_op_forward(mixed(), [SINGLE, labels, None], [2 * SINGLE, np.array([6])])


def test_without_a_wider_variant_little_is_checked_and_said() -> None:
    report = test_op_forward(operators.Cube(), [X])

    assert report.passed
    assert report.notes[0].startswith("There is no reference: it was compared with itself; only")


def test_metrics_are_in_the_report() -> None:
    report = test_op_forward(Scaled(1.5), [SINGLE], [SINGLE**3], [L2Error(), MaxError, "wallclock_time"], tolerance=1.0)

    values = {value.name: value.value for value in report.metrics}
    assert values["L2Error"] == pytest.approx(float(np.linalg.norm(SINGLE**3 * 0.5)), rel=1e-5)
    assert values["MaxError"] == pytest.approx(float(np.abs(SINGLE**3 * 0.5).max()), rel=1e-5)
    assert values["WallclockTime"] > 0
    assert "L2Error" in str(report)


def test_call_style_of_the_published_package() -> None:
    report = test_op_forward(operators.Cube(), [X], reference_outputs=[X**3], metrics=[L2Error()])

    assert report.metrics[0].value == 0.0
    with pytest.raises(OperatorError, match="accepted is one of both"):
        test_op_forward(operators.Cube(), [X], [X**3], reference_outputs=[X**3])


def test_heatmap(tmp_path: Any) -> None:
    path = tmp_path / "forward.png"
    test_op_forward(Softmax(), [SINGLE], heatmap=path)

    assert path.read_bytes().startswith(b"\x89PNG")
    with pytest.raises(InvalidInputError, match="picture"):
        test_op_forward(Softmax(), [SINGLE], heatmap=tmp_path / "forward.txt")


def test_empty_and_scalar_inputs() -> None:
    for x in (np.zeros((0, 3), np.float32), np.float32(2.0)):
        assert test_op_forward(operators.Cube(), [x], lambda v: v**3).passed


def test_the_table() -> None:
    text = str(test_op_forward(operators.Cube(), [SINGLE], operators.Cube()))

    assert text.startswith("forward of Cube, against Cube in float64: PASSED\n  output 0  float32[3, 4]  worst at [")


def test_references_that_are_none() -> None:
    with pytest.raises(OperatorError, match=r"is no arrays|accepted are numbers"):
        test_op_forward(operators.Cube(), [X], [["a", "b"]])
    with pytest.raises(OperatorError, match="accepted is a list with one array an input"):
        test_op_forward(operators.Cube(), X)


def test_pytest_does_not_take_it_for_a_test() -> None:
    assert test_op_forward.__test__ is False
