"""Names and sharing of the dispatcher's entries."""

from __future__ import annotations

import copy
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from deep500.frameworks.pytorch import custom_op  # noqa: E402
from deep500.operators.custom import CustomPythonOp  # noqa: E402


class Scale(CustomPythonOp):
    def __init__(self, factor: Any) -> None:
        super().__init__()
        self.factor = factor

    def forward(self, x: Any) -> Any:
        return x * self.factor


def test_equal_operators_share_an_entry() -> None:
    assert custom_op(Scale(2)) is custom_op(Scale(2))
    assert custom_op(Scale((1, 2))) is custom_op(Scale((1, 2)))
    assert custom_op(Scale([1, {"a": 2.0}])) is custom_op(Scale([1, {"a": 2.0}]))


@pytest.mark.parametrize(("one", "other"), [(2, 3), (1, 1.0), (1, True), (0.0, -0.0), ((1,), (1.0,)), ([1], (1,))])
def test_different_operators_have_entries_of_their_own(one: Any, other: Any) -> None:
    assert custom_op(Scale(one)).overload is not custom_op(Scale(other)).overload


def test_an_entry_is_that_of_the_operator_as_it_was() -> None:
    op = Scale(2.0)
    x = torch.ones(2)
    before = custom_op(op)
    op.factor = 5.0
    after = custom_op(op)

    assert before(x).tolist() == [2, 2]
    assert after(x).tolist() == [5, 5]
    assert custom_op(Scale(2.0)) is before


def test_operators_that_cannot_be_compared_share_nothing() -> None:
    class Odd:
        __hash__ = None  # type: ignore[assignment]

        def __rmul__(self, x: Any) -> Any:
            return x

    op = Scale(Odd())
    assert custom_op(op).overload is not custom_op(op).overload


def test_modules_that_hold_an_operator_can_be_copied() -> None:
    module = torch.nn.Sequential()
    module.scale = custom_op(Scale(3))  # type: ignore[assignment]

    assert copy.deepcopy(module).scale is module.scale
    function, (op,) = module.scale.__reduce__()  # what pickle stores
    assert function(op) is module.scale


def test_names_depend_on_how_shapes_are_inferred() -> None:
    def named(infer: Any) -> str:
        op = type("Inferring", (Scale,), {"infer": infer})(2)
        return str(custom_op(op).overload).partition(".")[2].partition(".")[0]

    names = {
        named(lambda self, shapes, dtypes: (shapes, dtypes)),
        named(lambda self, shapes, dtypes: ([(3,)], dtypes)),
        named(lambda self, shapes, dtypes: ([(4,)], dtypes)),
    }
    assert len({name.rpartition("_")[2] for name in names}) == 3
