"""Every adapter's version of every kind of custom operator passes the validation, and a planted bug does not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from deep500.core.errors import OperatorError
from deep500.frameworks import FRAMEWORKS, frameworks_offering
from deep500.operators.custom.custom_op import CustomOp
from deep500.operators.validation import test_op_equivalence, test_op_forward, test_op_gradient
from tests.unit.operators.sources import cube_sum, failing, mixed
from tests.unit.operators.validation.operators import Cube, WritesNan

X = np.random.default_rng(0).standard_normal((3, 4))
LABELS = np.array([1, 2, 3])

#: What makes an operator, its inputs, and templates for them.
CASES: dict[str, tuple[Callable[[], CustomOp], list[Any]]] = {
    "python": (Cube, [X]),
    "C++, two outputs": (cube_sum, [X]),
    "C++, mixed dtypes": (mixed, [X, LABELS, X[::-1]]),
    "C++, absent input": (mixed, [X, LABELS, None]),
}


@pytest.fixture(params=frameworks_offering("as_operator"))
def adapter(request: pytest.FixtureRequest) -> Any:
    found = FRAMEWORKS.get(request.param)
    if not found.REQUIREMENT.is_installed():
        pytest.skip(f"{request.param} is not installed")
    return found


@pytest.mark.parametrize("case", CASES)
def test_right_operators_pass(adapter: Any, case: str) -> None:
    make, inputs = CASES[case]
    op = make()
    there = adapter.as_operator(op)

    assert (there.name, there.input_count, there.output_count) == (op.name, op.input_count, op.output_count)
    assert test_op_forward(there, inputs, op).passed
    report = test_op_gradient(there, inputs)
    assert report.passed
    assert report.dtype == "float64"


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_narrow_floats(adapter: Any, dtype: str) -> None:
    there = adapter.as_operator(mixed())
    x = X.astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)

    assert test_op_forward(there, [x, LABELS, None]).passed
    assert test_op_gradient(there, [x, LABELS, x]).passed


def test_operators_are_equivalent_to_themselves(adapter: Any) -> None:
    for op, shapes in ((cube_sum(), [("n", "c")]), (Cube(), [("n", 3, "c")])):
        report = test_op_equivalence(op, adapter.as_operator(op), shapes=shapes, examples=16)

        assert sum(report.compared.values()) == report.differentiated == 16


def test_planted_bugs_are_found(adapter: Any) -> None:
    with pytest.raises(OperatorError, match=r"The gradient of Cube by input 0 is wrong: .*It is 1\.01 times"):
        test_op_gradient(adapter.as_operator(Cube(1.01)), [X])
    with pytest.raises(OperatorError, match=r"WritesNan\.forward returned nan as output 0 at \[0, 1\]"):
        test_op_gradient(adapter.as_operator(WritesNan("forward")), [X])
    with pytest.raises(OperatorError, match=r"WritesNan\.backward returned nan"):
        test_op_gradient(adapter.as_operator(WritesNan("backward")), [X])
    with pytest.raises(OperatorError, match=r"The gradient by input 0 of Cube .* is not that of Cube"):
        test_op_equivalence(Cube(), adapter.as_operator(Cube(1.01)))


def test_operators_that_fail(adapter: Any) -> None:
    with pytest.raises(OperatorError, match="the pump is broken"):
        test_op_forward(adapter.as_operator(failing("runtime_error")), [X.astype("float32")])
    with pytest.raises(OperatorError, match="cannot be differentiated"):
        test_op_gradient(adapter.as_operator(failing("")), [X.astype("float32")])
