from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from deep500.core.errors import OperatorError
from deep500.core.tensor_descriptor import tensordesc
from deep500.operators.custom.custom_op import CUSTOM_DOMAIN, CustomOp, CustomPythonOp


class IPowOp(CustomPythonOp):  # as seed 002 prints it
    def __init__(self, power):
        super(IPowOp, self).__init__()  # noqa: UP008
        self.power = power
        assert int(power) == power  # integral

    def forward(self, inputs):
        return inputs[0] ** self.power

    def backward(self, grads, fwd_inputs, fwd_outputs):
        return grads[0] * self.power * (fwd_inputs[0] ** (self.power - 1))


class Affine(CustomPythonOp):  # in the style of the published examples
    def __init__(self, input_descriptors, output_descriptors, scale=2.0):
        super().__init__(input_descriptors, output_descriptors)
        self.scale = scale

    def forward(self, x, shift):
        return self.scale * x + shift

    def backward(self, grads, fwd_inputs, fwd_outputs):
        return [self.scale * grads[0], np.sum(grads[0])]


class Split(CustomPythonOp):
    name = "split_in_two"
    output_count = 2

    def forward(self, *inputs):
        return inputs[0][:2], inputs[0][2:]

    def backward(self, grads, fwd_inputs, fwd_outputs):
        return (np.concatenate(grads), *[None] * (len(fwd_inputs) - 1))


def operator(result: Any = None, gradient: Any = None, **members: Any) -> CustomPythonOp:
    """Return an operator whose forward and backward return something."""
    functions = {
        "forward": lambda self, inputs: result(inputs) if callable(result) else result,
        "backward": lambda self, grads, inputs, outputs: gradient,
    }
    return type("Odd", (CustomPythonOp,), {**functions, **members})()


def test_seed_002_form() -> None:
    op = IPowOp(3)
    x = np.array([1.0, 2.0], np.float32)

    assert op.forward([x]).tolist() == [1.0, 8.0]
    assert op(x).dtype == np.float32
    assert [g.tolist() for g in op.run_backward([np.ones_like(x)], [x], op.run_forward([x]))] == [[3.0, 12.0]]
    assert op.attributes == {"power": 3}
    assert (op.name, op.domain, op.differentiable, op.infers) == ("IPowOp", CUSTOM_DOMAIN, True, False)


def test_published_form() -> None:
    op = Affine([tensordesc("float64", 2), tensordesc("float64", ())], [tensordesc("float64", 2)], scale=3.0)
    x, shift = np.array([1.0, 2.0]), np.array(0.5)

    assert op(x, shift).tolist() == [3.5, 6.5]
    gradients = op.run_backward([np.ones(2)], [x, shift], [op(x, shift)])
    assert gradients[0].tolist() == [3.0, 3.0]
    assert gradients[1].shape == ()
    assert (op.input_count, op.output_count) == (2, 1)
    assert op.attributes == {"scale": 3.0}


def test_any_number_of_inputs_and_two_outputs() -> None:
    op = Split()

    assert op.name == "split_in_two"
    first, second = op(np.arange(3.0), np.zeros(1))
    assert (first.tolist(), second.tolist()) == ([0.0, 1.0], [2.0])
    # The gradient by the second output is not known.
    gradients = op.run_backward([np.ones(2), None], [np.arange(3.0), np.zeros(1)], [first, second])
    assert gradients[0].tolist() == [1.0, 1.0, 0.0]
    assert gradients[1] is None


def test_gradients_that_end_early_are_zeros() -> None:
    gradients = Split().run_backward([np.ones(2)], [np.arange(3.0)], [np.arange(2.0), np.ones(1)])

    assert gradients[0].tolist() == [1.0, 1.0, 0.0]


def test_nan_is_no_error() -> None:
    assert np.isnan(operator(lambda inputs: inputs[0] * np.nan)(np.ones(2))).all()


def test_scalars_become_arrays() -> None:
    result = operator(lambda inputs: np.mean(inputs[0]))(np.ones(3, np.float32))

    assert isinstance(result, np.ndarray)
    assert (result.shape, result.dtype) == ((), np.float32)


def test_gradients_are_of_the_dtype_of_the_inputs() -> None:
    x, labels = np.ones(2, ml_dtypes.bfloat16), np.zeros(3, np.int64)
    op = operator(x, (np.full(2, 0.5), np.zeros(3, np.int64)))

    by_x, by_labels = op.run_backward([x], [x, labels], [x])

    assert by_x.dtype == ml_dtypes.bfloat16
    assert by_labels is None


def test_gradients_by_inputs_that_are_not_handed_over() -> None:
    x, labels = np.ones(2), np.zeros(2, np.int64)
    gradients = (np.full(2, 0.5), None)

    by_x, by_labels = operator(x, gradients, gradient_needs=(False, True)).run_backward([x], [None, None], [x])
    assert by_x.tolist() == [0.5, 0.5]
    assert by_labels is None
    assert operator(x, gradients).run_backward([x], [None, labels], [x]) == (None, None)  # absent
    whole = operator(x, (labels, labels), gradient_needs=(False, True))
    assert whole.run_backward([x], [None, labels], [x]) == (None, None)


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (None, "Odd.forward returned None instead of an array; accepted are 1 arrays"),
        ((np.ones(1), np.ones(1)), "Odd.forward returned 2 outputs; accepted are 1 arrays. Set output_count"),
        ((), "Odd.forward returned 0 outputs"),
    ],
)
def test_wrong_outputs(result: Any, message: str) -> None:
    with pytest.raises(OperatorError, match=message):
        operator(result)(np.ones(2))


@pytest.mark.parametrize(
    ("gradient", "message"),
    [
        ((np.ones(2), np.ones(2)), "Odd.backward returned 2 gradients for 1 inputs"),
        (np.ones(3), r"returned float64 of shape \(3,\) as gradient by input 0; accepted is the input's: float64"),
        (np.ones(2, np.int32), "returned int32 of shape"),
    ],
)
def test_wrong_gradients(gradient: Any, message: str) -> None:
    op, x = operator(np.ones(2), gradient), np.ones(2)

    with pytest.raises(OperatorError, match=message):
        op.run_backward([x], [x], [x])


@pytest.mark.parametrize(
    ("promised", "message"),
    [
        (([(2,)], ["float32"]), r"returned float64 of shape \(2,\) as output 0; its infer promised float32 of shape"),
        (([(3,)], ["float64"]), r"its infer promised float64 of shape \(3,\)"),
        (([(2,), (2,)], ["float64"]), "Odd.infer returned 2 shapes and 1 dtypes; the operator has 1 outputs"),
        (([(2.0,)], ["float64"]), "Odd.infer returned the size 2.0; accepted are whole numbers"),
        (([(-1,)], ["float64"]), "Odd.infer returned the size -1"),
        (([("n",)], ["float64"]), "Odd.infer returned the size 'n'"),
        (([(2,)], ["float46"]), "Odd.infer returned .*accepted are two lists.*float46"),
        ((2,), "Odd.infer returned"),
        (None, "Odd.infer returned None"),
    ],
)
def test_outputs_are_compared_with_infer(promised: Any, message: str) -> None:
    op = operator(np.ones(2), infer=lambda self, shapes, dtypes: promised)

    assert op.infers
    with pytest.raises(OperatorError, match=message):
        op(np.ones(2))


def test_infer_that_fails() -> None:
    def infer(self: Any, shapes: Any, dtypes: Any) -> Any:
        return [shapes[1]], [dtypes[1]]

    with pytest.raises(OperatorError, match=r"Odd.infer failed for inputs of shapes \(\(2,\)\).*IndexError"):
        operator(np.ones(2), infer=infer)(np.ones(2))


def test_infer_gets_symbolic_sizes() -> None:
    class Size:  # of some framework
        def __add__(self, other: int) -> str:
            return "sum"

    class Padded(CustomPythonOp):
        def infer(self, shapes: Any, dtypes: Any) -> Any:
            return [(shapes[0][0], shapes[0][0])], dtypes

    size = Size()
    shapes, dtypes = Padded().infer_outputs([(size,)], ["bfloat16"])

    assert shapes[0][0] is size
    assert dtypes == ("bfloat16",)


def test_default_of_infer() -> None:
    class Generator(CustomPythonOp):
        def forward(self, inputs: Any) -> Any:
            return np.ones(1)

    assert Split().infer_outputs([(3,)], ["int8"]) == (((3,), (3,)), ("int8", "int8"))
    assert Generator()().tolist() == [1.0]
    with pytest.raises(OperatorError, match=r"there is none. Give the operator an infer"):
        Generator().infer_outputs([], [])


def test_wrong_number_of_inputs() -> None:
    with pytest.raises(OperatorError, match=r"Affine.forward\(x, shift\) cannot take 1 inputs.*named 'inputs'"):
        Affine(None, None)(np.ones(1))
    with pytest.raises(OperatorError, match=r"Affine.forward\(x, shift\) cannot take 3 inputs"):
        Affine([1, 2], [1])(*[np.ones(1)] * 3)


def test_what_the_author_left_out() -> None:
    class Empty(CustomPythonOp):
        pass

    class Forward(CustomPythonOp):
        def forward(self, inputs: Any) -> Any:
            return inputs[0]

    with pytest.raises(OperatorError, match=r"Empty has no forward\(self, inputs\)"):
        Empty()(np.ones(1))
    assert not Forward.differentiable
    with pytest.raises(OperatorError, match="Forward cannot be differentiated: it has no backward"):
        Forward().run_backward([np.ones(1)], [np.ones(1)], [np.ones(1)])


@pytest.mark.parametrize("name", ["", "2x", "a b", "größe", "a-b", "a\n", 7, None])
def test_names_are_identifiers_of_c(name: Any) -> None:
    if isinstance(name, str):
        with pytest.raises(OperatorError, match="cannot name an operator"):
            type("Named", (CustomPythonOp,), {"name": name})


def test_name_is_not_inherited() -> None:
    class Base(CustomPythonOp):
        name = "base"

    class Derived(Base):
        pass

    assert (Base.name, Derived.name) == ("base", "Derived")


def test_attributes_are_what_can_be_stored() -> None:
    class Many(CustomPythonOp):
        def __init__(self, a: Any, b: Any = 1, *, c: Any = None, **others: Any) -> None:
            super().__init__()
            self.a, self.b, self.c, self.d = a, b, c, 4

    assert Many([1, 2]).attributes == {"a": (1, 2), "b": 1}
    assert Many(np.array([1.5]), np.float32(2), c="text").attributes == {"a": (1.5,), "b": 2.0, "c": "text"}
    assert Many(object(), True).attributes == {"b": 1}
    assert Many([1, 2.5], ["x"]).attributes == {"a": (1.0, 2.5)}
    assert "Many(a=(1, 2), b=1)" in repr(Many([1, 2]))


def test_attributes_that_are_set() -> None:
    op = IPowOp(2)
    op.attributes = {"other": 1}

    assert op.attributes == {"other": 1}


def test_operators_of_other_kinds() -> None:
    class Plain(CustomOp):
        def forward(self, inputs: Any) -> Any:
            return (inputs[0],)

        def backward(self, grads: Any, fwd_inputs: Any, fwd_outputs: Any) -> Any:
            return (grads[0],)

    assert Plain()([1.0, 2.0]).tolist() == [1.0, 2.0]
    assert Plain().run_backward([np.ones(1)], [np.ones(1)], [np.ones(1)])[0].tolist() == [1.0]
