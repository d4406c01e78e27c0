from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from deep500.core.errors import Deep500Error, MeasurementError, OperatorError
from deep500.operators.custom import CustomPythonOp
from deep500.workloads._operator_check.functions import framework_function, read_against


class Square(CustomPythonOp):
    found: Any = None

    def forward(self, x: Any) -> Any:
        return x * x

    def framework_function(self, framework: str) -> Any:
        if self.found == "fails":
            raise ImportError("no such library")
        return self.found if framework == "reference" else None


def test_functions() -> None:
    op = Square()

    assert framework_function(op, "reference") is None
    op.found = np.sin
    found = framework_function(op, "reference")
    assert found is not None
    assert found.call is np.sin
    assert "sin" in found.name
    assert framework_function(op, "pytorch") is None
    op.found = lambda x: x
    local = framework_function(op, "reference")
    assert local is not None
    assert local.name == "reference's own function"
    named = framework_function(op, "pytorch", "json:dumps")
    assert named is not None
    assert (named.name, named.call([1])) == ("json:dumps", "[1]")


def test_functions_that_are_none() -> None:
    op = Square()
    op.found = 3
    with pytest.raises(OperatorError, match="is to be compared with 3; accepted is a function of tensors"):
        framework_function(op, "reference")
    op.found = "fails"
    with pytest.raises(OperatorError, match="framework_function failed for 'reference': ImportError: no such library"):
        framework_function(op, "reference")
    with pytest.raises(MeasurementError, match=r"json has no 'dumsp'.*Did you mean 'dump'"):
        framework_function(op, "reference", "json:dumsp")


def test_texts() -> None:
    assert read_against([]) == {}
    assert read_against(["torch.nn.functional:softplus", "tensorflow=my_module:f", "numpy:sin"]) == {
        "pytorch": "torch.nn.functional:softplus",
        "tensorflow": "my_module:f",
        "reference": "numpy:sin",
    }


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["my_module:f"], "say which one's tensors it takes: FRAMEWORK=my_module:f, with one of"),
        (["torch.nn.functional.softplus"], r"accepted is \[FRAMEWORK=\]package.module:function"),
        (["torch:sin", "pytorch=torch:cos"], "Two functions of pytorch"),
        (["pytorhc=torch:cos"], "Did you mean 'pytorch'"),
    ],
)
def test_texts_that_are_refused(texts: list[str], message: str) -> None:
    with pytest.raises(Deep500Error, match=message):
        read_against(texts)
