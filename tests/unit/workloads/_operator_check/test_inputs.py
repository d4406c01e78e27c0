from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from deep500.core.errors import OperatorError
from deep500.core.tensor_descriptor import TensorDescriptor, tensordesc
from deep500.operators.custom import CustomPythonOp, NativeOp
from deep500.workloads._operator_check.inputs import dtypes_of, example_inputs, has_sizes, read_descriptor
from tests.unit.operators.sources import cube_sum, mixed


class Sum(CustomPythonOp):
    def forward(self, x: Any, y: Any) -> Any:
        return x + y


class Logarithm(CustomPythonOp):
    def forward(self, x: Any) -> Any:
        return np.log(x)


class Shown(CustomPythonOp):
    """Gives its own inputs."""

    def __init__(self, how: str = "") -> None:
        super().__init__()
        self.how = how

    def forward(self, inputs: Any) -> Any:
        return inputs[0]

    def example_inputs(self, rng: Any, dtype: str, large: bool = False) -> Any:
        wrong: dict[str, Any] = {"nothing": [], "text": "x", "objects": [object()], "array": np.ones(3)}
        if self.how == "fails":
            raise ZeroDivisionError("by zero")
        if self.how in wrong:
            return wrong[self.how]
        return [rng.standard_normal(1000 if large else 5).astype(dtype), None]


class ShownSmall(Shown):
    def example_inputs(self, rng: Any, dtype: str) -> Any:  # type: ignore[override]
        return [np.ones(3, dtype)]


def shapes(inputs: Any) -> list[Any]:
    return [None if x is None else (x.shape, x.dtype.name) for x in inputs]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2x3x4", tensordesc("float32", 2, 3, 4)),
        ("5:int64", tensordesc("int64", 5)),
        (" 7 ", tensordesc("float32", 7)),
        ("0x3", tensordesc("float32", 0, 3)),
        ("scalar", tensordesc("float32", ())),
        ("SCALAR:bfloat16", tensordesc("bfloat16", ())),
    ],
)
def test_descriptors(text: str, expected: TensorDescriptor) -> None:
    assert read_descriptor(text) == expected


@pytest.mark.parametrize("text", ["", "2x", "x", "-1", "2x3:", "2x3:floaty", "2,3", "2:3:4"])
def test_descriptors_that_are_none(text: str) -> None:
    with pytest.raises(OperatorError, match="describes no input"):
        read_descriptor(text)


def test_dtypes() -> None:
    described = CustomPythonOp([tensordesc("int64", 3), tensordesc("float16", 3)])

    assert dtypes_of(Sum()) == ["float32", "float64"]
    assert dtypes_of(mixed()) == ["float32", "float64", "bfloat16", "float16"]
    assert dtypes_of(described) == ["float16"]
    assert dtypes_of(Sum(), [tensordesc("float64", 3)]) == ["float64"]
    assert dtypes_of(Sum(), [tensordesc("int32", 3)]) == ["int32"]


@pytest.mark.parametrize(("size", "shape"), [("small", (2, 3, 4)), ("other", (3, 4, 5)), ("large", (64, 96, 128))])
def test_made_up_inputs(size: Any, shape: Any) -> None:
    first, again = (example_inputs(Sum(), "float32", size) for _ in range(2))

    assert shapes(first) == [(shape, "float32")] * 2
    assert first is not None
    assert again is not None
    for x, same in zip(first, again):
        np.testing.assert_array_equal(x, same)
    assert np.abs(first[0] - first[1]).max() > 0
    other = example_inputs(Sum(), "float32", size, seed=1)
    assert other is not None
    assert np.abs(first[0] - other[0]).max() > 0


def test_inputs_of_a_native_operator_have_the_dtypes_of_its_variant() -> None:
    assert shapes(example_inputs(mixed(), "bfloat16")) == [
        ((2, 3, 4), "bfloat16"),
        ((2, 3, 4), "int64"),
        ((2, 3, 4), "bfloat16"),
    ]


def test_descriptors_of_the_operator() -> None:
    library = cube_sum().library
    op = NativeOp(
        library,
        input_tensors=[tensordesc("float64", "rows", "columns")],
        output_tensors=[tensordesc("float64", "rows", "columns"), tensordesc("float64", "rows")],
    )
    fixed = CustomPythonOp([tensordesc("float32", 4, 5), tensordesc("int64", None)])

    assert shapes(example_inputs(op, "float64")) == [((2, 3), "float64")]
    assert shapes(example_inputs(op, "float64", "other")) == [((3, 4), "float64")]
    assert shapes(example_inputs(op, "float64", "large")) == [((512, 768), "float64")]
    assert shapes(example_inputs(fixed, "float32")) == [((4, 5), "float32"), ((2, 3, 4), "int64")]


def test_what_the_user_says_goes_first() -> None:
    given = [tensordesc("float64", 2, 2), tensordesc("int64", 3)]

    assert shapes(example_inputs(Shown("fails"), "float64", given=given)) == [((2, 2), "float64"), ((3,), "int64")]
    assert example_inputs(Shown(), "float64", "large", given=given) is None
    with pytest.raises(OperatorError, match=r"mixed has 3 inputs; 2 were described. Give --input once for each"):
        example_inputs(mixed(), "float64", given=given)


def test_values_are_such_that_outputs_are_finite() -> None:
    found = example_inputs(Logarithm(), "float64")

    assert found is not None
    assert found[0] is not None
    assert found[0].min() >= 0.5


def test_the_authors_inputs() -> None:
    assert shapes(example_inputs(Shown(), "float64")) == [((5,), "float64"), None]
    assert shapes(example_inputs(Shown(), "float32", "large")) == [((1000,), "float32"), None]
    assert shapes(example_inputs(Shown(), "float32", "other")) == [((1000,), "float32"), None]
    assert shapes(example_inputs(ShownSmall(), "float32")) == [((3,), "float32")]
    assert example_inputs(ShownSmall(), "float32", "large") is None
    assert example_inputs(ShownSmall(), "float32", "other") is None


def test_the_authors_inputs_become_those_of_the_variant(monkeypatch: pytest.MonkeyPatch) -> None:
    op = mixed()
    given = [np.ones(3), [1, 2, 3], None]
    monkeypatch.setattr(NativeOp, "example_inputs", lambda self, rng, dtype: given)

    assert shapes(example_inputs(op, "bfloat16")) == [((3,), "bfloat16"), ((3,), "int64"), None]
    found = example_inputs(op, "bfloat16")
    assert found is not None
    assert found[0] is not None
    assert found[0].dtype == ml_dtypes.bfloat16
    given.pop()
    with pytest.raises(OperatorError, match="returned 2 arrays; the operator has 3"):
        example_inputs(op, "float32")


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("fails", r"Shown.example_inputs failed for float32: ZeroDivisionError: by zero \(test_inputs.py:\d+\)"),
        ("nothing", r"Shown.example_inputs returned \[\]; accepted is a list with one array an input"),
        ("text", "Shown.example_inputs returned 'x'"),
        ("objects", "as input 0"),
        ("array", "accepted is a list"),
    ],
)
def test_authors_inputs_that_are_wrong(how: str, message: str) -> None:
    with pytest.raises(OperatorError, match=message):
        example_inputs(Shown(how), "float32")


def test_other_sizes() -> None:
    fixed = CustomPythonOp([tensordesc("float32", 4, 5)])

    assert has_sizes(Sum(), "float32")
    assert has_sizes(Shown(), "float32")
    assert not has_sizes(ShownSmall(), "float32")
    assert not has_sizes(fixed, "float32")
    assert not has_sizes(Shown(), "float32", [tensordesc("float32", 3)])
