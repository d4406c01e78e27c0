"""Right gradients pass, and each planted bug is found and said in words that name it."""

from __future__ import annotations

import copy
import dataclasses
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from deep500.core.errors import InvalidInputError, MeasurementError, OperatorError
from deep500.measure.metrics.max_error import MaxError
from deep500.measure.tolerance import Tolerance
from deep500.operators.custom.compiling import compile_custom_cppop_inline
from deep500.operators.library.add import Add
from deep500.operators.library.batch_normalization import BatchNormalization
from deep500.operators.library.cast import Cast
from deep500.operators.library.conv import Conv
from deep500.operators.library.max_pool import MaxPool
from deep500.operators.library.mul import Mul
from deep500.operators.library.relu import Relu
from deep500.operators.library.softmax import Softmax
from deep500.operators.operator import Operator
from deep500.operators.validation.gradient import test_op_gradient
from tests.unit.operators.sources import cube_sum, mixed
from tests.unit.operators.validation import operators

STREAM = np.random.default_rng(0)
X = STREAM.standard_normal((3, 4))
SQUARE = [STREAM.standard_normal((4, 4)), STREAM.standard_normal((4, 4))]
IMAGE = [STREAM.standard_normal((2, 2, 6, 5)), STREAM.standard_normal((3, 2, 2, 2)), STREAM.standard_normal(3)]
SIGNAL = [STREAM.standard_normal((3, 2, 4)), *(STREAM.uniform(0.5, 2.0, 2) for _ in range(4))]

#: A cube in C++ that knows neither double nor any wider dtype; the factor of its gradient is a macro.
CUBE = """
#include <deep500/operator.h>

struct Cube {
    static constexpr auto dtypes = deep500::dtypes<DTYPE>();

    template <typename T>
    static void forward(deep500::View<const T> x, deep500::View<T> y) {
        for (int64_t i = 0; i < x.size(); ++i) y[i] = x[i] * x[i] * x[i];
    }
    template <typename T>
    static void backward(deep500::View<const T> y_gradient, deep500::View<const T> x, deep500::View<const T> y,
                         deep500::View<T> x_gradient) {
        for (int64_t i = 0; i < x.size(); ++i) x_gradient[i] = FACTOR * 3 * x[i] * x[i] * y_gradient[i];
    }
};
D500_OPERATOR(narrow_cube, Cube)
"""


def narrow_cube(dtype: str, factor: float = 1.0) -> Operator:
    return compile_custom_cppop_inline(
        "narrow_cube", CUBE, additional_definitions={"DTYPE": dtype, "FACTOR": f"{factor}f"}
    )


# --- planted bugs -----------------------------------------------------------------------------------------------------


class ConvForgetsDilation(Conv):
    def backward(self, grads, fwd_inputs, fwd_outputs):
        crippled = copy.copy(self)
        crippled.windows = copy.copy(self.windows)
        plan = self.windows.plan
        crippled.windows.plan = lambda size, kernel: dataclasses.replace(plan(size, kernel), dilations=(1,) * len(size))
        return Conv.backward(crippled, grads, fwd_inputs, fwd_outputs)


class ConvSwapsPads(Conv):
    def backward(self, grads, fwd_inputs, fwd_outputs):
        pads = self.windows.pads
        crippled = Conv(pads=[*pads[len(pads) // 2 :], *pads[: len(pads) // 2]])
        return crippled.backward(grads, fwd_inputs, fwd_outputs)


class BatchNormalizationForgetsMean(BatchNormalization):
    """The mean depends on X too: its term, minus the mean of the gradient, is taken back here."""

    def backward(self, grads, fwd_inputs, fwd_outputs):
        by_x, *rest = super().backward(grads, fwd_inputs, fwd_outputs)
        if grads[0] is None:
            return (by_x, *rest)
        x, scale = fwd_inputs[:2]
        deviation = np.sqrt(x.var(axis=(0, 2)) + self.epsilon)
        term = grads[0].mean(axis=(0, 2)) * scale / deviation
        return (by_x + term[:, None], *rest)


class BatchNormalizationUnbiased(BatchNormalization):
    """The running variance with n - 1, as PyTorch has it; only its gradient is off."""

    def backward(self, grads, fwd_inputs, fwd_outputs):
        n = fwd_inputs[0].size / fwd_inputs[0].shape[1]
        scaled = [grads[0], grads[1], None if grads[2] is None else grads[2] * n / (n - 1)]
        return super().backward(scaled, fwd_inputs, fwd_outputs)


class MaxPoolSpreads(MaxPool):
    def backward(self, grads, fwd_inputs, fwd_outputs):
        return (np.full_like(fwd_inputs[0], grads[0].sum() / fwd_inputs[0].size),)


class SoftmaxForgetsSum(Softmax):
    def backward(self, grads, fwd_inputs, fwd_outputs):
        return (grads[0] * fwd_outputs[0] * (1 - fwd_outputs[0]),)


class MulForgetsGradient(Mul):
    def backward(self, grads, fwd_inputs, fwd_outputs):
        return (super().backward(grads, fwd_inputs, fwd_outputs)[0], None)


class AddForgetsBroadcast(Add):
    def backward(self, grads, fwd_inputs, fwd_outputs):
        return (grads[0], grads[0])


class ReluReturnsTwo(Relu):
    def backward(self, grads, fwd_inputs, fwd_outputs):
        return (grads[0], None)


class GradientOfLabels(Operator):
    def forward(self, inputs):
        return (inputs[0] * inputs[1],)

    def backward(self, grads, fwd_inputs, fwd_outputs):
        return (grads[0] * fwd_inputs[1], grads[0] * fwd_inputs[0])


@pytest.mark.parametrize(
    ("right", "broken", "attributes", "inputs"),
    [
        (Conv, ConvForgetsDilation, {"dilations": [2, 1]}, IMAGE),
        (Conv, ConvSwapsPads, {"pads": [1, 0, 0, 0]}, IMAGE),
        (BatchNormalization, BatchNormalizationForgetsMean, {"training_mode": 1}, SIGNAL),
        (BatchNormalization, BatchNormalizationUnbiased, {"training_mode": 1}, SIGNAL),
        (MaxPool, MaxPoolSpreads, {"kernel_shape": [2, 2]}, IMAGE[:1]),
        (Softmax, SoftmaxForgetsSum, {}, [X]),
        (Mul, MulForgetsGradient, {}, [X, X[0]]),
        (operators.Product, operators.TransposedGradient, {}, SQUARE),
        (operators.Blur, lambda: operators.Blur(forgets=True), {}, [X]),
    ],
    ids=lambda p: getattr(p, "__name__", ""),
)
@pytest.mark.parametrize("directions", [None, 4])
def test_planted_bug_is_found(right: Any, broken: Any, attributes: Any, inputs: Any, directions: int | None) -> None:
    skip = (3, 4) if right is BatchNormalization else ()

    report = test_op_gradient(right(**attributes), inputs, skip_inputs=skip, directions=directions)

    assert report.passed
    assert all(0 < row.resolution < 1e-5 for row in report.inputs)
    with pytest.raises(OperatorError, match=r"The gradient of \w+ by input \d is wrong: \d+ of \d+ derivative"):
        test_op_gradient(broken(**attributes), inputs, skip_inputs=skip, directions=directions)


@pytest.mark.parametrize("shape", [(3, 4), (), (700,), (100, 200)])
def test_a_gradient_that_is_wrong_by_one_percent(shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(1).standard_normal(shape)

    assert test_op_gradient(operators.Cube(), [x]).passed
    report = test_op_gradient(operators.Cube(1.01), [x], raise_on_failure=False)

    assert not report.passed
    worst = report.worst
    assert worst is not None
    if report.method == "Jacobian":
        assert worst.element == worst.output_element
        assert worst.analytic == pytest.approx(1.01 * 3 * x[worst.element] ** 2)
        assert worst.numerical == pytest.approx(3 * x[worst.element] ** 2, rel=1e-6)
    assert worst.ratio == pytest.approx(1.01, rel=1e-6)
    assert worst.relative_error == pytest.approx(0.01 / 1.01, rel=1e-4)
    assert report.method == ("Jacobian" if x.size < 500 else "random directions")
    assert "of Cube by input 0 is wrong" in report.failures[0]
    assert f"by element {list(worst.element)}" in report.failures[0]
    assert "ratio 1.01" in report.failures[0]


def test_all_wrong_by_one_factor_is_said() -> None:
    with pytest.raises(OperatorError, match=r"It is 1\.01 times what it should be at all of them"):
        test_op_gradient(operators.Cube(1.01), [X])
    with pytest.raises(OperatorError, match="It is -1 times what it should be"):
        test_op_gradient(operators.Cube(-1.0), [X])
    with pytest.raises(OperatorError, match="It is 0 at all of them"):
        test_op_gradient(operators.Cube(0.0), [X])


def test_small_values_hide_nothing() -> None:
    for scale in (1e-9, 1e9):
        assert test_op_gradient(operators.Cube(), [scale * X]).passed
        assert not test_op_gradient(operators.Cube(1.0001), [scale * X], raise_on_failure=False).passed


def test_a_single_wrong_element_of_many_is_found() -> None:
    class OneOff(operators.Cube):
        def backward(self, grads: Any, fwd_inputs: Any, fwd_outputs: Any) -> Any:
            gradient = super().backward(grads, fwd_inputs, fwd_outputs)
            gradient[37, 5] *= 1.1
            return gradient

    x = np.random.default_rng(2).standard_normal((50, 60)) + 2
    report = test_op_gradient(OneOff(), [x], raise_on_failure=False)

    assert report.method == "random directions"
    assert report.worst is not None
    assert report.worst.element == (37, 5)
    assert report.worst.ratio == pytest.approx(1.1, rel=1e-5)


@pytest.mark.parametrize("where", ["forward", "backward"])
@pytest.mark.parametrize("directions", [None, 2])
def test_nan_is_reported_with_its_place(where: str, directions: int | None) -> None:
    with pytest.raises(OperatorError, match=rf"WritesNan\.{where} returned nan as .*at \[0, 1\], although") as caught:
        test_op_gradient(operators.WritesNan(where), [X], directions=directions)
    if where == "forward":
        assert "output 0" in str(caught.value)


def test_nan_in_the_given_floats_alone_is_reported() -> None:
    class NanInHalf(operators.Cube):
        def backward(self, grads: Any, fwd_inputs: Any, fwd_outputs: Any) -> Any:
            gradient = super().backward(grads, fwd_inputs, fwd_outputs)
            if gradient.dtype == np.float16:
                gradient[2, 0] = np.inf
            return gradient

    assert test_op_gradient(NanInHalf(), [X]).passed
    with pytest.raises(OperatorError, match=r"returned inf in float16 as gradient by input 0 at \[2, 0\]; in float64"):
        test_op_gradient(NanInHalf(), [X.astype(np.float16)])


@pytest.mark.parametrize(
    ("op", "inputs", "message"),
    [
        (AddForgetsBroadcast(), [X, X[0]], r"shape \(3, 4\) by input 1; accepted is the input's: float64 and \(4,\)"),
        (ReluReturnsTwo(), [X], "2 gradients for 1 inputs"),
        (operators.NarrowGradient(), SQUARE, "a gradient of float32 .* by input 0; accepted is the input's: float64"),
        (operators.ModifiesInput(), SQUARE, r"forward modified its input 0: it was .* at \[0, 1\] and is"),
        (operators.ModifiesGradient(), SQUARE, "backward modified its gradient by output 0"),
        (GradientOfLabels(), [X, np.ones((3, 4), np.int64)], "a gradient of .* by input 1, which is of int64"),
        (operators.IgnoresGradient(), [X], "is not linear in the gradients by the outputs: by input 0 at"),
    ],
    ids=lambda p: type(p).__name__ if isinstance(p, Operator) else "",
)
def test_what_no_operator_may_do(op: Operator, inputs: Any, message: str) -> None:
    before = [x.copy() for x in inputs]

    with pytest.raises(OperatorError, match=message):
        test_op_gradient(op, inputs)
    report = test_op_gradient(op, inputs, raise_on_failure=False)

    assert not report.passed
    assert all((x == y).all() for x, y in zip(inputs, before))


def test_none_is_a_gradient_of_zeros() -> None:
    class Constant(Operator):
        def forward(self, inputs):
            return (inputs[0] + 0 * np.sum(inputs[1]),)

        def backward(self, grads, fwd_inputs, fwd_outputs):
            return (grads[0], None)

    assert test_op_gradient(Constant(), [X, X]).passed


def test_statistics_count_unless_they_are_skipped() -> None:
    assert not test_op_gradient(BatchNormalization(), SIGNAL, raise_on_failure=False).passed
    assert test_op_gradient(BatchNormalization(), SIGNAL, skip_inputs=(3, 4)).passed


# --- what repeats -----------------------------------------------------------------------------------------------------


def test_random_operators_are_refused_and_rounding_is_noted() -> None:
    with pytest.raises(OperatorError, match="forward returned other values as output 0 when it ran again"):
        test_op_gradient(operators.Noisy(0.01), [X])
    report = test_op_gradient(operators.Noisy(2e-16), [X])

    assert not report.is_deterministic
    assert "within rounding errors" in report.notes[0]
    assert test_op_gradient(operators.Cube(), [X]).is_deterministic


# --- kinks ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("directions", [None, 4])
def test_kinks_are_left_out_and_counted(directions: int | None) -> None:
    x = X.copy()
    x[0, 0], x[1, 2] = 0.0, 1e-9

    report = test_op_gradient(operators.Clipped(), [x], directions=directions)

    assert report.passed
    assert report.excluded == 2
    assert "2 at kinks" in str(report)


@pytest.mark.parametrize("offset", [0.0, 1e-3, 0.1, 1 / 3, 0.49, 0.6, 0.9])
def test_a_kink_anywhere_within_the_step_is_seen(offset: float) -> None:
    step = 1e-4
    x = np.array([[1.0, offset * step, 2.0, -1.0, 3.0]])
    x[0, 1] *= float(np.median(np.abs(x)))

    report = test_op_gradient(operators.Clipped(), [x], step=step)

    assert report.excluded == 1


def test_ties_of_max_pool() -> None:
    x = STREAM.permutation(36).astype(float).reshape(1, 1, 6, 6)
    x[0, 0, 0, 1] = x[0, 0, 0, 0] = 50.0

    report = test_op_gradient(MaxPool(kernel_shape=[2, 2], strides=[2, 2]), [x])

    assert report.passed
    assert report.excluded == 2


@pytest.mark.parametrize("directions", [None, 3])
def test_too_many_kinks_are_no_pass(directions: int | None) -> None:
    with pytest.raises(OperatorError, match=r"cannot be checked: at 12 of 12 elements .*Choose other inputs"):
        test_op_gradient(operators.Clipped(), [np.zeros((3, 4))], directions=directions)


def test_many_kinks_of_one_output_are_avoided_by_smaller_directions() -> None:
    x = np.random.default_rng(3).standard_normal(200_000)

    report = test_op_gradient(operators.ClippedSum(), [x])

    assert report.passed
    assert report.method == "random directions"


def test_strong_curvature_is_no_kink() -> None:
    assert test_op_gradient(operators.Cube(), [np.zeros((2, 2))]).excluded == 0
    assert test_op_gradient(Softmax(), [100 * X]).excluded == 0


# --- dtypes -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16])
def test_narrow_floats_are_checked_against_float64(dtype: Any) -> None:
    class NarrowWrong(operators.Cube):
        def backward(self, grads: Any, fwd_inputs: Any, fwd_outputs: Any) -> Any:
            gradient = super().backward(grads, fwd_inputs, fwd_outputs)
            return gradient if gradient.dtype == np.float64 else gradient * gradient.dtype.type(1.25)

    x = X.astype(dtype)
    report = test_op_gradient(operators.Cube(), [x])

    assert (report.passed, report.dtype) == (True, "float64")
    name = np.dtype(dtype).name
    with pytest.raises(OperatorError, match=f"by input 0 is right in float64 and wrong in {name}: .* of 12 elements"):
        test_op_gradient(NarrowWrong(), [x])


def test_float32_alone() -> None:
    x = X.astype(np.float32)
    report = test_op_gradient(narrow_cube("float"), [x])

    assert (report.passed, report.dtype, report.excluded) == (True, "float32", 0)
    assert report.inputs[0].resolution < 0.005
    assert "float64 is refused" in report.notes[0]
    with pytest.raises(OperatorError, match=r"ratio 1.0"):
        test_op_gradient(narrow_cube("float", 1.01), [x])


def test_a_large_operator_in_float32_alone() -> None:
    x = np.random.default_rng(4).standard_normal((60, 50)).astype(np.float32)

    assert test_op_gradient(narrow_cube("float"), [x], reduction_length=3).passed
    report = test_op_gradient(narrow_cube("float", 1.01), [x], reduction_length=3, raise_on_failure=False)

    assert (report.passed, report.method) == (False, "random directions")
    assert report.worst is not None


@pytest.mark.parametrize("dtype", ["deep500::bfloat16", "deep500::float16"])
def test_sixteen_bits_alone(dtype: str) -> None:
    x = X.astype(ml_dtypes.bfloat16 if "bfloat" in dtype else np.float16)
    report = test_op_gradient(narrow_cube(dtype), [x])

    assert (report.passed, report.dtype) == (True, x.dtype.name)
    assert report.inputs[0].resolution > 0.01
    assert any("errors below" in note for note in report.notes)
    with pytest.raises(OperatorError, match="is wrong"):
        test_op_gradient(narrow_cube(dtype, 2.0), [x])


def test_float32_within_float64_is_noticed() -> None:
    report = test_op_gradient(operators.NarrowInside(), [X])

    assert (report.passed, report.dtype) == (True, "float64")
    assert report.inputs[0].precision == "float32"
    assert "no more digits than float32" in report.notes[0]
    with pytest.raises(OperatorError, match="is wrong"):
        test_op_gradient(operators.NarrowInside(1.01), [X])


def test_float32_inputs_are_checked_in_float64() -> None:
    assert test_op_gradient(Mul(), [np.ones(3, np.float32), np.float32(2)]).dtype == "float64"


def test_a_larger_step_is_taken_where_values_are_small_by_chance() -> None:
    class NarrowExp(Operator):
        def __init__(self, factor: float) -> None:
            self.factor = factor

        def forward(self, inputs):
            if inputs[0].dtype != np.float32:
                raise OperatorError("only float32")
            return (np.asarray(np.exp(inputs[0])),)

        def backward(self, grads, fwd_inputs, fwd_outputs):
            return (np.asarray(np.float32(self.factor) * grads[0] * fwd_outputs[0]),)

    x = np.array(0.013, np.float32)
    report = test_op_gradient(NarrowExp(1.0), [x])

    assert report.passed
    assert report.inputs[0].resolution < 0.01
    assert report.inputs[0].step > 0.2
    assert not test_op_gradient(NarrowExp(1.01), [x], raise_on_failure=False).passed


def test_native_operators() -> None:
    assert test_op_gradient(cube_sum(), [X]).passed
    report = test_op_gradient(mixed(factors=(0.5,)), [X.astype(ml_dtypes.bfloat16), np.array([1, 2]), None])

    assert (report.passed, report.dtype) == (True, "float64")
    assert [row.index for row in report.inputs] == [0]


def test_nothing_to_differentiate() -> None:
    report = test_op_gradient(Cast(to=7), [X])  # to int64

    assert report.passed
    assert "no output holds floats" in report.notes[0]


def test_empty_inputs() -> None:
    report = test_op_gradient(operators.Cube(), [np.zeros((0, 3))])

    assert report.passed
    assert report.inputs[0].compared == 0


# --- what is given ----------------------------------------------------------------------------------------------------


def test_infinite_outputs_may_be_accepted() -> None:
    pool = MaxPool(kernel_shape=[1, 1], pads=[1, 0, 0, 0])  # a row of windows without an element

    with pytest.raises(OperatorError, match=r"returned -inf as output 0 at \[0, 0, 0, 0\], although"):
        test_op_gradient(pool, IMAGE[:1])
    assert test_op_gradient(pool, IMAGE[:1], require_finite=False).passed


def test_gradients_that_are_given_weight_the_outputs() -> None:
    report = test_op_gradient(operators.Product(), SQUARE, [np.ones((4, 4))], metrics=[MaxError()])

    assert report.passed
    assert report.metrics[0].value < 1e-8
    with pytest.raises(OperatorError, match=r"grad_inputs\[0\] of Product has the shape \(2,\)"):
        test_op_gradient(operators.Product(), SQUARE, [np.ones(2)])


def test_metrics_measure_the_error_of_the_gradients() -> None:
    report = test_op_gradient(operators.Cube(2.0), [X], [np.ones_like(X)], metrics=[MaxError()], raise_on_failure=False)

    assert report.metrics[0].value == pytest.approx(float((3 * X**2).max()), rel=1e-6)
    with pytest.raises(MeasurementError, match="needs reference outputs"):
        test_op_gradient(operators.Cube(), [X], metrics=[MaxError()], directions=2)


def test_tolerance_that_is_given() -> None:
    for tolerance in (0.02, Tolerance(0.02)):
        assert test_op_gradient(operators.Cube(1.01), [X], tolerance=tolerance).passed
        assert test_op_gradient(operators.Cube(1.01), [X], tolerance=tolerance, directions=2).passed
    with pytest.raises(OperatorError, match="is wrong"):
        test_op_gradient(operators.Cube(1.01), [X], tolerance=0.005)


@pytest.mark.parametrize("directions", [None, 2])
def test_heatmap(tmp_path: Any, directions: int | None) -> None:
    path = tmp_path / "gradient.png"
    report = test_op_gradient(
        operators.TransposedGradient(), SQUARE, heatmap=path, directions=directions, raise_on_failure=False
    )

    assert not report.passed
    assert path.read_bytes().startswith(b"\x89PNG")
    with pytest.raises(InvalidInputError, match="picture"):
        test_op_gradient(operators.Product(), SQUARE, heatmap=tmp_path / "gradient.txt")


def test_the_table() -> None:
    text = str(test_op_gradient(operators.Product(), SQUARE))

    assert text.startswith("gradient of Product by Jacobian in float64, 192 runs of forward: PASSED\n")
    assert "input 1  float64[4, 4]  256 derivatives  0 wrong  0 at kinks" in text
    failed = str(test_op_gradient(operators.TransposedGradient(), SQUARE, raise_on_failure=False))
    assert ": FAILED\n" in failed
    assert "wrong: The gradient of TransposedGradient by input 1 is wrong" in failed


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"inputs": [X * np.nan]}, r"Input 0 of Cube is nan at \[0, 0\]; differences need finite inputs"),
        ({"inputs": [X + 1j]}, "is of complex128; accepted are real floats"),
        ({"inputs": X}, "accepted is a list with one array an input"),
        ({"op": operators.Cube}, "Create it first"),
        ({"op": np.exp}, "An operator was expected"),
        ({"directions": 0}, "The number of directions"),
        ({"reduction_length": 0}, "The reduction length"),
        ({"step": 2.0}, "The step is"),
        ({"tolerance": -1.0}, "The tolerance was given as -1.0"),
        ({"grad_inputs": X}, "accepted is a list"),
    ],
)
def test_what_is_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(OperatorError, match=message):
        test_op_gradient(**{"op": operators.Cube(), "inputs": [X], **arguments})


def test_no_backward() -> None:
    class Forward(operators.Cube):
        differentiable = False

    with pytest.raises(OperatorError, match="Forward cannot be differentiated"):
        test_op_gradient(Forward(), [X])


def test_the_seed_decides() -> None:
    first, second, third = (
        test_op_gradient(operators.Cube(1.01), [X], directions=1, seed=seed, raise_on_failure=False)
        for seed in (0, 0, 1)
    )

    assert str(first) == str(second) != str(third)


def test_pytest_does_not_take_it_for_a_test() -> None:
    assert test_op_gradient.__test__ is False
