from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from deep500.core.errors import OperatorError, UnknownNameError
from deep500.operators.custom import catalogue
from deep500.operators.custom.catalogue import (
    find_custom_op,
    forget_custom_op,
    register_custom_op,
    registered_custom_ops,
)
from deep500.operators.custom.custom_op import CustomOp, CustomPythonOp
from tests.unit.operators.sources import cube_sum, mixed


class Scale(CustomPythonOp):
    name = "scale_of_test"

    def __init__(self, factor: float = 1.0, axes: Any = ()) -> None:
        super().__init__()
        if factor < 0:
            raise ValueError("factor must not be negative")
        self.factor, self.axes = factor, axes

    def forward(self, x: Any) -> Any:
        return self.factor * x


class SameName(Scale):
    name = "scale_of_test"


@pytest.fixture(autouse=True)
def _names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalogue, "_ENTRIES", {})


def test_class_is_found_with_any_attributes() -> None:
    register_custom_op(Scale)

    assert find_custom_op("scale_of_test", {"factor": 3}).attributes == {"factor": 3, "axes": ()}
    assert find_custom_op("scale_of_test", {"factor": 3.5, "axes": [1, 2]}).attributes == {
        "factor": 3.5,
        "axes": (1, 2),
    }
    assert isinstance(find_custom_op("scale_of_test"), Scale)
    assert registered_custom_ops() == ["scale_of_test"]


def test_object_is_found_again_also_after_its_floats_were_rounded() -> None:
    op = Scale(0.1)
    register_custom_op(op)
    register_custom_op(Scale(0.1))

    assert find_custom_op("scale_of_test", {"factor": float(np.float32(0.1)), "axes": []}) is op
    assert find_custom_op("scale_of_test", {"factor": 0.2}).attributes["factor"] == 0.2


def test_same_operator_is_made_once() -> None:
    register_custom_op(Scale)

    assert find_custom_op("scale_of_test", {"factor": 2}) is find_custom_op("scale_of_test", {"factor": 2, "axes": []})


def test_native_operators() -> None:
    register_custom_op(mixed(scale=3.0))
    register_custom_op(mixed(scale=4.0))

    found = find_custom_op("mixed", {"scale": 5.0, "offsets": [1, 2], "factors": [], "mode": "m", "extra": 0})
    y, n = found(np.ones(2), np.ones(1, np.int64), None)

    assert (y.tolist(), n.tolist()) == ([5.0, 5.0], [4])


def test_names_clash() -> None:
    register_custom_op(Scale(2))
    register_custom_op(Scale)  # the same

    with pytest.raises(OperatorError, match=r"named 'scale_of_test' already, .*\.Scale; this one is .*\.SameName"):
        register_custom_op(SameName(2))
    register_custom_op(SameName(2), replace=True)
    assert isinstance(find_custom_op("scale_of_test", {"factor": 7}), SameName)

    register_custom_op(cube_sum())
    register_custom_op(cube_sum())
    other = type("Other", (CustomPythonOp,), {"name": "cube_sum"})()
    with pytest.raises(OperatorError, match="cube_sum"):
        register_custom_op(other)


def test_replacing_by_the_same_keeps_objects() -> None:
    op = Scale(2)
    register_custom_op(op)
    register_custom_op(Scale, replace=True)

    assert find_custom_op("scale_of_test", op.attributes) is op


def test_operator_that_exists_only_as_an_object() -> None:
    class Wrapped(CustomOp):
        def forward(self, inputs: Any) -> Any:
            return (inputs[0],)

        def backward(self, *arguments: Any) -> Any:
            return arguments[0]

    one, other = Wrapped(), Wrapped()
    register_custom_op(one)
    register_custom_op(one)

    assert find_custom_op("Wrapped", {}) is one
    with pytest.raises(OperatorError, match="cannot be made: it cannot be made with other attributes"):
        find_custom_op("Wrapped", {"size": 1})
    with pytest.raises(OperatorError, match="named 'Wrapped' already"):
        register_custom_op(other)


def test_unknown_names() -> None:
    register_custom_op(Scale)

    with pytest.raises(
        UnknownNameError, match=r"no custom operator named 'scale_of_tset'. Did you mean 'scale_of_test'"
    ):
        find_custom_op("scale_of_tset")
    forget_custom_op("scale_of_test")
    forget_custom_op("scale_of_test")
    with pytest.raises(UnknownNameError, match=r"Known: none. Import the module that defines it"):
        find_custom_op("scale_of_test")


@pytest.mark.parametrize("values", [{"factor": -1}, {"size": 1}, {"factor": "x"}])
def test_attributes_that_the_class_refuses(values: Any) -> None:
    register_custom_op(Scale)

    with pytest.raises(OperatorError, match=r"The custom operator 'scale_of_test' with .* cannot be made: "):
        find_custom_op("scale_of_test", values)


@pytest.mark.parametrize("op", [None, 3, int, "scale", CustomPythonOp.forward])
def test_what_is_no_operator(op: Any) -> None:
    with pytest.raises(OperatorError, match="cannot be registered as an operator"):
        register_custom_op(op)


def test_class_without_a_name_of_its_own() -> None:
    with pytest.raises(OperatorError, match="has no name of its own; register an object of it"):
        register_custom_op(type(cube_sum()))
