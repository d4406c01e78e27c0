from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from deep500.core.errors import OperatorError
from deep500.operators.library.relu import Relu
from deep500.operators.operator import Operator
from deep500.operators.validation.variants import backward_error, coarsest, converted, default_length, widest
from tests.unit.operators.sources import mixed


class Takes(Operator):
    """Takes only inputs of these dtypes."""

    def __init__(self, *accepted: tuple[str, ...]) -> None:
        self.accepted = accepted

    def forward(self, inputs: Any) -> Any:
        if tuple(x.dtype.name for x in inputs) not in self.accepted:
            raise OperatorError("not these")
        return (inputs[0],)

    def backward(self, grads: Any, fwd_inputs: Any, fwd_outputs: Any) -> Any:
        return (grads[0], *[None] * (len(fwd_inputs) - 1))


HALF = np.ones(2, ml_dtypes.bfloat16)
SINGLE = np.ones(2, np.float32)


@pytest.mark.parametrize(
    ("accepted", "inputs", "dtype", "is_wider"),
    [
        ([("bfloat16",), ("float32",), ("float64",)], [HALF], "float64", True),
        ([("bfloat16",), ("float32",)], [HALF], "float32", True),
        ([("bfloat16",)], [HALF], "bfloat16", False),
        ([("float32",)], [SINGLE], "float32", False),
        ([("float64",)], [np.ones(2)], "float64", False),
        ([("bfloat16", "float32"), ("float64", "float32")], [HALF, SINGLE], "float64/float32", True),
        ([("bfloat16", "float32"), ("float32", "float32")], [HALF, SINGLE], "float32", True),
        ([("float32", "int64"), ("float64", "int64")], [SINGLE, np.ones(2, np.int64)], "float64", True),
    ],
)
def test_the_widest_that_is_taken(accepted: Any, inputs: Any, dtype: str, is_wider: bool) -> None:
    variant = widest(Takes(*accepted), inputs)

    assert (variant.dtype, variant.is_wider) == (dtype, is_wider)
    assert variant.outputs[0].dtype.name == dtype.split("/")[0]


def test_the_refusal_is_kept_and_one_of_everything_is_an_error() -> None:
    assert "float64 is refused: not these" in widest(Takes(("float32",)), [SINGLE]).refusal
    assert widest(Relu(), [SINGLE]).refusal == ""
    with pytest.raises(OperatorError, match="not these"):
        widest(Takes(), [SINGLE])


def test_native_operators_and_absent_inputs() -> None:
    variant = widest(mixed(), [HALF, np.array([1]), None])

    assert (variant.dtype, variant.is_wider) == ("float64", True)
    assert [None if x is None else x.dtype.name for x in variant.inputs] == ["float64", "int64", None]


def test_conversion_of_floats() -> None:
    found = converted([HALF, None, np.ones(1, np.int32)], "float64")

    assert [None if x is None else x.dtype.name for x in found] == ["float64", None, "int32"]


def test_the_coarsest_and_the_longest() -> None:
    assert coarsest([np.ones(1), HALF, SINGLE]) == "bfloat16"
    assert coarsest([np.ones(1, np.float16), SINGLE]) == "float16"
    assert coarsest([None, np.ones(1, np.int8)]) == "float64"
    assert default_length([np.ones((10, 10)), None]) == 100
    assert default_length([np.ones(3)]) == 16


def test_errors_of_backwards() -> None:
    assert backward_error("float64", 16) == pytest.approx(16 * 2.0**-53)
    assert backward_error("bfloat16", 16) == pytest.approx(5 * 2.0**-8, rel=1e-3)
