from __future__ import annotations

import copy
import pickle
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from deep500.core.errors import OperatorError
from deep500.core.tensor_descriptor import tensordesc
from deep500.operators.custom.compiling import compile_custom_cppop_inline
from deep500.operators.custom.native_op import NativeOp
from deep500.operators.validation import test_op_gradient
from tests.unit.operators.sources import CUBE_SUM, IPOWOP, cube_sum, mixed

X = np.array([[1.0, -2.0, 3.0]])
LABELS = np.array([4, 5])


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, ml_dtypes.bfloat16])
def test_dtypes_attributes_and_optional_inputs(dtype: Any) -> None:
    x = X.astype(dtype)
    op = mixed(mode="negative", factors=[0.5, 4.0], offsets=(10, 20))

    y, n = op(x, LABELS, None)
    assert y.dtype == dtype
    assert y.tolist() == [[-4.0, 8.0, -12.0]]
    assert n.tolist() == [9 - 1 + 30]
    y, n = op(x, LABELS, x)
    assert y.tolist() == [[-3.0, 6.0, -9.0]]

    by_x, by_labels, by_shift = op.run_backward([x, None], [x, LABELS, x], [y, n])
    assert by_x.dtype == dtype
    assert by_x.tolist() == [[-4.0, 8.0, -12.0]]
    assert by_labels is None
    assert by_shift.tolist() == x.tolist()
    assert op.run_backward([x, None], [x, LABELS, None], [y, n])[2] is None


def test_gradients_are_those_of_numbers() -> None:
    x = np.random.default_rng(0).standard_normal((3, 4))

    assert test_op_gradient(cube_sum(), [x]).passed
    assert test_op_gradient(mixed(), [x, LABELS, x]).passed


def test_a_gradient_that_nobody_knows_is_zero_also_where_outputs_are_not_kept() -> None:
    x = np.random.default_rng(0).standard_normal((2, 3))
    op = cube_sum()
    cubes, sums = op(x)

    assert op.gradient_needs == (True, False)
    np.testing.assert_allclose(op.run_backward([np.ones((2, 3)), None], [x], [cubes, sums])[0], 3 * x * x)
    np.testing.assert_allclose(op.run_backward([np.ones((2, 3))], [x], [cubes, sums])[0], 3 * x * x)


def test_what_the_library_says() -> None:
    op = mixed()

    assert (op.name, op.input_count, op.output_count, op.differentiable) == ("mixed", 3, 2, True)
    assert op.attributes == {"scale": 2.0, "extra": -1, "mode": 'a"b', "offsets": (), "factors": ()}
    assert op.library.description.optional_inputs == {2}
    assert isinstance(op.attributes["scale"], float)


def test_other_attributes() -> None:
    op = mixed().with_attributes(scale=7)

    assert op.attributes["scale"] == 7.0
    assert op(X, LABELS, None)[0].tolist() == [[7.0, -14.0, 21.0]]


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"sclae": 1.0}, "mixed has no attribute 'sclae'; it has extra, factors, mode, offsets, scale"),
        ({"scale": "x"}, "mixed: the attribute scale is 'x'; accepted is a number"),
        ({"extra": 1.5}, "the attribute extra is 1.5; accepted is a whole number"),
        ({"extra": 2**63}, "the attribute extra is 9223372036854775808, which does not fit into 64 bits"),
        ({"mode": 1}, "the attribute mode is 1; accepted is a text"),
        ({"offsets": 1}, "the attribute offsets is 1; accepted is a list of whole numbers"),
        ({"offsets": [1, 2.5]}, "accepted is a list of whole numbers"),
        ({"offsets": [2**64]}, "does not fit into 64 bits"),
        ({"factors": "ab"}, "accepted is a list of numbers"),
    ],
)
def test_wrong_attributes(attributes: dict[str, Any], message: str) -> None:
    with pytest.raises(OperatorError, match=message):
        mixed(**attributes)


def test_missing_attributes() -> None:
    with pytest.raises(OperatorError, match="mixed needs a value for its attribute 'factors', 'offsets'"):
        _ = NativeOp(mixed().library).attributes


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        (
            [X.astype(np.int32), LABELS, None],
            r"dtypes \(int32, int64, None\); accepted are \(float32, int64, float32\)",
        ),
        ([X, LABELS.astype(np.int32), None], r"mixed was given inputs of the dtypes \(float64, int32, None\)"),
        ([X, LABELS, X.astype(np.float32)], r"\(float64, int64, float32\)"),
        ([X.astype(object), LABELS, None], "object"),
        ([X.astype("S3"), LABELS, None], "dtypes"),
        ([X.astype(ml_dtypes.float8_e4m3fn), LABELS, None], "float8_e4m3fn"),
        ([X.astype(np.longdouble), LABELS, None], "dtypes"),
        ([X.astype("M8[s]"), LABELS, None], "datetime64"),
        ([None, LABELS, None], "mixed: input 0 is absent; it has to be given"),
        ([X, LABELS], "mixed was given 2 tensors; accepted are 3"),
    ],
)
def test_wrong_inputs(inputs: list[Any], message: str) -> None:
    with pytest.raises(OperatorError, match=message):
        mixed()(*inputs)


def test_wrong_tensors_of_a_backward() -> None:
    x, labels, op = X, LABELS, mixed()
    y, n = op(x, labels, None)

    with pytest.raises(OperatorError, match="a gradient by an output, or an output, is of float32; for these inputs"):
        op.run_backward([x.astype(np.float32), None], [x, labels, None], [y, n])
    with pytest.raises(OperatorError, match="inputs 0 and 5, a gradient and its tensor, differ in shape"):
        op.run_backward([np.ones((2, 3)), None], [x, labels, None], [y, n])


def test_infer_that_contradicts_the_code() -> None:
    op = NativeOp(cube_sum().library, infer=lambda shapes, dtypes: ([shapes[0]] * 2, ["int64"] * 2))

    with pytest.raises(
        OperatorError, match=r"infer returned the dtypes int64, int64; for these inputs the C.. code wri"
    ):
        op(X)


def test_descriptors() -> None:
    inputs = [tensordesc("float32", "rows", 3)]
    op = compile_custom_cppop_inline(
        "cube_sum", CUBE_SUM, inputs, [tensordesc("float32", "rows", 3), tensordesc("float32", "rows")]
    )
    x = np.ones((5, 3), np.float32)

    assert [y.shape for y in op(x)] == [(5, 3), (5,)]
    assert op.infer_outputs([(7, 3)], ["float32"]) == (((7, 3), (7,)), ("float32", "float32"))
    for wrong in (np.ones((5, 4), np.float32), np.ones(5, np.float32), np.ones((5, 3))):
        with pytest.raises(OperatorError, match=r"as input 0; accepted is float32\[rows, 3\]"):
            op(wrong)


@pytest.mark.parametrize(
    ("inputs", "outputs", "message"),
    [
        ([], [tensordesc("float32", 1)] * 2, "cube_sum: 0 inputs are described; the C.. code has 1"),
        (None, [tensordesc("float32", 1)], "cube_sum: 1 outputs are described; the C.. code has 2"),
        (None, [tensordesc("float32", "n")] * 2, "no input tells the size 'n'"),
        ([tensordesc("float32", "m")], [tensordesc("float32", "n")] * 2, "no input tells the size 'n'"),
        (None, [tensordesc("float32", (None,))] * 2, "no input tells the size None"),
        ([3], None, "the inputs are described by .3.; accepted are d5.tensordesc"),
    ],
)
def test_wrong_descriptors(inputs: Any, outputs: Any, message: str) -> None:
    with pytest.raises(OperatorError, match=message):
        NativeOp(cube_sum().library, input_tensors=inputs, output_tensors=outputs)


def test_symbol_that_occurs_twice() -> None:
    described = [tensordesc("float64", "n", "n")]
    op = NativeOp(
        cube_sum().library,
        input_tensors=described,
        output_tensors=[tensordesc("float64", None), tensordesc("float64", "n")],
    )

    assert [y.shape for y in op(np.ones((2, 2)))] == [(2, 2), (2,)]
    with pytest.raises(OperatorError, match="accepted is"):
        op(np.ones((2, 3)))


def test_copies_and_pickles() -> None:
    op = compile_custom_cppop_inline(
        "ipowop",
        IPOWOP,
        [tensordesc("float32", None)],
        [tensordesc("float32", None)],
        additional_definitions={"DPOWER": 3},
    )
    x = np.array([2.0], np.float32)
    assert op(x).tolist() == [8.0]

    for other in (pickle.loads(pickle.dumps(op)), copy.copy(op), copy.deepcopy(op)):
        assert other(x).tolist() == [8.0]
        assert other.library.path == op.library.path
