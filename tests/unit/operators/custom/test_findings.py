from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from deep500.core.errors import OperatorError
from deep500.operators.custom.findings import (
    Check,
    Finding,
    NotRunError,
    Outcome,
    check_agreement,
    random_gradients,
    run_check,
    told,
)


def raising(error: BaseException) -> Any:
    def run() -> str:
        raise error

    return run


@pytest.mark.parametrize(
    ("run", "outcome", "detail"),
    [
        (lambda: "all is well", Outcome.PASSED, "all is well"),
        (raising(OperatorError("it is wrong")), Outcome.FAILED, "it is wrong"),
        (raising(NotRunError("there is nothing")), Outcome.NOT_RUN, "there is nothing"),
        (raising(ZeroDivisionError("by 0\nin the middle")), Outcome.FAILED, "ZeroDivisionError: by 0 in the middle"),
        (raising(KeyError()), Outcome.FAILED, "KeyError: no message"),
    ],
)
def test_all_that_a_check_does_is_a_finding(run: Any, outcome: Outcome, detail: str) -> None:
    finding = run_check(Check("a check", run))

    assert (finding.check, finding.outcome) == ("a check", outcome)
    assert finding.detail.startswith(detail)
    assert "\n" not in finding.detail
    assert finding.to_dict() == {"check": "a check", "outcome": outcome.value, "detail": finding.detail}


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(3)])
def test_ends_of_the_process_are_none(error: BaseException) -> None:
    with pytest.raises(type(error)):
        run_check(Check("a check", raising(error)))


def test_what_numpy_warns_of_is_no_output(recwarn: pytest.WarningsRecorder) -> None:
    assert run_check(Check("a check", lambda: str(np.float64(1) / np.float64(0)))) == Finding(
        "a check", Outcome.PASSED, "inf"
    )
    assert not recwarn.list


def test_the_authors_own_line_is_told(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text("def fail():\n    import json\n    json.loads('{')\n")
    space: dict[str, Any] = {}
    exec(compile(path.read_text(), str(path), "exec"), space)

    def wrapped() -> None:
        try:
            space["fail"]()
        except ValueError as error:
            raise OperatorError("it failed") from error

    with pytest.raises(ValueError, match="Expecting") as direct:
        space["fail"]()
    with pytest.raises(OperatorError) as indirect:
        wrapped()

    assert told(direct.value).startswith("JSONDecodeError: Expecting")
    assert told(direct.value).endswith("(mine.py:3)")
    assert told(indirect.value).endswith("(mine.py:3)")
    assert told(ValueError("x")) == "ValueError: x"


def test_errors_that_go_in_circles_are_told() -> None:
    one, other = ValueError("one"), ValueError("other")
    one.__cause__, other.__cause__ = other, one

    assert told(one) == "ValueError: one"


A = np.linspace(-1, 1, 24).reshape(2, 3, 4)


@pytest.mark.parametrize(
    ("found", "expected", "said"),
    [
        ([A], [A], "equal to NumPy's"),
        ([A, None], [A, None], "equal to NumPy's"),
        ([None], [np.zeros(3)], "equal to NumPy's"),
        ([np.zeros(3)], [None], "equal to NumPy's"),
        ([A * (1 + 1e-15)], [A], "within"),
        ([np.array([1, 2])], [np.array([1, 2])], "equal to NumPy's"),
        ([np.array([np.nan, np.inf])], [np.array([np.nan, np.inf])], "equal to NumPy's"),
        ([np.zeros((0, 3))], [np.zeros((0, 3))], "equal to NumPy's"),
        ([A.astype(ml_dtypes.bfloat16)], [A.astype(ml_dtypes.bfloat16)], "equal to NumPy's"),
        ([], [], "equal to NumPy's"),
    ],
)
def test_agreement(found: Any, expected: Any, said: str) -> None:
    assert check_agreement("output", found, expected).startswith(said)


@pytest.mark.parametrize(
    ("found", "expected", "message"),
    [
        ([A], [A, A], "There are 1 outputs; NumPy has 2"),
        ([A[:1]], [A], r"output 0 is float64 of shape \(1, 3, 4\); NumPy has float64 of shape \(2, 3, 4\)"),
        ([A.astype(np.float32)], [A], "output 0 is float32 .* NumPy has float64"),
        ([A, A * 1.01], [A, A], r"output 1 differs from NumPy's: at \[0, 0, 0\] it is -1.01, should be -1"),
        ([np.array([1, 2])], [np.array([1, 3])], r"output 0 differs .*\[1\]"),
        ([np.array([np.nan, 1])], [np.array([2.0, 1])], r"output 0 differs .*nan"),
        ([None], [np.ones(2)], "output 0 differs"),
        ([(A * 1.01).astype(np.float32)], [A.astype(np.float32)], "output 0 differs"),
    ],
)
def test_disagreement(found: Any, expected: Any, message: str) -> None:
    with pytest.raises(OperatorError, match=message):
        check_agreement("output", found, expected)


def test_random_gradients() -> None:
    outputs = [np.zeros((2, 3), np.float32), np.zeros(4, np.int64), np.zeros((), ml_dtypes.bfloat16)]
    first = random_gradients(outputs, np.random.default_rng(0))
    second = random_gradients(outputs, np.random.default_rng(0))

    assert [None if g is None else (g.shape, g.dtype) for g in first] == [
        ((2, 3), np.float32),
        None,
        ((), ml_dtypes.bfloat16),
    ]
    assert first[0] is not None
    np.testing.assert_array_equal(first[0], second[0])
    assert np.abs(first[0]).max() <= 1
    assert np.abs(first[0]).min() > 0
