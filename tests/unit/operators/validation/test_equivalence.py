from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from deep500.core.errors import OperatorError
from deep500.core.tensor_descriptor import tensordesc
from deep500.operators.library.add import Add
from deep500.operators.library.batch_normalization import BatchNormalization
from deep500.operators.library.conv import Conv
from deep500.operators.library.relu import Relu
from deep500.operators.library.softmax import Softmax
from deep500.operators.operator import Operator
from deep500.operators.validation.equivalence import test_op_equivalence
from tests.unit.operators.sources import cube_sum, mixed
from tests.unit.operators.validation import operators


class CubeByProducts(operators.Cube):
    def forward(self, x: Any) -> Any:
        return x * x * x


class WrongFrom(CubeByProducts):
    """Wrong where the last dimension has at least so many elements."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size = size

    def forward(self, x: Any) -> Any:
        y = np.array(x * x * x)
        if y.ndim and y.size and y.shape[-1] >= self.size:
            y[..., self.size - 1] += 1
        return y


class ReadsMemory(CubeByProducts):
    """Takes the elements as they lie in memory."""

    def forward(self, x: Any) -> Any:
        return np.ravel(x, order="K").reshape(x.shape) ** 3


class CubeSum(Operator):
    def forward(self, inputs: Any) -> Any:
        return (inputs[0] ** 3, inputs[0].sum(1))

    def backward(self, grads: Any, fwd_inputs: Any, fwd_outputs: Any) -> Any:
        return (3 * fwd_inputs[0] ** 2 * grads[0] + grads[1][:, None],)


class Mixed(Operator):
    def forward(self, inputs: Any) -> Any:
        x, labels, shift = inputs
        return (2 * x + (0 if shift is None else shift), np.array([labels.sum() - 1]))

    def backward(self, grads: Any, fwd_inputs: Any, fwd_outputs: Any) -> Any:
        return (2 * grads[0], None, grads[0])


def test_equal_operators_pass() -> None:
    report = test_op_equivalence(operators.Cube(), CubeByProducts(), examples=20)

    assert report.passed
    assert (report.cases, report.compared) == (20, {"float32": 10, "float64": 10})
    assert report.differentiated == 20
    assert 0 < report.worst < 1
    text = str(report)
    assert text.startswith("Cube and CubeByProducts: PASSED\n")
    assert "10 in float32, 10 in float64" in text


def test_a_native_operator_and_its_reference() -> None:
    for dtypes in (("float32", "float64"),):
        report = test_op_equivalence(cube_sum(), CubeSum(), shapes=[("n", "c")], dtypes=dtypes)
        assert sum(report.compared.values()) == report.differentiated == 25
    report = test_op_equivalence(
        mixed(), Mixed(), shapes=[("n", 3), tensordesc("int64", "k"), ("n", 3)], dtypes=["float32", "bfloat16"]
    )
    assert report.passed
    assert set(report.compared) == {"float32", "bfloat16"}


def test_a_difference_is_shrunk_to_the_smallest_shape() -> None:
    report = test_op_equivalence(
        CubeByProducts(), WrongFrom(3), shapes=[("n", "c", 8)], examples=10, raise_on_failure=False
    )
    failure = report.failure
    assert failure is not None
    assert failure.inputs[0] is not None
    assert failure.inputs[0].shape == (1, 1, 8)

    report = test_op_equivalence(CubeByProducts(), WrongFrom(3), examples=40, raise_on_failure=False)
    assert report.failure is not None
    (x,) = report.failure.inputs
    assert x is not None
    assert x.shape == (3,)
    np.testing.assert_array_equal(x, 1.0)
    assert "The output 0 of CubeByProducts is not that of WrongFrom: at [2] it is 1, should be 2" in report.failures[0]


def test_the_smallest_case_can_be_pasted() -> None:
    report = test_op_equivalence(CubeByProducts(), WrongFrom(3), examples=40, raise_on_failure=False)
    assert report.failure is not None
    scope: dict[str, Any] = {}
    exec(report.failure.code, scope)

    assert len(scope["inputs"]) == 1
    np.testing.assert_array_equal(scope["inputs"][0], report.failure.inputs[0])
    assert report.failure.code in report.failures[0]


def test_layouts_in_memory_are_tried() -> None:
    with pytest.raises(OperatorError, match="is not that of ReadsMemory") as caught:
        test_op_equivalence(CubeByProducts(), ReadsMemory(), shapes=[("n", "c")], examples=40)

    assert "np.asfortranarray(np.array([" in str(caught.value) or "np.flip" in str(caught.value)


def test_a_wrong_gradient_differs() -> None:
    with pytest.raises(OperatorError, match=r"The gradient by input 0 of Cube .* is not that of Cube"):
        test_op_equivalence(operators.Cube(), operators.Cube(1.001))
    assert test_op_equivalence(operators.Cube(), operators.Cube(1.001), gradients=False).passed


def test_no_gradient_is_a_gradient_of_zeros() -> None:
    class None_(operators.Cube):  # noqa: N801
        def backward(self, grads: Any, fwd_inputs: Any, fwd_outputs: Any) -> Any:
            return None

    class Zeros(operators.Cube):
        def backward(self, grads: Any, fwd_inputs: Any, fwd_outputs: Any) -> Any:
            return np.zeros_like(fwd_inputs[0])

    assert test_op_equivalence(None_(), Zeros()).differentiated == 25


def test_dtypes_and_shapes_have_to_agree() -> None:
    class Wide(operators.Cube):
        def forward(self, x: Any) -> Any:
            return x.astype(np.float64) ** 3

    with pytest.raises(OperatorError, match=r"is float32 of shape .*, and that of Wide float64 of shape"):
        test_op_equivalence(operators.Cube(), Wide())


def test_special_values() -> None:
    class WrongForNan(Relu):
        def forward(self, inputs: Any) -> Any:
            return (np.fmax(inputs[0], inputs[0].dtype.type(0)),)

    assert test_op_equivalence(Relu(), WrongForNan(), shapes=[("n", "c")]).passed
    assert test_op_equivalence(Relu(), Relu(), shapes=[("n", "c")], special_values=True).passed
    with pytest.raises(OperatorError, match="it is nan, should be 0") as caught:
        test_op_equivalence(Relu(), WrongForNan(), shapes=[("n", "c")], special_values=True)
    assert "from numpy import inf, nan" in str(caught.value)


def test_gradients_at_special_values_are_nobodys_promise() -> None:
    class OtherAtNan(Relu):
        def backward(self, grads: Any, fwd_inputs: Any, fwd_outputs: Any) -> Any:
            x = fwd_inputs[0]
            return (np.where(np.isnan(x), np.ones_like(x), grads[0] * (x > 0)),)

    report = test_op_equivalence(Relu(), OtherAtNan(), shapes=[("n", "c")], special_values=True)

    assert report.passed
    assert 0 < report.differentiated < report.cases


def test_what_one_of_both_refuses_is_counted() -> None:
    report = test_op_equivalence(cube_sum(), CubeSum(), shapes=[("n", "c")], dtypes=["float32", "float16"])

    assert report.passed
    assert report.compared == {"float32": 13}
    assert report.refused == {"cube_sum": 12}
    assert report.notes[0] == "Nothing was compared in float16."
    assert "accepted are (float32)" in report.notes[1]


def test_what_both_refuse_is_no_difference_and_no_pass() -> None:
    with pytest.raises(OperatorError, match=r"No case could be compared\. .*accepted are .*Give other shapes"):
        test_op_equivalence(cube_sum(), cube_sum(), shapes=[("n", "c")], dtypes=["float16"])


def test_an_error_of_one_of_both_is_a_difference() -> None:
    class Crashes(operators.Cube):
        def forward(self, x: Any) -> Any:
            return x[0:1][0] ** 3 if x.ndim else x**3

    with pytest.raises(OperatorError, match=r"IndexError|of shape"):
        test_op_equivalence(operators.Cube(), Crashes(), shapes=[("n",)])


def test_an_operator_that_modifies_its_inputs() -> None:
    with pytest.raises(OperatorError, match=r"ModifiesInput.forward modified its input 0"):
        test_op_equivalence(operators.Product(), operators.ModifiesInput(), shapes=[("n", "m"), ("m", "k")])


def test_cases_of_a_function() -> None:
    def cases(rng: np.random.Generator) -> list[Any]:
        size = int(rng.integers(2, 5))
        return [rng.standard_normal((size, size)), rng.standard_normal((size, size))]

    assert test_op_equivalence(operators.Product(), operators.Product(), cases).passed
    report = test_op_equivalence(operators.Product(), operators.TransposedGradient(), cases, raise_on_failure=False)

    assert report.failure is not None
    assert report.failure.inputs[0] is not None
    assert report.failure.inputs[0].shape == (2, 2)
    with pytest.raises(OperatorError, match="accepted is a list with one array an input"):
        test_op_equivalence(operators.Product(), operators.Product(), lambda rng: 3)  # type: ignore[arg-type]


def test_operators_of_the_library_agree_with_themselves() -> None:
    assert test_op_equivalence(Softmax(), Softmax(), shapes=[("n", "c")], special_values=True).passed
    assert test_op_equivalence(Add(), Add(), shapes=[("n", "c"), ("c",)]).passed
    image = [("n", 2, 6, "w"), (3, 2, 3, 1), (3,)]
    assert test_op_equivalence(Conv(), Conv(), shapes=image, examples=10).passed
    report = test_op_equivalence(
        BatchNormalization(training_mode=1), BatchNormalization(training_mode=1), shapes=[("n", "c", 4), *[("c",)] * 4]
    )
    assert report.passed


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"a": Relu(), "b": Relu()}, "Nothing says how many inputs the operators have"),
        ({"b": operators.Cube}, "Create it first"),
        ({"b": mixed()}, "Cube has 1 inputs and mixed 3"),
        ({"examples": 0}, "The number of examples"),
        ({"dtypes": []}, "No dtypes were given"),
        ({"shapes": ["n"]}, "The shape of an input was given as 'n'"),
        ({"shapes": [(-1,)]}, "The shape of an input was given as"),
        ({"tolerance": "0"}, "The tolerance was given as"),
        ({"reduction_length": 0}, "The reduction length"),
    ],
)
def test_what_is_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(OperatorError, match=message):
        test_op_equivalence(**{"a": operators.Cube(), "b": operators.Cube(), **arguments})


def test_the_seed_decides() -> None:
    worst = [test_op_equivalence(operators.Cube(), CubeByProducts(), seed=seed).worst for seed in (0, 0, 1)]

    assert worst[0] == worst[1] != worst[2]


def test_pytest_does_not_take_it_for_a_test() -> None:
    assert test_op_equivalence.__test__ is False
